#include <algorithm>
#include <array>

#include "sched/claims.h"
#include "sched/plugins/registry.h"

namespace berth::sched::plugins {
namespace {

constexpr std::string_view kZone = "topology.kubernetes.io/zone";
constexpr std::string_view kRegion = "topology.kubernetes.io/region";
constexpr std::string_view kBetaZone = "failure-domain.beta.kubernetes.io/zone";
constexpr std::string_view kBetaRegion = "failure-domain.beta.kubernetes.io/region";
constexpr std::array kKeys{kBetaZone, kBetaRegion, kZone, kRegion};

struct Place {
    std::string_view key;
    std::vector<std::string> values;
};

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(" \t\n\r");
    if (first == std::string_view::npos) return "";
    return text.substr(first, text.find_last_not_of(" \t\n\r") - first + 1);
}

// "a__b" names two zones; a label with an empty part says nothing.
std::vector<std::string> split_zones(std::string_view text) {
    std::vector<std::string> out;
    for (;;) {
        const auto end = text.find("__");
        const auto part = trimmed(text.substr(0, end));
        if (part.empty()) return {};
        out.emplace_back(part);
        if (end == std::string_view::npos) return out;
        text.remove_prefix(end + 2);
    }
}

std::vector<Place> places_of(const AskedClaims& claims, const View& ledger) {
    std::vector<Place> out;
    for (const auto& name : claims.volumes) {
        const auto volume = ledger.volumes().volumes().find(name);
        if (!volume) continue;
        for (const auto key : kKeys) {
            const std::string* value = volume->meta.labels.find(key);
            if (!value) continue;
            auto values = split_zones(*value);
            if (!values.empty()) out.push_back({key, std::move(values)});
        }
    }
    return out;
}

const std::string* label_of(const model::Labels& node, std::string_view key) {
    if (const std::string* value = node.find(key)) return value;
    if (key == kBetaZone) return node.find(kZone);
    return key == kBetaRegion ? node.find(kRegion) : nullptr;
}

class VolumeZone final : public Filter {
public:
    PluginId plugin() const override { return PluginId::VolumeZone; }
    bool concerns(const Ask& ask, const View&) const override { return may_concern(*ask.spec); }
    bool may_concern(const model::PodSpec& spec) const override { return !spec.volumes.empty(); }
    void strike(const Ask& ask, const View& ledger, Strikes& strikes) const override {
        if (ask.spec->volumes.empty()) return;
        const std::vector<Place> places = places_of(claims_of(ask, ledger), ledger);
        if (places.empty()) return;
        const auto refused = strikes.refusal(plugin(), {"node(s) had no available volume zone"}, true);
        strikes.each_open([&](Row row) {
            if (!reachable(places, ledger.node(row).meta.labels)) strikes.strike(row, refused);
        });
    }

private:
    // A node that says nothing about where it is takes every volume: the cluster has one zone.
    static bool reachable(const std::vector<Place>& places, const model::Labels& node) {
        if (std::none_of(kKeys.begin(), kKeys.end(), [&](auto key) { return node.has(key); })) return true;
        return std::all_of(places.begin(), places.end(), [&](const Place& place) {
            const std::string* value = label_of(node, place.key);
            return value && std::find(place.values.begin(), place.values.end(), *value) != place.values.end();
        });
    }
};

}  // namespace

std::shared_ptr<const Filter> volume_zone() {
    return std::make_shared<VolumeZone>();
}

}  // namespace berth::sched::plugins
