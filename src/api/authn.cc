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

Status may_impersonate(const Identity& who, std::string_view resource, std::string_view name) {
    const Attributes what{"impersonate", {}, resource, {}, {}, name};
    if (allowed(who, what)) return {};
    return forbidden(refusal(who, what));
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
    Identity as;
    bool any = false;
    for (const auto& [name, value] : request.headers) {
        if (!name.starts_with("impersonate-")) continue;
        any = true;
        if (name == "impersonate-user") as.user = value;
        if (name == "impersonate-group") as.groups.push_back(value);
    }
    if (!any) return {};
    if (as.user.empty()) return base::bad_request("impersonation needs the header Impersonate-User");
    TRY(may_impersonate(who, "users", as.user));
    for (const auto& group : as.groups) TRY(may_impersonate(who, "groups", group));
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
