#include "model/meta.h"

#include <charconv>

#include "model/reader.h"
#include "model/times.h"

namespace berth::model {

std::optional<base::Time> read_time(const Reader& field) {
    if (!field.present()) return std::nullopt;
    auto time = parse_time(field.text());
    if (!time) {
        field.wrong(time.error().message);
        return std::nullopt;
    }
    return *time;
}

const OwnerRef* Meta::controller() const {
    for (const auto& owner : owners) {
        if (owner.controller) return &owner;
    }
    return nullptr;
}

Labels read_labels(const Reader& field) {
    std::vector<std::pair<std::string, std::string>> pairs;
    field.entries([&](std::string_view key, const Reader& value) { pairs.emplace_back(key, value.text()); });
    return Labels(std::move(pairs));
}

Meta read_meta(const Reader& object) {
    const Reader from = object["metadata"];
    Meta meta;
    meta.ns = from["namespace"].text();
    meta.name = from["name"].text();
    meta.uid = from["uid"].text();
    const std::string_view revision = from["resourceVersion"].text();
    std::from_chars(revision.data(), revision.data() + revision.size(), meta.revision);
    meta.created = read_time(from["creationTimestamp"]).value_or(base::Time{});
    meta.deleted = read_time(from["deletionTimestamp"]);
    meta.labels = read_labels(from["labels"]);
    meta.annotations = read_labels(from["annotations"]);
    const Reader owners = from["ownerReferences"];
    owners.each([&](const Reader& item) {
        meta.owners.push_back({std::string(item["apiVersion"].text()), std::string(item["kind"].text()),
                               std::string(item["name"].text()), std::string(item["uid"].text()),
                               item["controller"].flag()});
    });
    return meta;
}

}  // namespace berth::model
