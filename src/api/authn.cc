#include "api/authn.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <sstream>

#include "api/authz.h"
#include "api/status.h"

namespace berth::api {
namespace {

bool parse_hash(const std::string& hex, std::array<unsigned char, 32>& out) {
    if (hex.size() != 64) return false;
    for (size_t i = 0; i < 32; ++i) {
        std::string byte;
        if (!percent_decode("%" + hex.substr(2 * i, 2), false, byte)) return false;
        out[i] = static_cast<unsigned char>(byte[0]);
    }
    return true;
}

std::vector<std::string> split_groups(const std::string& text) {
    std::vector<std::string> out;
    std::istringstream parts(text);
    for (std::string group; std::getline(parts, group, ',');) {
        if (!group.empty()) out.push_back(group);
    }
    out.emplace_back(kAuthenticated);
    return out;
}

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

Result<Authenticator> Authenticator::from_token_rows(std::string_view rows) {
    Authenticator out;
    std::istringstream lines{std::string(rows)};
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        if (line.empty() || line[0] == '#') continue;
        std::istringstream words(line);
        std::string hash, user, groups;
        words >> hash >> user >> groups;
        Row row;
        if (user.empty() || !parse_hash(hash, row.hash)) {
            return base::bad_request(fmt::format("line {} of the token file is not \"SHA256 USER GROUPS\"", number));
        }
        row.identity = {user, split_groups(groups)};
        out.rows_.push_back(std::move(row));
    }
    return out;
}

std::optional<Identity> Authenticator::identify_token(std::string_view token) const {
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest);
    const Row* found = nullptr;
    for (const Row& row : rows_) {
        if (CRYPTO_memcmp(row.hash.data(), digest, sizeof(digest)) == 0) found = &row;
    }
    return found != nullptr ? std::optional(found->identity) : std::nullopt;
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
    who = std::move(as);
    return {};
}

std::optional<Identity> Authenticator::identify(const Request& request) const {
    if (request.bad_certificate) return std::nullopt;
    if (request.peer != nullptr) {
        if (request.peer->common_name.empty()) return std::nullopt;
        Identity out{request.peer->common_name, request.peer->organizations};
        out.groups.emplace_back(kAuthenticated);
        return out;
    }
    const auto header = request.header("authorization");
    if (header.empty()) return anonymous();
    constexpr std::string_view kBearer = "Bearer ";
    if (!header.starts_with(kBearer)) return std::nullopt;
    return identify_token(header.substr(kBearer.size()));
}

}  // namespace berth::api
