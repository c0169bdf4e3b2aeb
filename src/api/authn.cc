#include "api/authn.h"

#include <fmt/format.h>

#include "api/authz.h"
#include "api/status.h"

namespace berth::api {
namespace {

constexpr std::string_view kImpersonate = "impersonate-";
constexpr std::string_view kExtra = "impersonate-extra-";

Status may_impersonate(const Identity& who, const Attributes& what) {
    if (allowed(who, what)) return {};
    return forbidden(refusal(who, what));
}

Status set_once(std::string& field, std::string_view name, const std::string& value) {
    if (!field.empty()) return base::bad_request(fmt::format("the header {} is there twice", name));
    field = value;
    return {};
}

// Whom the headers name. A header that is not known is refused: who sends it means something by it.
Result<Identity> named_by(const Request& request) {
    Identity out;
    for (const auto& [name, value] : request.headers) {
        if (!name.starts_with(kImpersonate)) continue;
        if (name == "impersonate-user") {
            TRY(set_once(out.user, name, value));
        } else if (name == "impersonate-uid") {
            TRY(set_once(out.uid, name, value));
        } else if (name == "impersonate-group") {
            out.groups.push_back(value);
        } else if (std::string key; name.size() > kExtra.size() && name.starts_with(kExtra) &&
                                    percent_decode(name.substr(kExtra.size()), false, key)) {
            out.extra[key].push_back(value);
        } else {
            return base::bad_request(fmt::format("the header {} is not one of impersonation", name));
        }
    }
    return out;
}

}  // namespace

Identity anonymous() {
    return {"system:anonymous", {std::string(kUnauthenticated)}};
}

Status impersonate(const Request& request, Identity& who) {
    Identity as = TRY(named_by(request));
    if (as.user.empty()) {
        if (as.groups.empty() && as.uid.empty() && as.extra.empty()) return {};
        return base::bad_request("impersonation needs the header Impersonate-User");
    }
    constexpr std::string_view kVerb = "impersonate", kGroup = "authentication.k8s.io";
    TRY(may_impersonate(who, {kVerb, {}, "users", {}, {}, as.user}));
    for (const auto& group : as.groups) TRY(may_impersonate(who, {kVerb, {}, "groups", {}, {}, group}));
    if (!as.uid.empty()) TRY(may_impersonate(who, {kVerb, kGroup, "uids", {}, {}, as.uid}));
    for (const auto& [key, values] : as.extra) {
        for (const auto& value : values) TRY(may_impersonate(who, {kVerb, kGroup, "userextras", key, {}, value}));
    }
    as.groups.emplace_back(as.user == anonymous().user ? kUnauthenticated : kAuthenticated);
    as.certificate = who.certificate;
    as.token_hash = who.token_hash;
    as.by = std::make_shared<const Identity>(std::move(who));
    who = std::move(as);
    return {};
}

std::optional<Identity> Authenticator::identify(const Request& request) const {
    if (request.bad_certificate) return std::nullopt;
    if (request.peer != nullptr) {
        if (request.peer->common_name.empty()) return std::nullopt;
        if (credentials_ != nullptr && !credentials_->accepts(*request.peer)) return std::nullopt;
        Identity out{request.peer->common_name, request.peer->organizations};
        out.groups.emplace_back(kAuthenticated);
        out.certificate = request.peer;
        return out;
    }
    const auto header = request.header("authorization");
    if (header.empty()) return anonymous();
    constexpr std::string_view kBearer = "Bearer ";
    if (!header.starts_with(kBearer) || credentials_ == nullptr) return std::nullopt;
    return credentials_->identify(header.substr(kBearer.size()));
}

}  // namespace berth::api
