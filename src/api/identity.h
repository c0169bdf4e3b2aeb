#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace berth::api {

inline constexpr std::string_view kMasters = "system:masters";
inline constexpr std::string_view kSchedulers = "berth:schedulers";
inline constexpr std::string_view kControllers = "berth:controllers";
inline constexpr std::string_view kImporters = "berth:importers";  // bring objects that another cluster made
inline constexpr std::string_view kNodes = "system:nodes";
inline constexpr std::string_view kAuthenticated = "system:authenticated";
inline constexpr std::string_view kUnauthenticated = "system:unauthenticated";

struct PeerCertificate;

// Who asks.
struct Identity {
    std::string user;
    std::vector<std::string> groups;
    std::string uid = {};                                        // of who is impersonated with one
    std::map<std::string, std::vector<std::string>> extra = {};  // the same
    // What he was known by: one of them, or nothing for a component in the process.
    std::shared_ptr<const PeerCertificate> certificate = {};
    std::string token_hash = {};
    std::shared_ptr<const Identity> by = {};  // who acts as him

    bool in(std::string_view group) const { return std::find(groups.begin(), groups.end(), group) != groups.end(); }
};

// The node that an identity speaks for; empty when it is none, or may do everything anyway.
inline std::string_view node_of(const Identity& who) {
    constexpr std::string_view kPrefix = "system:node:";
    if (!who.user.starts_with(kPrefix) || !who.in(kNodes) || who.in(kMasters)) return {};
    return std::string_view(who.user).substr(kPrefix.size());
}

// Components inside the process.
inline Identity scheduler_identity() {
    return {"system:kube-scheduler", {std::string(kSchedulers), std::string(kAuthenticated)}};
}
inline Identity controller_identity(std::string_view name) {
    return {"system:controller:" + std::string(name), {std::string(kControllers), std::string(kAuthenticated)}};
}
inline Identity node_identity(std::string_view node) {
    return {"system:node:" + std::string(node), {std::string(kNodes), std::string(kAuthenticated)}};
}

}  // namespace berth::api
