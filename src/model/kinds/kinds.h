#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "model/kinds/types.h"

// The table of API kinds: everything the API server knows about a kind is derived from its entry here.
namespace berth::model {

struct Subresource {
    std::string name;   // "status"
    std::string kind;   // of the body
    std::string group;  // of that kind
    std::string version;
    std::vector<std::string> verbs;
};

// A printer column. source is a path (".status.phase") or the name of a printer with its argument ("age", "int .x").
struct Column {
    std::string name;
    std::string type;    // string, integer, boolean, date, number
    std::string format;  // "name" for the name
    std::string description;
    std::string source;
    int priority = 0;  // > 0: shown by -o wide only
};

// A field selector: the values at the paths, the first that is not empty; a flag reads "false" when it is absent.
struct SelectableField {
    std::string name;
    std::vector<std::string> paths;
    bool flag = false;
};

struct ScalePaths {
    std::string replicas;  // ".spec.replicas"
    std::string current;
    std::string selector;  // a label selector or a map of labels; or text, for CRDs
};

// The form of the names of its objects (names.h); that of CronJobs leaves room for what is put behind it.
enum class NameForm : uint8_t { Subdomain, ShortSubdomain, Label, ServiceLabel, PathSegment };

struct Kind {
    std::string group;  // "" is core
    std::string version;
    std::string kind;
    std::string list_kind;
    std::string plural;
    std::string singular;
    std::vector<std::string> short_names;
    std::vector<std::string> categories;
    std::vector<std::string> verbs;
    std::vector<Subresource> subresources;
    std::vector<SelectableField> selectable;
    std::vector<Column> columns;
    ScalePaths scale;  // empty paths: no scale
    NameForm name_form = NameForm::Subdomain;
    bool namespaced = true;
    bool generation = false;  // metadata.generation grows when anything but metadata and status changes
    std::string stored_kind, stored_group, stored_version;  // when it is another view of a stored kind (see convert.h)
    // The object's type; null: any members. Shared because types point at one another and a CRD brings its own table.
    std::shared_ptr<const Type> type;

    std::string api_version() const { return group.empty() ? version : group + "/" + version; }
    bool has_status() const { return subresource("status") != nullptr; }
    const Subresource* subresource(std::string_view name) const;
    bool allows(std::string_view verb) const;
    const SelectableField* selector_field(std::string_view name) const;
};

// A set of kinds: a value. Copy it, add to it, publish the copy; a copy shares the kinds.
class Kinds {
public:
    // Adds the kind, or replaces the one of the same group, version and plural.
    void add(Kind kind);
    void remove(std::string_view group, std::string_view version, std::string_view plural);

    // By the words of a URL and by those of an object. nullptr when there is none.
    const Kind* find(std::string_view group, std::string_view version, std::string_view plural) const;
    const Kind* of(std::string_view api_version, std::string_view kind) const;

    // The type of a request body: of a kind, or one that only subresources and options use (Eviction, DeleteOptions).
    const Type* body_type(std::string_view api_version, std::string_view kind) const;

    // In the order of the table: groups, then versions (the preferred one first), then kinds as declared.
    const std::vector<std::shared_ptr<const Kind>>& all() const { return kinds_; }

private:
    std::vector<std::shared_ptr<const Kind>> kinds_;
};

// The built-in kinds. Parsed at the first call (about a millisecond); safe from any thread.
const Kinds& kinds();

// The value a field selector compares ("" when absent). metadata.name and metadata.namespace work for every kind.
std::string selected_value(const Json& object, const SelectableField& field);

}  // namespace berth::model
