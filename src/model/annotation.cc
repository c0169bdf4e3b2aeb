#include "model/annotation.h"

#include <fmt/format.h>

#include "base/json.h"

namespace berth::model {

Error annotation_error(std::string_view key, std::string_view what) {
    return base::invalid(fmt::format("annotation \"{}\": {}", key, what));
}

Status check_annotation(std::string_view key, std::string_view text) {
    const auto value = base::parse_json(text);
    if (!value) return annotation_error(key, value.error().message);
    return {};
}

}  // namespace berth::model
