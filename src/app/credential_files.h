#pragma once

#include <string>
#include <vector>

#include "api/files.h"
#include "api/pki.h"
#include "base/clock.h"

// What the commands token and certificate share: D/pki while nobody else changes it, and the kubeconfigs beside it.
namespace berth::app {

class CredentialFiles {
public:
    // Makes the directory if there is none: a server that starts there later finds what was made before.
    static Result<CredentialFiles> open(const std::string& data_dir);

    const std::string& pki() const { return pki_; }
    // In the server's kubeconfigs, the old text becomes the new one.
    Status replace_in_kubeconfigs(const std::string& old_text, const std::string& new_text) const;
    // A kubeconfig of another identity for the same server, which must have been started once.
    Status write_kubeconfig(const std::string& file, const std::string& user, const api::KeyPair& pair,
                            const std::string& token) const;

private:
    CredentialFiles(std::string data_dir, std::string pki, api::DirectoryLock lock)
        : data_dir_(std::move(data_dir)), pki_(std::move(pki)), lock_(std::move(lock)) {}

    std::string data_dir_;
    std::string pki_;
    api::DirectoryLock lock_;
};

// An empty list of a directory that is not there would be an answer to a mistyped name.
Status check_data_dir(const std::string& data_dir);
base::Time now_in_seconds();
// "berth token: MESSAGE" and exit code 1, or 0.
int finish(const char* command, const Status& done);

}  // namespace berth::app
