#include "link/iri_pin.h"

#include <fmt/format.h>
#include <openssl/x509v3.h>

#include <algorithm>

#include "base/clipped.h"

namespace berth::link {
namespace {

constexpr std::string_view kTold = "the certificate shown has none of the names that may ask here";
constexpr size_t kMostNames = 100;  // of a certificate
constexpr size_t kMostSaid = 200;
enum Frame : char { Headers = 1, Settings = 4 };
constexpr char kEndsAll = 5;  // END_STREAM | END_HEADERS

struct Free {
    void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};

std::string text_of(const ASN1_STRING* given) {
    return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(given)),
            static_cast<size_t>(ASN1_STRING_length(given))};
}

std::string common_name(const X509* certificate) {
    const X509_NAME* subject = X509_get_subject_name(certificate);
    const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    return at < 0 ? "" : text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
}

std::string number(uint32_t value, int bytes) {
    std::string out;
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
    return out;
}

std::string frame(Frame type, char flags, uint32_t stream, std::string_view body) {
    std::string out = number(static_cast<uint32_t>(body.size()), 3);
    out += static_cast<char>(type);
    out += flags;
    return out + number(stream, 4) += body;
}

// HPACK, as it is: no table, no Huffman. Both are shorter than 127.
std::string field(std::string_view name, std::string_view value) {
    std::string out(1, '\0');
    for (const auto word : {name, value}) {
        out += static_cast<char>(word.size());
        out += word;
    }
    return out;
}

}  // namespace

std::vector<std::string> names_of(const X509* certificate) {
    std::vector<std::string> out;
    const std::unique_ptr<GENERAL_NAMES, Free> all(
        static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
    for (int i = 0; i < sk_GENERAL_NAME_num(all.get()) && out.size() < kMostNames; ++i) {
        const GENERAL_NAME* name = sk_GENERAL_NAME_value(all.get(), i);
        if (name->type == GEN_URI || name->type == GEN_DNS) out.push_back(text_of(name->d.ia5));
    }
    if (out.empty()) out.push_back(common_name(certificate));
    return out;
}

std::string why_not(const X509* certificate, const std::vector<std::string>& wanted) {
    if (wanted.empty()) return {};
    if (certificate == nullptr) return "a client showed no certificate";
    const auto names = names_of(certificate);
    const auto is_wanted = [&](const std::string& name) { return std::ranges::count(wanted, name) > 0; };
    if (std::ranges::any_of(names, is_wanted)) return {};
    return fmt::format("a client's certificate is of {}, not of {} (--client-name)",
                       base::clipped(fmt::format("{}", fmt::join(names, ", ")), kMostSaid), fmt::join(wanted, " or "));
}

std::string no_settings() {
    return frame(Settings, 0, 0, "");
}

std::string refused_call(uint32_t stream) {
    constexpr char kStatus200 = '\x88';
    std::string fields(1, kStatus200);
    fields += field("content-type", "application/grpc");
    fields += field("grpc-status", "7");  // PERMISSION_DENIED
    fields += field("grpc-message", kTold);
    return frame(Headers, kEndsAll, stream, fields);
}

}  // namespace berth::link
