#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/json.h"
#include "model/kinds/kinds.h"

// The pieces that OpenAPI documents are made of.
namespace berth::model {

enum class Dialect : bool { V2, V3 };

// Schemas by name, gathered for one document.
class Schemas {
public:
    explicit Schemas(Dialect dialect) : dialect_(dialect) {}

    // Adds the kind, its list, and everything they refer to.
    void add_kind(const Kind& kind);
    void add_type(const Type& type);

    // {"$ref": ...} of a schema that add_* has made, or will make.
    Json reference(std::string_view name) const;
    JsonObject take() { return std::move(schemas_); }

private:
    Json of_type(const Type& type);
    Json of_field(const Field& field, std::string_view description);
    Json of_value(const Field& field);
    Json special(std::string_view name, Json schema);

    Dialect dialect_;
    std::set<std::string, std::less<>> done_;
    JsonObject schemas_;
};

// "core.v1.Pod" -> "io.k8s.api.core.v1.Pod"
std::string schema_name(std::string_view type_name);
std::string schema_name(const Kind& kind);

// Adds the paths of a kind and its subresources.
void add_paths(JsonObject& paths, const Kind& kind, const Schemas& schemas, Dialect dialect);

// Our own words about a type ("core.v1.Pod") or a member ("core.v1.Pod", "spec"); "" when there are none.
std::string_view description_of(std::string_view type_name, std::string_view member = {});

}  // namespace berth::model
