#include "api/credentials.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <sys/stat.h>

#include <algorithm>
#include <sstream>

#include "api/files.h"
#include "api/pki.h"
#include "base/log.h"
#include "model/times.h"

namespace berth::api {
namespace {

constexpr std::string_view kTokens = "tokens";
constexpr std::string_view kRevoked = "revoked";
constexpr auto kBetweenComplaints = std::chrono::seconds(10);

std::string beside(const std::string& directory, std::string_view file) {
    return fmt::format("{}/{}", directory, file);
}

std::vector<std::string> words_of(const std::string& line) {
    std::istringstream in(line);
    std::vector<std::string> out;
    for (std::string word; in >> word;) out.push_back(std::move(word));
    return out;
}

std::string word(const std::string& text) {
    return text.empty() ? "-" : text;
}

std::string word(const std::optional<base::Time>& time) {
    return time ? model::time_text(*time) : "-";
}

Result<std::optional<base::Time>> optional_time(const std::string& text) {
    if (text == "-") return std::optional<base::Time>{};
    return std::optional(TRY(model::parse_time(text)));
}

bool is_hash(const std::string& text) {
    return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

Result<TokenRow> parse_token_row(const std::string& line) {
    auto words = words_of(line);
    if (words.size() < 2 || words.size() > 6 || !is_hash(words[0])) {
        return base::bad_request("it is not \"SHA256 USER GROUPS CREATED EXPIRES FILE\"");
    }
    words.resize(6, "-");
    TokenRow row{words[0], words[1], {}, TRY(optional_time(words[3])), TRY(optional_time(words[4])), ""};
    std::istringstream groups(words[2] == "-" ? "" : words[2]);
    for (std::string group; std::getline(groups, group, ',');) {
        if (!group.empty()) row.groups.push_back(group);
    }
    if (words[5] != "-") row.file = words[5];
    if (row.file.find('/') != std::string::npos) return base::bad_request("its file is not beside it");
    return row;
}

Result<Revocation> parse_revocation(const std::string& line) {
    const auto words = words_of(line);
    if (words.size() != 3 || (words[0] != "serial" && words[0] != "user")) {
        return base::bad_request("it is not \"serial HEX TIME\" or \"user NAME TIME\"");
    }
    return Revocation{words[0] == "user", words[1], TRY(model::parse_time(words[2]))};
}

// Every line on its own; who is not told of a bad one goes on without it.
template <class Row, class Parse>
Result<std::vector<Row>> parse_lines(std::string_view what, std::string_view text, Parse parse, bool strict) {
    std::vector<Row> out;
    std::istringstream lines{std::string(text)};
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        if (line.empty() || line[0] == '#') continue;
        auto row = parse(line);
        if (row) {
            out.push_back(std::move(*row));
            continue;
        }
        const auto wrong =
            fmt::format("line {} of the file {} counts for nothing: {}", number, what, row.error().message);
        if (strict) return base::bad_request(wrong);
        base::log_error("A credential cannot be read", {{"error", wrong}});
    }
    return out;
}

// Of a file that need not be there.
Result<std::string> text_in(const std::string& directory, std::string_view file) {
    auto text = read_file(beside(directory, file));
    if (!text && text.error().reason == Reason::NotFound) return std::string();
    return text;
}

// The hash of the token that a file holds; empty when there is none.
std::string hash_in(const std::string& path) {
    const auto token = read_token(path);
    return token && !token->empty() ? sha256_hex(*token) : "";
}

Identity identity_of(const TokenRow& row) {
    Identity out{row.user, row.groups};
    out.groups.emplace_back(kAuthenticated);
    out.token_hash = row.hash;
    return out;
}

}  // namespace

Result<std::vector<TokenRow>> parse_token_rows(std::string_view text) {
    return parse_lines<TokenRow>(kTokens, text, parse_token_row, true);
}

std::string token_rows_text(const std::vector<TokenRow>& rows) {
    std::string out = "# SHA256 USER GROUPS CREATED EXPIRES FILE; see berth token --help\n";
    for (const auto& row : rows) {
        out +=
            fmt::format("{} {} {} {} {} {}\n", row.hash, row.user, word(fmt::format("{}", fmt::join(row.groups, ","))),
                        word(row.created), word(row.expires), word(row.file));
    }
    return out;
}

Status check_identity_words(const std::string& user, const std::vector<std::string>& groups) {
    const auto plain = [](const std::string& text) {
        return !text.empty() && text != "-" &&
               std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c != ',' && c != 127; });
    };
    for (const auto& group : groups) {
        if (!plain(group)) return base::bad_request(fmt::format("\"{}\" cannot be the name of a group", group));
    }
    if (!plain(user)) return base::bad_request(fmt::format("\"{}\" cannot be the name of a user", user));
    return {};
}

