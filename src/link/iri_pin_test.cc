#include "link/iri_pin.h"

#include <gtest/gtest.h>
#include <openssl/x509v3.h>

#include <memory>

namespace berth::link {
namespace {

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

// `names` as OpenSSL's configuration writes them, such as DNS:a,URI:spiffe://b.
Certificate certificate(const std::string& common_name, const std::string& names) {
    Certificate out(X509_new(), X509_free);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(out.get()), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(common_name.data()),
                               static_cast<int>(common_name.size()), -1, 0);
    if (names.empty()) return out;
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names.c_str());
    X509_add_ext(out.get(), extension, -1);
    X509_EXTENSION_free(extension);
    return out;
}

// The words a certificate is refused with, for whom a runtime wants.
std::string refusal(const Certificate& shown, const std::vector<std::string>& wanted) {
    return why_not(shown.get(), wanted);
}

TEST(IriPin, WithoutNamesWhoeverIsSignedMayAsk) {
    EXPECT_EQ(refusal(certificate("anybody", ""), {}), "");
}

TEST(IriPin, OneOfItsNamesIsEnough) {
    const auto shown = certificate("z1", "DNS:z1.example,URI:spiffe://fleet/z1,IP:10.0.0.1");
    EXPECT_EQ(refusal(shown, {"spiffe://fleet/z1"}), "");
    EXPECT_EQ(refusal(shown, {"other", "z1.example"}), "");
}

// Whoever may choose his common name, but not the names that his authority looked at, comes no further by it.
TEST(IriPin, ACommonNameCountsWhereThereIsNoOtherName) {
    EXPECT_EQ(refusal(certificate("z1", ""), {"z1"}), "");
    EXPECT_EQ(refusal(certificate("z1", "IP:10.0.0.1"), {"z1"}), "");
    EXPECT_EQ(refusal(certificate("z1", "DNS:z2"), {"z1"}),
              "a client's certificate is of z2, not of z1 (--client-name)");
}

TEST(IriPin, NamesAreWholeAndExact) {
    const std::string with_nul("z1\0.evil.example", 16);
    for (const auto& other : {std::string("z1.evil.example"), std::string("*.example"), std::string("z"), std::string(),
                              std::string("Z1"), with_nul})
        EXPECT_NE(refusal(certificate(other, ""), {"z1", "z2.example"}), "") << other;
}

TEST(IriPin, ManyNamesAreSaidInPart) {
    std::string many = "DNS:z0";
    for (int i = 1; i < 500; ++i) many += ",DNS:z" + std::to_string(i);
    const auto said = refusal(certificate("z", many), {"right"});
    EXPECT_LT(said.size(), 300U);
    EXPECT_EQ(refusal(Certificate(nullptr, X509_free), {"right"}), "a client showed no certificate");
}

}  // namespace
}  // namespace berth::link
