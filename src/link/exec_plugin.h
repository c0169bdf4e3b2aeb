#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json_fwd.h"
#include "base/result.h"

namespace berth::link {

// user.exec of a kubeconfig: a program that prints who we are, as an ExecCredential of client.authentication.k8s.io.
struct ExecPlugin {
    enum class Input : uint8_t { Never, IfAvailable, Always };

    std::string command;
    std::vector<std::string> args;
    std::vector<std::pair<std::string, std::string>> env;
    std::string api_version;
    std::string install_hint;
    Input input = Input::IfAvailable;
    bool wants_cluster = false;  // provideClusterInfo
    std::string cluster = {};    // then: spec.cluster of what it is told, as JSON
    bool operator==(const ExecPlugin&) const = default;
};

struct Credential {
    std::string token;
    std::string certificate_pem;
    std::string key_pem;
    std::optional<base::Time> expires;
    bool operator==(const Credential&) const = default;
};

// What stands below user.exec. The error names the field.
Result<ExecPlugin> read_exec_plugin(const Json& exec);
// What the plugin printed.
Result<Credential> read_exec_credential(const ExecPlugin& plugin, std::string_view output);

// Runs it and waits: half a minute, or five where a person can answer it at a terminal.
Result<Credential> run_exec_plugin(const ExecPlugin& plugin, int stop = -1);

}  // namespace berth::link
