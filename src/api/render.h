#pragma once

#include <string>
#include <vector>

#include "api/call.h"
#include "api/negotiate.h"
#include "base/clock.h"

// Records in the forms clients ask for.
namespace berth::api {

struct RenderContext {
    const model::Kind& kind;
    Form form;
    base::Time now;  // for the age columns of tables
};

// The object, its metadata, or a table of one row.
void render_object(const RenderContext& look, const store::Record& record, std::string& out);

struct ListMeta {
    store::Revision revision = 0;
    std::string continue_token = {};
    std::optional<size_t> remaining = {};
};
// A list: its head, its items with commas between them, its end.
void render_list_begin(const RenderContext& look, const ListMeta& meta, std::string& out);
void render_list_item(const RenderContext& look, const store::Record& record, std::string& out);
inline constexpr std::string_view kListEnd = "]}\n";

// An event's table; its column definitions are sent with the first one only.
void render_event_table(const RenderContext& look, const store::Record& record, bool with_columns, std::string& out);

}  // namespace berth::api
