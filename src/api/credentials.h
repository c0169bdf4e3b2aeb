#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http.h"
#include "api/identity.h"
#include "base/clock.h"

// Which tokens and certificates count, as the files of D/pki say. A change of them is in force with the next request.
namespace berth::api {

inline constexpr std::string_view kAdminToken = "admin.token";

// What a bearer token stands for. The token itself is not kept, except in the file that the row may name.
struct TokenRow {
    std::string hash;  // SHA-256 in hex
    std::string user;
    std::vector<std::string> groups;
    std::optional<base::Time> created = {};
    std::optional<base::Time> expires = {};
    std::string file = {};  // beside the rows; the row counts while that file holds the token

    std::string id() const { return hash.substr(0, 12); }
    bool expired(base::Time now) const { return expires && *expires <= now; }
};

// "HASH USER GROUP,GROUP CREATED EXPIRES FILE", one a line; "-" is nothing; the last three may be missing; '#' begins a
// comment.
Result<std::vector<TokenRow>> parse_token_rows(std::string_view text);
std::string token_rows_text(const std::vector<TokenRow>& rows);
// Neither may have spaces, commas or control characters.
Status check_identity_words(const std::string& user, const std::vector<std::string>& groups);

// A certificate that no longer counts, by its serial number; or all of a user that are valid from before that time.
struct Revocation {
    bool of_user = false;
    std::string what;
    base::Time at;

    bool covers(const PeerCertificate& certificate) const;
};
// "serial HEX TIME" or "user NAME TIME", one a line.
Result<std::vector<Revocation>> parse_revocations(std::string_view text);
std::string revocations_text(const std::vector<Revocation>& revocations);
bool revoked(const std::vector<Revocation>& revocations, const PeerCertificate& certificate);

Result<std::vector<TokenRow>> read_token_rows(const std::string& directory);
Status write_token_rows(const std::string& directory, const std::vector<TokenRow>& rows);
Result<std::vector<Revocation>> read_revocations(const std::string& directory);
Status write_revocations(const std::string& directory, const std::vector<Revocation>& revocations);

// What counts in a directory now. Looks at the times of the files when it is asked, once in `look_every` at most, and
// reads them again when they changed. A file that cannot be read then leaves things as they were, is logged, and is
// tried again with the next question; a line that makes no sense counts for nothing. Any thread.
class Credentials {
public:
    static Result<std::shared_ptr<Credentials>> open(std::string directory, const base::Clock& clock,
                                                     base::Duration look_every = std::chrono::milliseconds(1));

    std::optional<Identity> identify(std::string_view token);
    bool accepts(const PeerCertificate& certificate);
    // Whether what somebody was known by still counts; a component in the process always does.
    bool still_accepts(const Identity& who);

private:
    struct Known {
        std::vector<TokenRow> tokens;
        std::vector<Revocation> revocations;
    };
    // Of each file: inode, size, and when it was changed.
    using Stamp = std::array<int64_t, 4>;
    using Stamps = std::array<Stamp, 3>;

    Credentials(std::string directory, const base::Clock& clock, base::Duration look_every)
        : directory_(std::move(directory)), clock_(clock), look_every_(look_every) {}
    std::shared_ptr<const Known> now();
    Stamps stamps() const;
    Result<Known> read() const;

    const std::string directory_;
    const base::Clock& clock_;
    const base::Duration look_every_;
    std::mutex mutex_;
    std::optional<base::Instant> looked_;
    Stamps seen_{};
    base::Instant complained_{};
    std::shared_ptr<const Known> known_ = std::make_shared<Known>();
};

}  // namespace berth::api
