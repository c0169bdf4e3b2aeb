#include "cli/input_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/near_word.h"
#include "model/kinds/fields.h"
#include "model/kinds/kinds.h"

namespace berth::cli {
namespace {

constexpr size_t kMostTold = 20;

// By its version, or, where it says none, by its kind alone.
const model::Kind* table_kind(const Json& object) {
    const auto kind = base::find_string(object, {"kind"});
    const auto version = base::find_string(object, {"apiVersion"});
    if (!version.empty()) return model::kinds().of(version, kind);
    for (const auto& known : model::kinds().all()) {
        if (known->kind == kind) return known.get();
    }
    return nullptr;
}

std::string title(const Json& object, const model::Kind& kind) {
    const auto ns = base::find_string(object, {"metadata", "namespace"});
    return fmt::format("{} {}{}", kind.kind, kind.namespaced ? fmt::format("{}/", ns.empty() ? "default" : ns) : "",
                       base::find_string(object, {"metadata", "name"}));
}

// "spec.containers[12].resource" is the same everywhere: "spec.containers[].resource".
std::string anywhere(std::string_view path) {
    std::string out;
    bool within = false;
    for (const char letter : path) {
        if (letter == ']') within = false;
        if (!within) out += letter;
        if (letter == '[') within = true;
    }
    return out;
}

}  // namespace

void InputCheck::see(const Json& object) {
    const model::Kind* kind = table_kind(object);
    if (!kind) return;
    const std::string name = title(object, *kind);
    if (!base::find_string(object, {"metadata", "name"}).empty()) ++objects_[name];
    if (!kind->type) return;
    Json copy = object;
    const auto complaints = model::check_fields(copy, *kind->type);
    if (!complaints) return;  // whoever reads it says so
    for (const auto& complaint : *complaints) {
        const auto [found, fresh] = unknown_.try_emplace(fmt::format("{} in {}", anywhere(complaint), kind->kind));
        if (fresh) found->second.first = name;
        ++found->second.times;
    }
}

std::vector<std::string> InputCheck::remarks() const {
    std::vector<std::string> out;
    for (const auto& [what, seen] : unknown_) {
        out.push_back(fmt::format("{}: nothing is made of it ({}{})", what.substr(0, what.rfind(" in ")), seen.first,
                                  seen.times > 1 ? fmt::format(" and {} more", seen.times - 1) : ""));
    }
    for (const auto& [name, times] : objects_) {
        if (times > 1) out.push_back(fmt::format("{} is given {} times; the last one counts", name, times));
    }
    if (out.size() > kMostTold) {
        const size_t more = out.size() - kMostTold;
        out.resize(kMostTold);
        out.push_back(fmt::format("and {} more remarks like these", more));
    }
    return out;
}

std::string ignored_kind(const Json& object, const std::vector<std::string>& known) {
    const std::string kind(base::find_string(object, {"kind"}));
    if (std::find(known.begin(), known.end(), kind) != known.end()) {  // of another group
        return fmt::format("objects of kind \"{}\" ({}) are ignored", kind, base::find_string(object, {"apiVersion"}));
    }
    const std::string meant = table_kind(object) ? "" : near_word(kind, known);
    return fmt::format("objects of kind \"{}\" are ignored{}", kind,
                       meant.empty() ? "" : fmt::format(": did you mean {}?", meant));
}

}  // namespace berth::cli
