#include "node/usage.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/kinds/path.h"
#include "model/quantity.h"

namespace berth::node {
namespace {

Result<Used> used_at(const Json& value, const std::string& field) {
    Used out;
    if (!value.is_object()) return base::bad_request(fmt::format("{}: {} is no object", field, base::to_text(value)));
    for (const auto& member : value.get_object()) {
        const std::string text =
            member.value().is_string() ? std::string(member.value().get_string()) : base::to_text(member.value());
        const auto amount = Quantity::parse(text);
        if (!amount || amount->is_negative())
            return base::bad_request(fmt::format("{}.{}: \"{}\" is no amount", field, member.key_c_str(), text));
        if (member.key() == "cpu") out.cpu = amount->milli();
        if (member.key() == "memory") out.memory = amount->value();
    }
    return out;
}

}  // namespace

Used Usage::of(const NodePod& pod) const {
    const auto found = pods.find(pod.full_name());
    return found == pods.end() ? Used() : found->second;
}

Used Usage::system() const {
    Used out = node;
    for (const auto& [name, used] : pods) {
        out.cpu -= used.cpu;
        out.memory -= used.memory;
    }
    return {std::max<int64_t>(0, out.cpu), std::max<int64_t>(0, out.memory)};
}

Result<Usage> read_usage(const Json& document) {
    Usage out;
    if (!document.is_object()) return base::bad_request("a usage must be an object");
    if (const Json* node = base::find(document, {"node"})) out.node = TRY(used_at(*node, "node"));
    if (const Json* pods = base::find(document, {"pods"})) {
        if (!pods->is_object()) return base::bad_request(fmt::format("pods: {} is no object", base::to_text(*pods)));
        for (const auto& pod : pods->get_object())
            out.pods[pod.key()] = TRY(used_at(pod.value(), fmt::format("pods.{}", pod.key_c_str())));
    }
    if (const Json* quota = base::find(document, {"current", "quota"})) {
        if (!quota->is_int64())
            return base::bad_request(fmt::format("current.quota: {} is no whole number", base::to_text(*quota)));
        out.quota = quota->get_int64();
    }
    if (const Json* cpuset = base::find(document, {"current", "cpuset"})) {
        std::string fault = cpuset->is_string() ? "" : base::to_text(*cpuset) + " is no text";
        if (fault.empty()) out.cpuset = model::read_cpu_list(std::string_view(cpuset->get_string()), fault);
        if (!fault.empty()) return base::bad_request(fmt::format("current.cpuset: {}", fault));
    }
    return out;
}

}  // namespace berth::node
