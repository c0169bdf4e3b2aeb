#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "api/credentials.h"
#include "app/commands.h"
#include "app/credential_files.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/text_table.h"
#include "model/times.h"

namespace berth::app {
namespace {

constexpr size_t kLeastId = 6;

struct TokenOptions {
    std::string data_dir = "./berth-data";
    std::string user;
    std::vector<std::string> groups;
    base::Duration duration = std::chrono::hours(720);
    base::Duration overlap{};
    std::string kubeconfig;
    std::vector<std::string> ids;
    std::string id;
};

using Rows = std::vector<api::TokenRow>;

Status list_tokens(const TokenOptions& options) {
    TRY(check_data_dir(options.data_dir));
    cli::TextTable table({"ID", "USER", "GROUPS", "CREATED", "EXPIRES", "FILE"});
    const auto time = [](const std::optional<base::Time>& at, const char* without) {
        return at ? model::time_text(*at) : without;
    };
    const auto now = base::system_clock().wall();
    for (const auto& row : TRY(api::read_token_rows(options.data_dir + "/pki"))) {
        table.add({row.id(), row.user, fmt::format("{}", fmt::join(row.groups, ",")), time(row.created, "unknown"),
                   row.expired(now) ? "expired" : time(row.expires, "never"), row.file.empty() ? "-" : row.file});
    }
    fmt::print("{}", table.text());
    return {};
}

// Those that are over are of no use to anybody.
Status write_rows(const CredentialFiles& files, Rows rows) {
    std::erase_if(rows, [now = base::system_clock().wall()](const auto& row) { return row.expired(now); });
    return api::write_token_rows(files.pki(), rows);
}

std::optional<base::Time> end_of(base::Duration duration) {
    if (duration.count() == 0) return std::nullopt;
    return now_in_seconds() + duration;
}

Status create_token(const TokenOptions& options) {
    TRY(api::check_identity_words(options.user, options.groups));
    const auto files = TRY(CredentialFiles::open(options.data_dir));
    auto rows = TRY(api::read_token_rows(files.pki()));
    const std::string token = api::random_token();
    api::TokenRow row{
        api::sha256_hex(token), options.user, options.groups, now_in_seconds(), end_of(options.duration), ""};
    const std::string id = row.id();
    rows.push_back(std::move(row));
    if (!options.kubeconfig.empty()) TRY(files.write_kubeconfig(options.kubeconfig, options.user, {}, token));
    TRY(write_rows(files, std::move(rows)));
    fmt::print(stderr, "token {} of {}\n", id, options.user);
    if (options.kubeconfig.empty()) fmt::print("{}\n", token);
    return {};
}

Result<Rows::iterator> find_id(Rows& rows, const std::string& id) {
    const auto is = [&](const auto& row) { return row.hash.starts_with(id); };
    const auto found = std::find_if(rows.begin(), rows.end(), is);
    if (id.size() < kLeastId || found == rows.end()) {
        return base::not_found(fmt::format("there is no token {}; 'berth token list' names them", id));
    }
    if (std::count_if(rows.begin(), rows.end(), is) > 1) {
        return base::bad_request(fmt::format("several tokens begin with {}: write more of it", id));
    }
    return found;
}

Status revoke_tokens(const TokenOptions& options) {
    if (options.ids.empty() == options.user.empty()) {
        return base::bad_request("say which tokens: their ids, or --user for all of one user");
    }
    const auto files = TRY(CredentialFiles::open(options.data_dir));
    auto rows = TRY(api::read_token_rows(files.pki()));
    Rows gone;
    for (const auto& id : options.ids) gone.push_back(*TRY(find_id(rows, id)));
    for (const auto& row : rows) {
        if (!options.user.empty() && row.user == options.user) gone.push_back(row);
    }
    std::erase_if(rows, [&](const auto& row) {
        return std::any_of(gone.begin(), gone.end(), [&](const auto& each) { return each.hash == row.hash; });
    });
    TRY(write_rows(files, std::move(rows)));
    for (const auto& row : gone) {
        if (!row.file.empty()) ::unlink(fmt::format("{}/{}", files.pki(), row.file).c_str());
        fmt::print("revoked {} of {}\n", row.id(), row.user);
    }
    if (gone.empty()) fmt::print("{} has no tokens\n", options.user);
    return {};
}

// The old one counts until its file holds the new one, or until the overlap is over.
Status rotate_token(const TokenOptions& options) {
    const auto files = TRY(CredentialFiles::open(options.data_dir));
    auto rows = TRY(api::read_token_rows(files.pki()));
    auto old = std::find_if(rows.begin(), rows.end(), [](const auto& row) { return row.file == api::kAdminToken; });
    if (!options.id.empty()) old = TRY(find_id(rows, options.id));
    if (old == rows.end()) return base::not_found("there is no admin.token; the server makes one when it starts");
    const std::string token = api::random_token(), file = old->file;
    api::TokenRow fresh{api::sha256_hex(token), old->user, old->groups, now_in_seconds(), {}, file};
    if (old->expires && old->created) fresh.expires = now_in_seconds() + (*old->expires - *old->created);
    const std::string id = fresh.id();
    std::string replaced;
    if (!file.empty()) replaced = api::read_token(fmt::format("{}/{}", files.pki(), file)).value_or("");
    if (options.overlap.count() == 0) {
        rows.erase(old);
    } else {
        old->file.clear();
        const auto end = now_in_seconds() + options.overlap;
        old->expires = old->expires ? std::min(*old->expires, end) : end;
    }
    rows.push_back(std::move(fresh));
    TRY(write_rows(files, std::move(rows)));
    if (file.empty()) {
        fmt::print("{}\n", token);
        return {};
    }
    TRY(api::write_private_file(fmt::format("{}/{}", files.pki(), file), token));
    if (!replaced.empty()) TRY(files.replace_in_kubeconfigs(replaced, token));
    fmt::print("{}/{} holds the new token {}\n", files.pki(), file, id);
    return {};
}

}  // namespace

int token(std::vector<std::string> words) {
    cli::CommandLine line(
        "Bearer tokens of a data directory. A running server obeys at the next request. Only hashes are kept: a token "
        "is "
        "shown once, when it is made.",
        "berth token");
    TokenOptions options;
    auto& list = line.command("list", "who has a token, and until when");
    auto& create = line.command("create", "a new token, on standard output");
    auto& revoke = line.command("revoke", "tokens that no longer count");
    auto& rotate = line.command("rotate", "a new token in the place of one; without an id, of admin.token");
    for (auto* each : {&list, &create, &revoke, &rotate}) {
        each->option("--data-dir", options.data_dir, "default ./berth-data");
    }
    create.option("--user", options.user, "who shows it, such as system:node:n1").required();
    create.option("--groups", options.groups, "his groups, such as system:nodes").separated_by(',');
    create.duration("--duration", options.duration, "how long it counts; 0 is for ever");
    create.option("--kubeconfig", options.kubeconfig, "write a kubeconfig with it instead of printing it");
    revoke.option("ids", options.ids, "as `berth token list` names them");
    revoke.option("--user", options.user, "all tokens of a user");
    rotate.option("id", options.id, "as `berth token list` names it");
    rotate.duration("--overlap", options.overlap, "how long the old one still counts");
    line.example("berth token list", "who has a token of ./berth-data");
    list.example("berth token list --data-dir /var/lib/berth", "who has a token, and until when");
    create.example("berth token create --user ci --groups system:masters --duration 24h", "an administrator for a day");
    create.example("berth token create --user system:node:n1 --groups system:nodes --kubeconfig n1.kubeconfig",
                   "a node");
    revoke.example("berth token revoke --user ci", "all of his");
    rotate.example("berth token rotate --overlap 1h", "a new admin.token; the old one counts for another hour");
    if (const auto code = line.parse(std::move(words))) return *code;
    if (list.given()) return finish("berth token list", list_tokens(options));
    if (create.given()) return finish("berth token create", create_token(options));
    if (revoke.given()) return finish("berth token revoke", revoke_tokens(options));
    return finish("berth token rotate", rotate_token(options));
}

}  // namespace berth::app
