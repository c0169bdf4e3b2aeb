#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http.h"
#include "api/identity.h"

namespace berth::api {

// Says who sent a request: a client certificate (CN, O) or a bearer token.
class Authenticator {
public:
    // Rows "SHA256-HEX USER GROUP,GROUP", one a line; '#' begins a comment.
    static Result<Authenticator> from_token_rows(std::string_view rows);

    // The identity; anonymous when no credential was shown; nothing when one was shown and is wrong.
    std::optional<Identity> identify(const Request& request) const;
    std::optional<Identity> identify_token(std::string_view token) const;

private:
    struct Row {
        std::array<unsigned char, 32> hash;
        Identity identity;
    };
    std::vector<Row> rows_;
};

Identity anonymous();

// `kubectl --as`, --as-group, --as-uid, --as-user-extra: from here on `who` is whom the request names. Who may not is
// told so, and stays himself.
Status impersonate(const Request& request, Identity& who);

}  // namespace berth::api
