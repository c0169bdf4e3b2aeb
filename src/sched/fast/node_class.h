#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sched/fast/columns.h"
#include "sched/plugin.h"

namespace berth::sched::plugins {
struct DeviceScorer;
}

namespace berth::sched::fast {

// When nodeName or required matchFields name the nodes the spec may go to: their rows.
std::optional<std::vector<Row>> named_rows(const model::PodSpec& spec, const View& ledger);

// A profile's plugins, sorted by what their answers depend on.
struct Terms {
    struct Weighted {
        const NodeScorer* scorer;
        int64_t weight;
    };
    struct WeightedDevices {
        const plugins::DeviceScorer* scorer;
        int64_t weight;
    };
    std::vector<const Filter*> node_filters;
    std::vector<Weighted> fixed;   // node scorers whose points are final
    std::vector<Weighted> scaled;  // node scorers that are normalised over the feasible rows
    // Plugins whose answers depend on more than the row.
    std::vector<const Filter*> far_filters;
    std::vector<Profile::Weighted> far_scorers;
    std::vector<const Filter*>
        credit_filters;  // Reservation's: for pods, computed as credit; for reservations far ones
    int64_t least_weight = 0;
    int64_t balanced_weight = 0;
    const Filter* cores = nullptr;  // of specs that ask for cores computed here, for the others a far one
    int64_t cores_weight = 0;       // of their points
    bool devices = false;           // which of them a spec that asks for some gets, is asked row by row
    std::vector<WeightedDevices> device_scorers;
    int64_t devices_weight = 0;  // of all of these
    bool ports = false;
    bool credit = false;  // reservations are as the fast way knows them
    bool usable = false;  // the rest is as the fast way knows it
};
Terms terms_of(const Profile& profile);

// What only nodes and a spec's node constraints decide, shared by all classes with the same constraints. Rows whose raw
// values for the scaled scorers are equal form a group: within it the order is that of the keys, and what the scaled
// scorers give is the same for all.
struct NodeClass {
    uint64_t epoch = 0;
    std::vector<uint16_t> base;                // as the kernel wants it; padded
    std::vector<std::vector<int64_t>> groups;  // raw values, in the order of Terms::scaled
    std::vector<uint32_t> group_size;
    // Of each row, when there are several groups: which, and where in it.
    std::vector<uint32_t> group;
    std::vector<uint32_t> place;
};

// The part of a spec that a node class depends on; images that no node has are left out.
model::PodSpec constraints_of(const model::PodSpec& spec, const View& ledger);
std::shared_ptr<const NodeClass> node_class_of(const model::PodSpec& constraints, const View& ledger,
                                               const Terms& terms);

}  // namespace berth::sched::fast
