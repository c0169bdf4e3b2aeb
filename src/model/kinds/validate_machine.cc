#include <fmt/format.h>

#include <set>

#include "base/json.h"
#include "model/cpu_topology.h"
#include "model/kinds/path.h"
#include "model/kinds/validate_pod.h"
#include "model/quantity.h"

// What is refused in the objects that describe a node's machine.
namespace berth::model {
namespace {

void check_device(const Json& device, const Where& at, std::set<std::pair<std::string, int64_t>>& seen,
                  Causes& causes) {
    const int64_t minor = int_at(device, ".minor");
    if (minor < 0) causes.invalid(at.member("minor"), Json(minor), "must be greater than or equal to 0");
    const bool numbered = at_path(device, ".minor") != nullptr;
    if (numbered && !seen.emplace(std::string(string_at(device, ".type")), minor).second)
        causes.duplicate(at.member("minor"), Json(minor));
    for (const auto& amount : members_at(device, ".resources")) {
        const std::string given(amount.value().is_string() ? std::string(amount.value().as_string())
                                                           : base::to_text(amount.value()));
        const auto quantity = Quantity::parse(given);
        const Where resources = at.member("resources");
        if (quantity && quantity->is_negative())
            causes.invalid(resources.key(amount.key()), amount.value(), "must be greater than or equal to 0");
    }
}

// Amounts are not negative, and no two devices of a type have the same number.
void node_devices(const Json& object, const Where& where, Causes& causes) {
    std::set<std::pair<std::string, int64_t>> seen;
    const Where spec = where.member("spec");
    const Where at = spec.member("devices");
    const JsonArray& devices = list_at(object, ".spec.devices");
    for (size_t i = 0; i < devices.size(); ++i) check_device(devices[i], at.item(i), seen, causes);
}

// CPUs that cannot be are refused when they are written; nothing may be bound to them.
void node_topology(const Json& object, const Where& where, Causes& causes) {
    const Json* text = base::find(object, {"metadata", "annotations", kCpuTopology});
    if (text == nullptr || !text->is_string()) return;
    const auto read = read_cpu_topology(std::string_view(text->get_string()));
    if (read) return;
    const Where meta = where.member("metadata");
    const Where at = meta.member("annotations");
    causes.invalid(at.key(kCpuTopology), *text, read.error().message);
}

constexpr NamedRule kMachineRules[] = {{"device", node_devices}, {"topology", node_topology}};

}  // namespace

std::span<const NamedRule> machine_rules() {
    return kMachineRules;
}

}  // namespace berth::model
