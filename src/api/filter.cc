#include "api/filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "api/wire.h"
#include "base/json_view.h"

namespace berth::api {
namespace {

constexpr size_t kCachedFacets = 4096;
constexpr size_t kCachedBytes = 16u << 20;
constexpr std::string_view kName = "metadata.name";
constexpr std::string_view kNamespace = "metadata.namespace";

bool is_key_field(std::string_view field) {
    return field == kName || field == kNamespace;
}

std::string text_at(JsonView value, std::string_view path) {
    while (!path.empty()) {
        if (path.front() == '.') path.remove_prefix(1);
        const auto dot = path.find('.');
        simdjson::dom::element next;
        if (value[path.substr(0, dot)].get(next) != simdjson::SUCCESS) return {};
        value = next;
        path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot);
    }
    if (value.is_string()) return std::string(std::string_view(value));
    if (value.is_object() || value.is_array() || value.is_null()) return {};
    return simdjson::minify(value);
}

// Neither escaped, nor a number or flag, which may be written otherwise or left out.
bool written_as_it_is(std::string_view value) {
    const auto plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.'; };
    return std::all_of(value.begin(), value.end(), plain) &&
           value.find_first_not_of("0123456789.eE+-") != std::string_view::npos && value != "true" && value != "false";
}

std::string field_text(JsonView object, const model::SelectableField& field) {
    for (const auto& path : field.paths) {
        if (auto text = text_at(object, path); !text.empty()) return text;
    }
    return field.flag ? "false" : "";
}

}  // namespace

Facets facets_of(const model::Kind& kind, const store::Record& record) {
    thread_local base::JsonParser parser;
    Facets out;
    std::string converted;
    if (!kind.stored_kind.empty()) append_view(kind, record, converted);
    auto object = parser.parse(converted.empty() ? *record.bytes : converted);
    if (!object) return out;
    simdjson::dom::object labels;
    if (object->at_pointer("/metadata/labels").get(labels) == simdjson::SUCCESS) {
        std::vector<Labels::Entry> entries;
        for (const auto& [key, value] : labels) {
            if (value.is_string()) entries.emplace_back(key, std::string_view(value));
        }
        out.labels = Labels(std::move(entries));
    }
    for (const auto& field : kind.selectable) out.fields.push_back(field_text(*object, field));
    return out;
}

std::shared_ptr<const Facets> FacetCache::of(const model::Kind& kind, const store::RecordPtr& record) {
    {
        const std::lock_guard lock(mutex_);
        const auto found = slots_.find(record.get());
        if (found != slots_.end() && found->second.kind == &kind) return found->second.facets;
    }
    auto facets = std::make_shared<const Facets>(facets_of(kind, *record));
    const std::lock_guard lock(mutex_);
    if (slots_.insert_or_assign(record.get(), Slot{record, &kind, facets}).second) {
        order_.push_back(record.get());
        bytes_ += record->bytes->size();
    }
    while (order_.size() > kCachedFacets || bytes_ > kCachedBytes) {
        bytes_ -= order_.front()->bytes->size();
        slots_.erase(order_.front());
        order_.pop_front();
    }
    return facets;
}

Result<Filter> Filter::parse(const model::Kind& kind, const CallOptions& options) {
    Filter out;
    out.kind_ = &kind;
    if (!options.label_selector.empty()) {
        auto parsed = Selector::parse(options.label_selector, model::kDoorLimits);
        if (!parsed) return base::bad_request(fmt::format("unable to parse requirement: {}", parsed.error().message));
        out.labels_ = std::move(*parsed);
    }
    if (options.field_selector.empty()) return out;
    auto parsed = FieldSelector::parse(options.field_selector, model::kDoorLimits);
    if (!parsed) return base::bad_request(parsed.error().message);
    for (const auto& term : parsed->terms()) {
        if (!is_key_field(term.field) && kind.selector_field(term.field) == nullptr) {
            return base::bad_request(fmt::format("field label not supported: {}", term.field));
        }
        const bool searched = term.equal && !is_key_field(term.field) && kind.stored_kind.empty();
        if (searched && written_as_it_is(term.value)) out.needles_.push_back(fmt::format("\"{}\"", term.value));
    }
    out.fields_ = std::move(*parsed);
    return out;
}

std::optional<std::string> Filter::exact(std::string_view field) const {
    for (const auto& term : fields_.terms()) {
        if (term.equal && term.field == field) return term.value;
    }
    return std::nullopt;
}

bool Filter::matches_key(const store::Key& key) const {
    for (const auto& term : fields_.terms()) {
        if (!is_key_field(term.field)) continue;
        const auto& value = term.field == kName ? key.name : key.ns;
        if ((value == term.value) != term.equal) return false;
    }
    return true;
}

// What a field must be stands in the object's text as it is: of those that a node does not run, few need be read.
bool Filter::may_match(const store::Record& record) const {
    const auto& text = *record.bytes;
    return std::all_of(needles_.begin(), needles_.end(), [&](const std::string& needle) {
        return ::memmem(text.data(), text.size(), needle.data(), needle.size()) != nullptr;
    });
}

bool Filter::needs_facets() const {
    if (!labels_.matches_everything()) return true;
    for (const auto& term : fields_.terms()) {
        if (!is_key_field(term.field)) return true;
    }
    return false;
}

std::string_view Filter::value_of(const std::string& field, const Facets& facets, const store::Key& key) const {
    if (field == kName) return key.name;
    if (field == kNamespace) return key.ns;
    for (size_t i = 0; i < facets.fields.size(); ++i) {
        if (kind_->selectable[i].name == field) return facets.fields[i];
    }
    return {};
}

bool Filter::matches(const Facets& facets, const store::Key& key) const {
    return labels_.matches(facets.labels) &&
           fields_.matches([&](const std::string& field) { return value_of(field, facets, key); });
}

bool Filter::matches(const store::Record& record) const {
    if (!matches_key(record.key)) return false;
    return !needs_facets() || (may_match(record) && matches(facets_of(*kind_, record), record.key));
}

bool Filter::matches(const store::RecordPtr& record, FacetCache& cache) const {
    if (!matches_key(record->key)) return false;
    return !needs_facets() || matches(*cache.of(*kind_, record), record->key);
}

}  // namespace berth::api
