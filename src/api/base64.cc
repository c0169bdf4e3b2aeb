#include "api/base64.h"

#include <openssl/evp.h>

#include <algorithm>

namespace berth::api {

std::string base64_encode(std::string_view bytes) {
    std::string out(4 * ((bytes.size() + 2) / 3) + 1, '\0');
    const int size =
        EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                        reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
    out.resize(static_cast<size_t>(size));
    return out;
}

std::string base64url_encode(std::string_view bytes) {
    std::string out = base64_encode(bytes);
    while (!out.empty() && out.back() == '=') out.pop_back();
    std::replace(out.begin(), out.end(), '+', '-');
    std::replace(out.begin(), out.end(), '/', '_');
    return out;
}

std::optional<std::string> base64url_decode(std::string_view text) {
    std::string padded(text);
    while (!padded.empty() && padded.back() == '=') padded.pop_back();
    const size_t missing = (4 - padded.size() % 4) % 4;
    if (padded.empty() || missing == 3) return std::nullopt;
    for (char& c : padded) {
        if (c == '-')
            c = '+';
        else if (c == '_')
            c = '/';
    }
    padded.append(missing, '=');
    std::string out(padded.size() / 4 * 3, '\0');
    const int size =
        EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                        reinterpret_cast<const unsigned char*>(padded.data()), static_cast<int>(padded.size()));
    if (size < 0) return std::nullopt;
    out.resize(static_cast<size_t>(size) - missing);
    return out;
}

}  // namespace berth::api
