#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace berth::run {

inline constexpr std::string_view kWebhookConfiguration = "berth-bindings";

// Where the API server finds the webhook, and whose bindings need no check because they come from a ledger.
struct WebhookTarget {
    std::string url;
    std::string ca_pem;  // one or more certificates
    std::vector<std::string> trusted;
};

// The ValidatingWebhookConfiguration: bindings to nodes that hold something, bindings that say which cores or devices
// the pod has, and resizes of pods on such nodes, fail when nobody answers; others go through then. Above a thousand
// such nodes all are of the first kind: the condition would not fit.
Json webhook_configuration(const WebhookTarget& target, const std::set<std::string>& held_nodes);

}  // namespace berth::run
