#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/credentials.h"
#include "api/http.h"
#include "api/identity.h"

namespace berth::api {

// Says who sent a request: a client certificate (CN, O) or a bearer token.
class Authenticator {
public:
    // Without credentials no token is known, and every certificate of our CA counts.
    explicit Authenticator(std::shared_ptr<Credentials> credentials = {}) : credentials_(std::move(credentials)) {}

    // The identity; anonymous when no credential was shown; nothing when one was shown and is wrong.
    std::optional<Identity> identify(const Request& request) const;

private:
    std::shared_ptr<Credentials> credentials_;
};

Identity anonymous();

// `kubectl --as`, --as-group, --as-uid, --as-user-extra: from here on `who` is whom the request names. Who may not is
// told so, and stays himself.
Status impersonate(const Request& request, Identity& who);

}  // namespace berth::api
