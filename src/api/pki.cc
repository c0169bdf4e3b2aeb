#include "api/pki.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "api/credentials.h"
#include "api/files.h"
#include "api/x509.h"
#include "base/private_file.h"

namespace berth::api {
namespace {

template <auto Free>
struct Freed {
    template <class T>
    void operator()(T* pointer) const {
        Free(pointer);
    }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;

constexpr int kDay = 24 * 3600;
constexpr int kBackdated = 300;  // for clients whose clocks are late
constexpr int kClientDays = 365;

constexpr std::string_view kAdmin = "berth-admin";

struct Subject {
    std::string user;
    std::vector<std::string> groups = {};
};

struct Profile {
    Subject subject;
    int days;
    std::vector<std::pair<int, std::string>> extensions;  // NID, value in OpenSSL's notation
    long seconds = 0;                                     // beside the days
    time_t not_before = 0;                                // 0: a little before it is issued
};

time_t seconds_of(base::Time at) {
    return at.nanos / 1'000'000'000;
}

std::string text_of(BIO* bio) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    return {data, static_cast<size_t>(size)};
}

std::string pem_of(X509* certificate) {
    const Bio bio(BIO_new(BIO_s_mem()));
    PEM_write_bio_X509(bio.get(), certificate);
    return text_of(bio.get());
}

std::string pem_of(EVP_PKEY* key) {
    const Bio bio(BIO_new(BIO_s_mem()));
    PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
    return text_of(bio.get());
}

Certificate parse_certificate(const std::string& pem) {
    const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    return Certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
}

Key parse_key(const std::string& pem) {
    const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    return Key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
}

bool set_serial(X509* certificate) {
    unsigned char bytes[16];
    if (RAND_bytes(bytes, sizeof(bytes)) != 1) return false;
    bytes[0] &= 0x7f;
    const std::unique_ptr<BIGNUM, Freed<BN_free>> number(BN_bin2bn(bytes, sizeof(bytes), nullptr));
    return BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool set_subject(X509* certificate, const Subject& subject) {
    X509_NAME* name = X509_get_subject_name(certificate);
    const auto add = [name](const char* field, const std::string& value) {
        return X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                                          reinterpret_cast<const unsigned char*>(value.data()),
                                          static_cast<int>(value.size()), -1, 0) == 1;
    };
    bool ok = true;
    for (const auto& group : subject.groups) ok = ok && add("O", group);
    return ok && add("CN", subject.user);
}

bool add_extensions(X509* certificate, X509* issuer, const Profile& profile) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
    for (const auto& [nid, value] : profile.extensions) {
        const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
        if (extension == nullptr || X509_add_ext(certificate, extension.get(), -1) != 1) return false;
    }
    return true;
}

// Signs itself when issuer is nullptr.
Result<KeyPair> issue(const Profile& profile, const KeyPair* issuer, base::Time now) {
    const Error failed = base::internal(fmt::format("cannot make the certificate of {}", profile.subject.user));
    const Key key(EVP_EC_gen("P-256"));
    const Certificate certificate(X509_new());
    const Certificate ca = issuer != nullptr ? parse_certificate(issuer->certificate_pem) : nullptr;
    const Key ca_key = issuer != nullptr ? parse_key(issuer->key_pem) : nullptr;
    if (!key || !certificate || (issuer != nullptr && (!ca || !ca_key))) return failed;
    X509* signer = ca ? ca.get() : certificate.get();
    X509_set_version(certificate.get(), 2);
    time_t from = seconds_of(now);
    const time_t begins = profile.not_before != 0 ? profile.not_before : from - kBackdated;
    ASN1_TIME_set(X509_getm_notBefore(certificate.get()), begins);
    X509_time_adj_ex(X509_getm_notAfter(certificate.get()), profile.days, profile.seconds, &from);
    if (!set_serial(certificate.get()) || !set_subject(certificate.get(), profile.subject) ||
        X509_set_issuer_name(certificate.get(), X509_get_subject_name(signer)) != 1 ||
        X509_set_pubkey(certificate.get(), key.get()) != 1 || !add_extensions(certificate.get(), signer, profile) ||
        X509_sign(certificate.get(), ca_key ? ca_key.get() : key.get(), EVP_sha256()) == 0) {
        return failed;
    }
    return KeyPair{pem_of(certificate.get()), pem_of(key.get())};
}

Profile ca_profile() {
    return {{"berth-ca"},
            3650,
            {{NID_basic_constraints, "critical,CA:TRUE"},
             {NID_key_usage, "critical,keyCertSign,cRLSign,digitalSignature"},
             {NID_subject_key_identifier, "hash"}}};
}

bool is_address(const std::string& host) {
    unsigned char bytes[16];
    return inet_pton(AF_INET, host.c_str(), bytes) == 1 || inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

Profile server_profile(const std::vector<std::string>& hosts) {
    std::string names;
    for (const auto& host : hosts)
        names += fmt::format("{}{}:{}", names.empty() ? "" : ",", is_address(host) ? "IP" : "DNS", host);
    return {{"berth-apiserver"},
            365,
            {{NID_basic_constraints, "critical,CA:FALSE"},
             {NID_key_usage, "critical,digitalSignature"},
             {NID_ext_key_usage, "serverAuth"},
             {NID_authority_key_identifier, "keyid"},
             {NID_subject_alt_name, names}}};
}

Profile client_profile(const Subject& subject, int days = kClientDays) {
    return {subject,
            days,
            {{NID_basic_constraints, "critical,CA:FALSE"},
             {NID_key_usage, "critical,digitalSignature"},
             {NID_ext_key_usage, "clientAuth"},
             {NID_authority_key_identifier, "keyid"}}};
}

bool names_host(X509* certificate, const std::string& host) {
    return is_address(host) ? X509_check_ip_asc(certificate, host.c_str(), 0) == 1
                            : X509_check_host(certificate, host.data(), host.size(), 0, nullptr) == 1;
}

bool signed_by(X509* certificate, const KeyPair& ca) {
    const Certificate issuer = parse_certificate(ca.certificate_pem);
    return issuer && X509_verify(certificate, X509_get0_pubkey(issuer.get())) == 1;
}

bool still_good(const KeyPair& pair, const KeyPair& ca, const std::vector<std::string>& hosts, base::Time now) {
    const Certificate certificate = parse_certificate(pair.certificate_pem);
    const Key key = parse_key(pair.key_pem);
    if (!certificate || !key || X509_check_private_key(certificate.get(), key.get()) != 1) return false;
    time_t in_a_month = seconds_of(now) + 30 * kDay;
    if (X509_cmp_time(X509_get0_notAfter(certificate.get()), &in_a_month) <= 0) return false;
    for (const auto& host : hosts) {
        if (!names_host(certificate.get(), host)) return false;
    }
    return signed_by(certificate.get(), ca);
}

Result<KeyPair> read_pair(const std::string& base) {
    return KeyPair{TRY(read_file(base + ".crt")), TRY(read_file(base + ".key"))};
}

Status write_pair(const std::string& base, const KeyPair& pair) {
    TRY(write_private_file(base + ".key", pair.key_pem));
    return write_private_file(base + ".crt", pair.certificate_pem);
}

// The pair NAME.crt, NAME.key of the directory, issued anew unless it can be used.
Result<KeyPair> load_or_issue(const std::string& directory, const std::string& name, const Profile& profile,
                              const KeyPair* ca, const std::vector<std::string>& hosts, base::Time now) {
    const std::string base = directory + "/" + name;
    auto certificate = read_file(base + ".crt");
    auto key = read_file(base + ".key");
    if (certificate && key) {
        KeyPair found{*certificate, *key};
        if (still_good(found, ca != nullptr ? *ca : found, hosts, now)) return found;
        if (ca == nullptr) {
            return base::internal(
                fmt::format("{}.crt and its key cannot be used; remove {} to start anew", base, directory));
        }
    }
    KeyPair made = TRY(issue(profile, ca, now));
    TRY(write_pair(base, made));
    return made;
}

// What begins when all of the user's that were revoked are over.
time_t begin_behind(const std::vector<Revocation>& revocations, const std::string& user, base::Time now) {
    time_t out = seconds_of(now) - kBackdated;
    for (const auto& it : revocations) {
        if (it.of_user && it.what == user) out = std::max(out, seconds_of(it.at));
    }
    return out;
}

Result<KeyPair> issue_for(const std::string& directory, const KeyPair& ca, const Subject& subject, int days,
                          base::Time now) {
    Profile profile = client_profile(subject, days);
    profile.not_before = begin_behind(TRY(read_revocations(directory)), subject.user, now);
    return issue(profile, &ca, now);
}

// One of our own clients; anew also when it was revoked.
Result<KeyPair> own_client(const std::string& directory, const std::string& name, const KeyPair& ca,
                           const Subject& subject, base::Time now) {
    const auto revocations = TRY(read_revocations(directory));
    const auto there = read_file(directory + "/" + name + ".crt");
    if (there) {
        const Certificate certificate = parse_certificate(*there);
        if (certificate && revoked(revocations, read_certificate(certificate.get()))) {
            return TRY(renew_client(directory, name, now)).now;
        }
    }
    return load_or_issue(directory, name, client_profile(subject), &ca, {}, now);
}

// Rows that an earlier version wrote for an admin.token, and did not take back when that file was removed.
bool of_admin_token(const TokenRow& row) {
    const bool unnamed = !row.created && row.user == kAdmin && row.groups == std::vector<std::string>{"system:masters"};
    return row.file == kAdminToken || unnamed;
}

// The admin's token, and its row among those that the server compares with: it follows the file.
Status load_or_make_admin_token(const std::string& directory, Pki& pki, base::Time now) {
    const std::string path = fmt::format("{}/{}", directory, kAdminToken);
    pki.admin_token = read_token(path).value_or("");
    if (pki.admin_token.empty()) {
        pki.admin_token = random_token();
        TRY(write_private_file(path, pki.admin_token));
    }
    auto rows = TRY(read_token_rows(directory));
    const std::string before = token_rows_text(rows);
    const std::string hash = sha256_hex(pki.admin_token);
    const auto same = std::find_if(rows.begin(), rows.end(), [&](const TokenRow& row) { return row.hash == hash; });
    TokenRow own{hash, std::string(kAdmin), {"system:masters"}, now, {}, std::string(kAdminToken)};
    if (same != rows.end() && same->created) own.created = same->created;
    std::erase_if(rows, [&](const TokenRow& row) { return row.hash == hash || of_admin_token(row); });
    rows.push_back(std::move(own));
    // A start on a full disk writes nothing.
    return token_rows_text(rows) == before ? Status() : write_token_rows(directory, rows);
}

// Whoever reads one of these files is the administrator; who writes one becomes it.
Status check_modes(const std::string& directory) {
    struct stat info{};
    if (::stat(directory.c_str(), &info) == 0 && (info.st_mode & 022) != 0) {
        return base::bad_request(
            fmt::format("{} holds keys, and others may change what is in it (mode {:04o}): run chmod 700 {}", directory,
                        info.st_mode & 07777, directory));
    }
    for (const auto* file : {"ca.key", "server.key", "admin.key", "scheduler.key", "tokens", "revoked"}) {
        TRY(base::check_private(fmt::format("{}/{}", directory, file)));
    }
    return base::check_private(fmt::format("{}/{}", directory, kAdminToken));
}

}  // namespace

Result<Pki> open_pki(const std::string& directory, const std::vector<std::string>& hosts, base::Time now) {
    TRY(base::make_private_directory(directory));
    const DirectoryLock lock = TRY(DirectoryLock::take(directory));
    TRY(check_modes(directory));
    Pki pki;
    const KeyPair ca = TRY(load_or_issue(directory, "ca", ca_profile(), nullptr, {}, now));
    pki.ca_pem = ca.certificate_pem;
    pki.server = TRY(load_or_issue(directory, "server", server_profile(hosts), &ca, hosts, now));
    pki.admin = TRY(own_client(directory, "admin", ca, {std::string(kAdmin), {"system:masters"}}, now));
    pki.scheduler = TRY(own_client(directory, "scheduler", ca, {"berth-scheduler", {"berth:schedulers"}}, now));
    TRY(load_or_make_admin_token(directory, pki, now));
    return pki;
}

Result<KeyPair> issue_client(const std::string& directory, const std::string& user,
                             const std::vector<std::string>& groups, int days, base::Time now) {
    const KeyPair ca = TRY(read_pair(directory + "/ca"));
    const KeyPair made = TRY(issue_for(directory, ca, {user, groups}, days, now));
    const auto says = read_certificate(parse_certificate(made.certificate_pem).get());
    TRY(base::make_private_directory(directory + "/issued"));
    TRY(write_private_file(fmt::format("{}/issued/{}.crt", directory, says.serial), made.certificate_pem));
    return made;
}

Result<std::vector<Issued>> client_certificates(const std::string& directory) {
    std::vector<std::string> files{"admin.crt", "scheduler.crt"};
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(directory + "/issued", none)) {
        if (entry.path().extension() == ".crt") files.push_back("issued/" + entry.path().filename().string());
    }
    std::sort(files.begin() + 2, files.end());
    std::vector<Issued> out;
    for (auto& file : files) {
        const auto pem = read_file(directory + "/" + file);
        const Certificate certificate = pem ? parse_certificate(*pem) : nullptr;
        if (certificate) out.push_back({std::move(file), read_certificate(certificate.get())});
    }
    return out;
}

