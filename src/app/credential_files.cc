#include "app/credential_files.h"

#include <fmt/format.h>

#include <filesystem>

#include "api/kubeconfig.h"
#include "base/private_file.h"
#include "cli/command.h"
#include "link/kubeconfig.h"

namespace berth::app {

Result<CredentialFiles> CredentialFiles::open(const std::string& data_dir) {
    const std::string pki = data_dir + "/pki";
    TRY(base::make_private_directory(data_dir));
    TRY(base::make_private_directory(pki));
    return CredentialFiles(data_dir, pki, TRY(api::DirectoryLock::take(pki)));
}

Status CredentialFiles::replace_in_kubeconfigs(const std::string& old_text, const std::string& new_text) const {
    for (const auto* name : {"/kubeconfig", "/scheduler.kubeconfig"}) {
        auto text = api::read_file(data_dir_ + name);
        if (!text) continue;
        const auto at = text->find(old_text);
        if (at == std::string::npos) continue;
        text->replace(at, old_text.size(), new_text);
        TRY(api::write_private_file(data_dir_ + name, *text));
    }
    return {};
}

Status CredentialFiles::write_kubeconfig(const std::string& file, const std::string& user, const api::KeyPair& pair,
                                         const std::string& token) const {
    const auto access = TRY(link::read_access({data_dir_ + "/kubeconfig"}));
    return api::write_private_file(
        file, api::kubeconfig_text(access.url(), access.ca_pem, {user, pair.certificate_pem, pair.key_pem}, token));
}

Status check_data_dir(const std::string& data_dir) {
    std::error_code trouble;
    if (std::filesystem::is_directory(data_dir, trouble)) return {};
    return base::bad_request(fmt::format("there is no data directory {}", data_dir));
}

base::Time now_in_seconds() {
    const auto now = base::system_clock().wall();
    return {now.nanos - now.nanos % 1'000'000'000};
}

int finish(const char* command, const Status& done) {
    if (done) return cli::kDone;
    fmt::print(stderr, "{}: {}\n", command, done.error().message);
    return cli::kFailed;
}

}  // namespace berth::app
