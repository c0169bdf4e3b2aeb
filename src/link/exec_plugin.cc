#include "link/exec_plugin.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/json.h"
#include "link/program.h"
#include "model/times.h"

namespace berth::link {
namespace {

constexpr std::string_view kV1 = "client.authentication.k8s.io/v1";
constexpr std::string_view kV1beta1 = "client.authentication.k8s.io/v1beta1";
constexpr base::Duration kAlone = std::chrono::seconds(30);
constexpr base::Duration kWithAPerson = std::chrono::minutes(5);

Error wrong_exec(std::string_view what) {
    return base::bad_request(fmt::format("user.exec{}", what));
}

Result<std::vector<std::string>> read_args(const Json& exec) {
    std::vector<std::string> out;
    const Json* args = base::find(exec, {"args"});
    if (args == nullptr || args->is_null()) return out;
    if (!args->is_array()) return wrong_exec(".args is not a list");
    for (const Json& each : args->get_array()) {
        if (!each.is_string()) return wrong_exec(fmt::format(".args: {} is not a string", base::to_text(each)));
        out.emplace_back(each.get_string());
    }
    return out;
}

Result<std::vector<std::pair<std::string, std::string>>> read_env(const Json& exec) {
    std::vector<std::pair<std::string, std::string>> out;
    const Json* env = base::find(exec, {"env"});
    if (env == nullptr || env->is_null()) return out;
    if (!env->is_array()) return wrong_exec(".env is not a list");
    for (const Json& each : env->get_array()) {
        const std::string name(base::find_string(each, {"name"}));
        if (name.empty() || name.find('=') != std::string::npos) return wrong_exec(".env: an entry has no name");
        out.emplace_back(name, base::find_string(each, {"value"}));
    }
    return out;
}

Result<ExecPlugin::Input> read_input(std::string_view mode, std::string_view api_version) {
    if (mode == "Never") return ExecPlugin::Input::Never;
    if (mode == "IfAvailable" || (mode.empty() && api_version == kV1beta1)) return ExecPlugin::Input::IfAvailable;
    if (mode == "Always") return ExecPlugin::Input::Always;
    return wrong_exec(fmt::format(".interactiveMode \"{}\" is not one of Never, IfAvailable, Always", mode));
}

bool is_true(const Json& from, std::string_view field) {
    const Json* found = base::find(from, {field});
    return found != nullptr && found->is_bool() && found->get_bool();
}

std::string exec_info(const ExecPlugin& plugin, bool interactive) {
    const std::string cluster = plugin.wants_cluster ? fmt::format(R"("cluster":{},)", plugin.cluster) : "";
    return fmt::format(R"({{"kind":"ExecCredential","apiVersion":"{}","spec":{{{}"interactive":{}}}}})",
                       plugin.api_version, cluster, interactive);
}

// What it said last is most often why.
std::string last_line(std::string_view text) {
    while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
    const auto line = text.rfind('\n');
    return std::string(line == std::string_view::npos ? text : text.substr(line + 1));
}

std::string one_line(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const bool gap = static_cast<unsigned char>(c) <= ' ';
        if (!gap || (!out.empty() && out.back() != ' ')) out += gap ? ' ' : c;
    }
    return out;
}

}  // namespace

Result<ExecPlugin> read_exec_plugin(const Json& exec) {
    ExecPlugin out;
    out.command = base::find_string(exec, {"command"});
    if (out.command.empty()) return wrong_exec(".command is missing");
    out.api_version = base::find_string(exec, {"apiVersion"});
    if (out.api_version != kV1 && out.api_version != kV1beta1) {
        return wrong_exec(fmt::format(".apiVersion \"{}\" is neither {} nor {}", out.api_version, kV1, kV1beta1));
    }
    out.args = TRY(read_args(exec));
    out.env = TRY(read_env(exec));
    out.input = TRY(read_input(base::find_string(exec, {"interactiveMode"}), out.api_version));
    out.install_hint = base::find_string(exec, {"installHint"});
    out.wants_cluster = is_true(exec, "provideClusterInfo");
    return out;
}

Result<Credential> read_exec_credential(const ExecPlugin& plugin, std::string_view output) {
    const auto wrong = [&](std::string_view what) {
        return wrong_exec(fmt::format(": what \"{}\" printed {}", plugin.command, what));
    };
    const auto printed = base::parse_json(output);
    if (!printed) return wrong("is no JSON: " + printed.error().message);
    const auto kind = base::find_string(*printed, {"kind"}), version = base::find_string(*printed, {"apiVersion"});
    if (kind != "ExecCredential" || version != plugin.api_version) {
        return wrong(fmt::format("is {} {}, not ExecCredential {}", kind, version, plugin.api_version));
    }
    Credential out;
    out.token = base::find_string(*printed, {"status", "token"});
    out.certificate_pem = base::find_string(*printed, {"status", "clientCertificateData"});
    out.key_pem = base::find_string(*printed, {"status", "clientKeyData"});
    if (out.certificate_pem.empty() != out.key_pem.empty()) {
        return wrong("has only one of status.clientCertificateData and status.clientKeyData");
    }
    if (out.token.empty() && out.key_pem.empty()) return wrong("has neither a token nor a client certificate");
    if (const auto text = base::find_string(*printed, {"status", "expirationTimestamp"}); !text.empty()) {
        const auto expires = model::parse_time(text);
        if (!expires) return wrong("has a bad status.expirationTimestamp: " + expires.error().message);
        out.expires = *expires;
    }
    return out;
}

Result<Credential> run_exec_plugin(const ExecPlugin& plugin, int stop) {
    const bool terminal = plugin.input != ExecPlugin::Input::Never && ::isatty(STDIN_FILENO) == 1;
    if (plugin.input == ExecPlugin::Input::Always && !terminal) {
        return wrong_exec(
            fmt::format(": \"{}\" has interactiveMode Always, and standard input is not a terminal", plugin.command));
    }
    Program program{plugin.command, plugin.args, plugin.env, terminal, terminal ? kWithAPerson : kAlone};
    program.env.emplace_back("KUBERNETES_EXEC_INFO", exec_info(plugin, terminal));
    const auto ended = run_program(program, stop);
    if (!ended) {
        const bool absent = ended.error().reason == Reason::NotFound && !plugin.install_hint.empty();
        return wrong_exec(
            fmt::format(": {}{}", ended.error().message, absent ? "; " + one_line(plugin.install_hint) : ""));
    }
    if (ended->code != 0) {
        return wrong_exec(
            fmt::format(": \"{}\" ended with {}: {}", plugin.command, ended->code, last_line(ended->errors)));
    }
    return read_exec_credential(plugin, ended->output);
}

}  // namespace berth::link