bool Revocation::covers(const PeerCertificate& certificate) const {
    return of_user ? certificate.common_name == what && certificate.not_before < at : certificate.serial == what;
}

Result<std::vector<Revocation>> parse_revocations(std::string_view text) {
    return parse_lines<Revocation>(kRevoked, text, parse_revocation, true);
}

std::string revocations_text(const std::vector<Revocation>& revocations) {
    std::string out = "# serial HEX TIME, or user NAME TIME; see berth certificate --help\n";
    for (const auto& it : revocations) {
        out += fmt::format("{} {} {}\n", it.of_user ? "user" : "serial", it.what, model::time_text(it.at));
    }
    return out;
}

bool revoked(const std::vector<Revocation>& revocations, const PeerCertificate& certificate) {
    return std::any_of(revocations.begin(), revocations.end(),
                       [&](const Revocation& it) { return it.covers(certificate); });
}

Result<std::vector<TokenRow>> read_token_rows(const std::string& directory) {
    return parse_token_rows(TRY(text_in(directory, kTokens)));
}

Status write_token_rows(const std::string& directory, const std::vector<TokenRow>& rows) {
    return write_private_file(beside(directory, kTokens), token_rows_text(rows));
}

Result<std::vector<Revocation>> read_revocations(const std::string& directory) {
    return parse_revocations(TRY(text_in(directory, kRevoked)));
}

Status write_revocations(const std::string& directory, const std::vector<Revocation>& revocations) {
    return write_private_file(beside(directory, kRevoked), revocations_text(revocations));
}

Result<std::shared_ptr<Credentials>> Credentials::open(std::string directory, const base::Clock& clock,
                                                       base::Duration look_every) {
    TRY(read_token_rows(directory));
    TRY(read_revocations(directory));
    return std::shared_ptr<Credentials>(new Credentials(std::move(directory), clock, look_every));
}

Credentials::Stamps Credentials::stamps() const {
    Stamps out{};
    size_t i = 0;
    for (const auto file : {kTokens, kRevoked, kAdminToken}) {
        Stamp& stamp = out[i++];
        struct stat info{};
        if (::stat(beside(directory_, file).c_str(), &info) != 0) {
            stamp = {-1, 0, 0, 0};
            continue;
        }
        const auto changed = info.st_ctim.tv_sec * 1'000'000'000LL + info.st_ctim.tv_nsec;
        stamp = {static_cast<int64_t>(info.st_ino), static_cast<int64_t>(info.st_size), changed, 1};
    }
    return out;
}

Result<Credentials::Known> Credentials::read() const {
    Known out;
    const std::string tokens = TRY(text_in(directory_, kTokens)), revocations = TRY(text_in(directory_, kRevoked));
    out.tokens = *parse_lines<TokenRow>(kTokens, tokens, parse_token_row, false);
    out.revocations = *parse_lines<Revocation>(kRevoked, revocations, parse_revocation, false);
    std::erase_if(out.tokens, [&](const TokenRow& row) {
        return !row.file.empty() && hash_in(beside(directory_, row.file)) != row.hash;
    });
    return out;
}

std::shared_ptr<const Credentials::Known> Credentials::now() {
    const auto now = clock_.now();
    const std::lock_guard lock(mutex_);
    if (looked_ && now - *looked_ < look_every_) return known_;
    looked_ = now;
    const Stamps stamps = this->stamps();
    if (stamps == seen_) return known_;
    auto fresh = read();
    if (fresh) {
        known_ = std::make_shared<const Known>(std::move(*fresh));
        seen_ = stamps;
    } else if (now - complained_ >= kBetweenComplaints) {
        complained_ = now;
        base::log_error("The credentials cannot be read again, so the old ones count", {{"error", fresh.error()}});
    }
    return known_;
}

std::optional<Identity> Credentials::identify(std::string_view token) {
    const std::string hash = sha256_hex(token);
    const auto known = now();
    const TokenRow* found = nullptr;
    for (const auto& row : known->tokens) {
        if (CRYPTO_memcmp(row.hash.data(), hash.data(), hash.size()) == 0) found = &row;
    }
    if (found == nullptr || found->expired(clock_.wall())) return std::nullopt;
    return identity_of(*found);
}

bool Credentials::accepts(const PeerCertificate& certificate) {
    const auto known = now();
    return certificate.not_after > clock_.wall() && !revoked(known->revocations, certificate);
}

bool Credentials::still_accepts(const Identity& who) {
    if (who.certificate != nullptr) return accepts(*who.certificate);
    if (who.token_hash.empty()) return true;
    const auto known = now();
    return std::any_of(known->tokens.begin(), known->tokens.end(),
                       [&](const TokenRow& row) { return row.hash == who.token_hash && !row.expired(clock_.wall()); });
}

}  // namespace berth::api
