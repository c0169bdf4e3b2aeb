#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::api {

// How an object is shown.
struct Form {
    enum class Shape : uint8_t { Object, Table, Metadata };
    enum class Include : uint8_t { Metadata, Object, None };
    Shape shape = Shape::Object;
    Include include = Include::Metadata;   // what a table's rows carry
    std::string_view meta_version = "v1";  // of meta.k8s.io, for Table and Metadata

    auto operator<=>(const Form&) const = default;
};

// The first form of an Accept header that we can write as JSON; NotAcceptable when there is none.
Result<Form> negotiate(std::string_view accept);

// One media range of an Accept header or a Content-Type: type/subtype in lower case, and its parameters.
struct MediaType {
    std::string type;
    std::vector<std::pair<std::string, std::string>> params;
    std::string_view param(std::string_view name) const;
};
std::vector<MediaType> parse_media_types(std::string_view header);

// The apidiscovery.k8s.io version ("v2", "v2beta1") wanted by an Accept header, before plain JSON.
std::optional<std::string> aggregated_version(std::string_view accept);

}  // namespace berth::api
