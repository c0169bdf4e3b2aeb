#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/http.h"
#include "api/identity.h"
#include "api/negotiate.h"
#include "api/status.h"
#include "model/kinds/kinds.h"
#include "store/record.h"

// One request below HTTP: what an identity wants done to which object.
namespace berth::api {

enum class Verb : uint8_t { Get, List, Watch, Create, Update, Patch, Delete, DeleteCollection };
std::string_view name_of(Verb verb);

enum class FieldValidation : uint8_t { Ignore, Warn, Strict };

// The query of a request, parsed. Absent and empty texts are the same.
struct CallOptions {
    bool dry_run = false;
    FieldValidation validation = FieldValidation::Warn;
    std::string field_manager;
    bool force = false;

    std::string label_selector;
    std::string field_selector;
    std::string resource_version;
    std::string version_match;
    std::string continue_token;
    size_t limit = 0;
    bool bookmarks = false;
    std::optional<bool> initial_events = {};
    std::optional<int64_t> timeout_seconds = {};

    std::optional<int64_t> grace_seconds = {};
    std::string propagation;
    std::optional<bool> orphan = {};
    std::string if_uid;
    std::string if_version;

    std::string container;  // of pods/log
};

// 400 when a value cannot be read.
Result<CallOptions> parse_options(const Pairs& query);
// Kubernetes' reading of flags: everything but "0" and "false" is true, also nothing.
bool query_flag(std::string_view value);

struct Body {
    std::string bytes;
    std::string content_type;  // "" is JSON
};

class AuditTrail;

struct Call {
    Identity who;
    Verb verb = Verb::Get;
    std::shared_ptr<const model::Kinds> table;
    const model::Kind* kind = nullptr;  // of the table
    std::string subresource;
    std::string ns;
    std::string name;
    CallOptions options;
    Body body;
    bool remote = false;                     // over HTTP: somebody may read a warning
    std::shared_ptr<AuditTrail> trail = {};  // of what it writes, if somebody wants to know

    store::Key key() const;             // of the object, in its stored kind
    std::string resource() const;       // "deployments.apps"
    Subject subject() const;            // for errors
    const model::Kind& stored() const;  // the kind that is stored: kinds may be views of another
};

// What came of it. A read or write has a record; a delete that is done has none and is a success; other answers (Scale,
// reviews) are a text.
struct Served {
    int code = 200;
    store::RecordPtr record = {};
    std::string text = {};
    std::vector<std::string> warnings = {};
};

using Done = std::function<void(Result<Served>)>;

// "pods" or "group/plural": the store's name of a kind.
std::string store_kind(std::string_view group, std::string_view plural);

Error not_found_error(std::string_view resource, std::string_view name);
Error already_exists_error(std::string_view resource, std::string_view name);
Error modified_error(std::string_view resource, std::string_view name);

}  // namespace berth::api