Result<Renewed> renew_client(const std::string& directory, const std::string& name, base::Time now) {
    const std::string base = directory + "/" + name;
    Renewed out{TRY(read_pair(base)), {}};
    const Certificate old = parse_certificate(out.before.certificate_pem);
    if (!old) return base::internal(fmt::format("{}.crt cannot be read", base));
    const auto says = read_certificate(old.get());
    const KeyPair ca = TRY(read_pair(directory + "/ca"));
    out.now = TRY(issue_for(directory, ca, {says.common_name, says.organizations}, kClientDays, now));
    TRY(write_pair(base, out.now));
    return out;
}

Result<ServingCertificate> issue_serving(const std::string& name, const std::vector<std::string>& hosts,
                                         std::chrono::seconds life, base::Time now) {
    Profile authority = ca_profile(), server = server_profile(hosts);
    authority.subject.user = name + "-ca";
    server.subject.user = name;
    for (Profile* profile : {&authority, &server}) {
        profile->days = 0;
        profile->seconds = life.count();
    }
    const KeyPair ca = TRY(issue(authority, nullptr, now));
    return ServingCertificate{ca.certificate_pem, TRY(issue(server, &ca, now))};
}

std::string random_token() {
    unsigned char bytes[32];
    CHECK(RAND_bytes(bytes, sizeof(bytes)) == 1);
    std::string out;
    for (const unsigned char byte : bytes) out += fmt::format("{:02x}", byte);
    return out;
}

std::string sha256_hex(std::string_view text) {
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
    std::string out;
    for (const unsigned char byte : digest) out += fmt::format("{:02x}", byte);
    return out;
}

}  // namespace berth::api
