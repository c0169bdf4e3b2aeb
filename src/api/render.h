#pragma once

#include <string>
#include <vector>

#include "api/call.h"
#include "api/negotiate.h"
#include "base/clock.h"

// Records in the forms clients ask for.
namespace berth::api {

struct Look {
    const model::Kind& kind;
    Form form;
    base::Time now;  // for the age columns of tables
};

// The object, its metadata, or a table of one row.
void render_object(const Look& look, const store::Record& record, std::string& out);

struct ListMeta {
    store::Revision revision = 0;
    std::string continue_token = {};
    std::optional<size_t> remaining = {};
};
std::string render_list(const Look& look, const std::vector<store::RecordPtr>& records, const ListMeta& meta);

// An event's table; its column definitions are sent with the first one only.
void render_event_table(const Look& look, const store::Record& record, bool with_columns, std::string& out);

}  // namespace berth::api
