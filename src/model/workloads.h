#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "base/result.h"
#include "model/labels.h"
#include "model/selector.h"

namespace berth::model {

// The objects whose selectors say which pods belong together when nobody says how to spread them.
enum class WorkloadKind : uint8_t { Service, ReplicationController, ReplicaSet, StatefulSet };

struct Workload {
    WorkloadKind kind = WorkloadKind::Service;
    std::string ns;
    std::string name;
    Selector selector = Selector::nothing();  // absent: selects nothing
};

// A namespace, as far as placement cares.
struct Namespace {
    std::string name;
    Labels labels;
};

// By an object's kind; nullopt when it is none of them.
std::optional<WorkloadKind> workload_kind(std::string_view kind);
Result<Workload> read_workload(WorkloadKind kind, JsonView object);
Result<Namespace> read_namespace(JsonView object);

// Selects what carries all these labels.
Selector selector_of(const Labels& labels);

}  // namespace berth::model
