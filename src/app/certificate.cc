#include <fmt/format.h>

#include <algorithm>

#include "api/base64.h"
#include "api/credentials.h"
#include "app/commands.h"
#include "app/credential_files.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/text_table.h"
#include "model/times.h"

namespace berth::app {
namespace {

struct CertificateOptions {
    std::string data_dir = "./berth-data";
    std::string user;
    std::vector<std::string> groups;
    int days = 365;
    std::string out;
    std::string kubeconfig;
    std::vector<std::string> serials;
};

Status list_certificates(const CertificateOptions& options) {
    TRY(check_data_dir(options.data_dir));
    const std::string pki = options.data_dir + "/pki";
    const auto revocations = TRY(api::read_revocations(pki));
    cli::TextTable table({"SERIAL", "USER", "GROUPS", "EXPIRES", "STATE", "FILE"});
    const auto now = base::system_clock().wall();
    for (const auto& [file, says] : TRY(api::client_certificates(pki))) {
        const char* state = api::revoked(revocations, says) ? "revoked" : says.not_after <= now ? "expired" : "valid";
        table.add({says.serial, says.common_name, fmt::format("{}", fmt::join(says.organizations, ",")),
                   model::time_text(says.not_after), state, file});
    }
    fmt::print("{}", table.text());
    for (const auto& it : revocations) {
        fmt::print("revoked {} {} at {}\n", it.of_user ? "user" : "serial", it.what, model::time_text(it.at));
    }
    return {};
}

Status issue_certificate(const CertificateOptions& options) {
    TRY(api::check_identity_words(options.user, options.groups));
    if (options.out.empty() == options.kubeconfig.empty()) {
        return base::bad_request("say where to: --out NAME for NAME.crt and NAME.key, or --kubeconfig FILE");
    }
    const auto files = TRY(CredentialFiles::open(options.data_dir));
    const auto pair =
        TRY(api::issue_client(files.pki(), options.user, options.groups, options.days, base::system_clock().wall()));
    if (!options.kubeconfig.empty()) return files.write_kubeconfig(options.kubeconfig, options.user, pair, "");
    TRY(api::write_private_file(options.out + ".key", pair.key_pem));
    return api::write_private_file(options.out + ".crt", pair.certificate_pem);
}

// "0x1a:2B" -> "1A2B"
Result<std::string> plain_serial(const std::string& given) {
    std::string out;
    for (const char c : given.substr(given.starts_with("0x") ? 2 : 0)) {
        if (c == ':') continue;
        if (!std::isxdigit(static_cast<unsigned char>(c))) {
            return base::bad_request(fmt::format("\"{}\" is not a serial number in hex", given));
        }
        out += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    return out;
}

// Our own clients get a new certificate at once, in the kubeconfig too.
Status renew_own(const CredentialFiles& files, const std::vector<api::Revocation>& revocations) {
    for (const auto& [file, says] : TRY(api::client_certificates(files.pki()))) {
        if (file.starts_with("issued/") || !api::revoked(revocations, says)) continue;
        const auto renewed =
            TRY(api::renew_client(files.pki(), file.substr(0, file.rfind('.')), base::system_clock().wall()));
        const auto swap = [&](const std::string& before, const std::string& now) {
            return files.replace_in_kubeconfigs(api::base64_encode(before), api::base64_encode(now));
        };
        TRY(swap(renewed.before.certificate_pem, renewed.now.certificate_pem));
        TRY(swap(renewed.before.key_pem, renewed.now.key_pem));
        fmt::print("{} was made anew, in its kubeconfig too\n", file);
    }
    return {};
}

// Behind every certificate of the user that is known: one that was issued after an earlier revocation may begin now.
base::Time end_for(const std::string& user, const std::vector<api::Issued>& known) {
    base::Time out = now_in_seconds();
    for (const auto& [file, says] : known) {
        if (says.common_name == user) out = std::max(out, says.not_before + std::chrono::seconds(1));
    }
    return out;
}

Status revoke_certificates(const CertificateOptions& options) {
    if (options.serials.empty() == options.user.empty()) {
        return base::bad_request("say which certificates: their serial numbers, or --user for all of one user");
    }
    const auto files = TRY(CredentialFiles::open(options.data_dir));
    auto revocations = TRY(api::read_revocations(files.pki()));
    const auto known = TRY(api::client_certificates(files.pki()));
    for (const auto& serial : options.serials) {
        revocations.push_back({false, TRY(plain_serial(serial)), now_in_seconds()});
    }
    if (!options.user.empty()) {
        TRY(api::check_identity_words(options.user, {}));
        std::erase_if(revocations, [&](const auto& it) { return it.of_user && it.what == options.user; });
        revocations.push_back({true, options.user, end_for(options.user, known)});
    }
    TRY(api::write_revocations(files.pki(), revocations));
    for (const auto& [file, says] : known) {
        if (api::revoked(revocations, says)) fmt::print("revoked {} of {}\n", says.serial, says.common_name);
    }
    return renew_own(files, revocations);
}

}  // namespace

int certificate(std::vector<std::string> words) {
    cli::CommandLine line(
        "Client certificates of a data directory. A running server obeys at the next request, also on connections and "
        "watches that are open.",
        "berth certificate");
    CertificateOptions options;
    auto& list = line.command("list", "those that were issued here, and what was revoked");
    auto& issue = line.command("issue", "a certificate and its key for a user");
    auto& revoke = line.command("revoke", "certificates that no longer count");
    for (auto* each : {&list, &issue, &revoke}) {
        each->option("--data-dir", options.data_dir, "default ./berth-data");
    }
    issue.option("--user", options.user, "its CN, such as system:node:n1").required();
    issue.option("--groups", options.groups, "its O, such as system:nodes").separated_by(',');
    issue.option("--days", options.days, "how long it is valid").show_default().within(1, 3650);
    issue.option("--out", options.out, "NAME: writes NAME.crt and NAME.key");
    issue.option("--kubeconfig", options.kubeconfig, "write a kubeconfig with it");
    revoke.option("serials", options.serials, "in hex, as `berth certificate list` or openssl print them");
    revoke.option("--user", options.user, "all of a user that were issued until now");
    line.example("berth certificate list", "those of ./berth-data");
    list.example("berth certificate list --data-dir /var/lib/berth", "whom they name, and until when");
    issue.example("berth certificate issue --user eve --groups system:masters --days 30 --kubeconfig eve.kubeconfig",
                  "an administrator for a month");
    revoke.example("berth certificate revoke --user eve", "all that were issued to her until now");
    if (const auto code = line.parse(std::move(words))) return *code;
    if (list.given()) return finish("berth certificate list", list_certificates(options));
    if (issue.given()) return finish("berth certificate issue", issue_certificate(options));
    return finish("berth certificate revoke", revoke_certificates(options));
}

}  // namespace berth::app
