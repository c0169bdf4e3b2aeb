#include "link/kubeconfig.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/base64.h"
#include "base/json.h"
#include "base/private_file.h"
#include "base/yaml.h"
#include "link/url.h"

namespace berth::link {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kKey = "client-key";
// An extension of a cluster's entry under this name is for the plugin.
constexpr std::string_view kExecExtension = "client.authentication.k8s.io/exec";

Result<std::string> read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) return base::bad_request(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
    return std::string(std::istreambuf_iterator<char>(in), {});
}

std::string trimmed(std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
    return text;
}

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

Result<std::string> read_secret(const std::string& path) {
    TRY(base::check_private(path));
    return read_file(path);
}

// One kubeconfig while it is read: its folder is where relative paths begin.
struct File {
    std::string path;
    Json document;

    Error wrong(std::string_view what) const { return base::bad_request(fmt::format("{}: {}", path, what)); }

    // The entry called `name` in a list of {name: ..., FIELD: {...}}.
    std::optional<Json> entry(std::string_view list, std::string_view name, std::string_view field) const {
        const Json* all = base::find(document, {list});
        if (all == nullptr || !all->is_array()) return std::nullopt;
        for (const Json& item : all->get_array()) {
            if (base::find_string(item, {"name"}) != name) continue;
            const Json* found = base::find(item, {field});
            return found == nullptr || found->is_null() ? Json(JsonObject{}) : *found;
        }
        return std::nullopt;
    }

    std::string beside(std::string_view named) const {
        const fs::path given(named);
        return given.is_absolute() ? given.string() : (fs::path(path).parent_path() / given).string();
    }

    // FIELD-data in base64, or the file that FIELD names; empty when there is neither.
    Result<std::string> pem(const Json& from, const std::string& field) const {
        const auto data = base::find_string(from, {field + "-data"});
        if (!data.empty()) {
            const auto decoded = base::from_base64(data);
            if (!decoded) return wrong(fmt::format("{}-data is not base64", field));
            return *decoded;
        }
        const auto named = base::find_string(from, {field});
        if (named.empty()) return std::string();
        return field == kKey ? read_secret(beside(named)) : read_file(beside(named));
    }
};

// The files that count, the first before the others.
struct Files {
    std::string said;  // where they were named, for errors
    std::vector<File> all;

    Error wrong(std::string_view what) const { return base::bad_request(fmt::format("{}: {}", said, what)); }

    struct Entry {
        const File& file;
        Json value;
    };
    Result<Entry> entry(std::string_view list, std::string_view name, std::string_view field) const {
        for (const File& file : all) {
            if (auto found = file.entry(list, name, field)) return Entry{file, std::move(*found)};
        }
        return wrong(fmt::format("{} has no entry named \"{}\"", list, name));
    }
    std::string current_context() const {
        for (const File& file : all) {
            const auto context = base::find_string(file.document, {"current-context"});
            if (!context.empty()) return std::string(context);
        }
        return {};
    }
};

Result<File> open_file(const std::string& path) {
    File out{path, {}};
    auto documents = base::parse_yaml(TRY(read_file(path)));
    if (!documents) return out.wrong(documents.error().message);
    if (documents->empty()) documents->push_back(JsonObject{});
    if (documents->size() != 1 || !documents->front().is_object()) return out.wrong("this is not a kubeconfig");
    out.document = std::move(documents->front());
    return out;
}

Result<Files> open_listed(const std::string& list) {
    Files out{"KUBECONFIG=" + list, {}};
    for (std::string_view rest = list; !rest.empty();) {
        const auto colon = rest.find(':');
        const std::string path(rest.substr(0, colon));
        rest.remove_prefix(colon == std::string_view::npos ? rest.size() : colon + 1);
        std::error_code trouble;  // what may be there and cannot be looked at is no file that is not there
        if (!path.empty() && (fs::exists(path, trouble) || trouble)) out.all.push_back(TRY(open_file(path)));
    }
    if (out.all.empty()) return out.wrong("no such file");
    return out;
}

bool given(const Json& from, std::string_view field) {
    const Json* found = base::find(from, {field});
    return found != nullptr && !found->is_null() && !(found->is_string() && found->get_string().empty());
}

Status read_cluster(const File& file, const Json& cluster, Access& out) {
    const auto url = parse_url(base::find_string(cluster, {"server"}));
    if (!url) return file.wrong("server " + url.error().message);
    out.tls = url->tls;
    out.host = url->host;
    out.port = url->port;
    out.path = url->path;
    out.ca_pem = TRY(file.pem(cluster, "certificate-authority"));
    const Json* skip = base::find(cluster, {"insecure-skip-tls-verify"});
    out.skip_verify = skip != nullptr && skip->is_bool() && skip->get_bool();
    out.server_name = base::find_string(cluster, {"tls-server-name"});
    if (out.server_name.empty()) out.server_name = out.host;
    if (!given(cluster, "proxy-url")) {
        out.proxy = TRY(proxy_from_environment(out.tls, out.host, out.port));
        return {};
    }
    auto proxy = parse_proxy(base::find_string(cluster, {"proxy-url"}));
    if (!proxy) return file.wrong("proxy-url " + proxy.error().message);
    out.proxy = std::move(*proxy);
    return {};
}

// spec.cluster of what a plugin is told.
std::string cluster_for_plugin(const Json& cluster, const Access& access) {
    JsonObject out{{"server", access.url()}};
    for (const auto* field : {"tls-server-name", "insecure-skip-tls-verify", "proxy-url"}) {
        if (given(cluster, field)) out[field] = *base::find(cluster, {field});
    }
    if (!access.ca_pem.empty()) out["certificate-authority-data"] = base::to_base64(access.ca_pem);
    const Json* extensions = base::find(cluster, {"extensions"});
    if (extensions != nullptr && extensions->is_array()) {
        for (const Json& each : extensions->get_array()) {
            const Json* extension = base::find(each, {"extension"});
            if (base::find_string(each, {"name"}) == kExecExtension && extension != nullptr) out["config"] = *extension;
        }
    }
    return base::to_text(out);
}

Status read_exec(const File& file, const Json& user, const Json& cluster, Access& out) {
    for (const auto* field : {"token", "tokenFile", "client-certificate", "client-certificate-data"}) {
        if (given(user, field)) return file.wrong(fmt::format("user.exec and user.{} exclude each other", field));
    }
    TRY(base::check_unwritable(file.path));
    auto plugin = read_exec_plugin(*base::find(user, {"exec"}));
    if (!plugin) return file.wrong(plugin.error().message);
    if (plugin->command.find('/') != std::string::npos) plugin->command = file.beside(plugin->command);
    if (plugin->wants_cluster) plugin->cluster = cluster_for_plugin(cluster, out);
    out.exec = std::move(*plugin);
    return {};
}

Status read_user(const File& file, const Json& user, const Json& cluster, Access& out) {
    for (const auto* field : {"auth-provider", "username", "as", "as-uid", "as-groups", "as-user-extra"}) {
        if (given(user, field)) {
            return file.wrong(
                fmt::format("user.{} is not supported: use a client certificate, a token, a tokenFile or exec", field));
        }
    }
    if (given(user, "exec")) return read_exec(file, user, cluster, out);
    out.certificate_pem = TRY(file.pem(user, "client-certificate"));
    out.key_pem = TRY(file.pem(user, std::string(kKey)));
    if (given(user, "client-key-data") || given(user, "token")) TRY(base::check_private(file.path));
    if (out.certificate_pem.empty() != out.key_pem.empty()) {
        return file.wrong("client-certificate and client-key must be given together");
    }
    const auto token_file = base::find_string(user, {"tokenFile"});
    if (token_file.empty()) {
        out.token = base::find_string(user, {"token"});
    } else {
        out.token = trimmed(TRY(read_secret(file.beside(token_file))));
    }
    return {};
}

Result<Access> read_files(const Files& files, const std::string& wanted) {
    const std::string context = wanted.empty() ? files.current_context() : wanted;
    if (context.empty()) return files.wrong("current-context is empty, and no --context was given");
    const auto chosen = TRY(files.entry("contexts", context, "context"));
    Access out;
    const auto cluster = TRY(files.entry("clusters", base::find_string(chosen.value, {"cluster"}), "cluster"));
    TRY(read_cluster(cluster.file, cluster.value, out));
    // A context without a user is anonymous.
    if (const auto name = base::find_string(chosen.value, {"user"}); !name.empty()) {
        const auto user = TRY(files.entry("users", name, "user"));
        TRY(read_user(user.file, user.value, cluster.value, out));
    }
    if (const auto ns = base::find_string(chosen.value, {"namespace"}); !ns.empty()) out.ns = ns;
    return out;
}

Result<Access> read_kubeconfig(const std::string& path, const std::string& context) {
    Files files{path, {}};
    files.all.push_back(TRY(open_file(path)));
    return read_files(files, context);
}

Result<Access> read_service_account(const std::string& folder) {
    Access out;
    out.host = environment("KUBERNETES_SERVICE_HOST");
    out.port = environment("KUBERNETES_SERVICE_PORT");
    if (out.port.empty()) out.port = "443";
    out.server_name = out.host;
    out.proxy = TRY(proxy_from_environment(out.tls, out.host, out.port));
    out.token = trimmed(TRY(read_file(folder + "/token")));
    out.ca_pem = TRY(read_file(folder + "/ca.crt"));
    if (auto ns = read_file(folder + "/namespace")) out.ns = trimmed(std::move(*ns));
    return out;
}

}  // namespace

std::string Access::authority() const {
    const bool bare = host.find(':') == std::string::npos;
    return fmt::format("{}:{}", bare ? host : "[" + host + "]", port);
}

std::string Access::url() const {
    return fmt::format("{}://{}{}", tls ? "https" : "http", authority(), path);
}

Result<Access> read_access(const AccessOptions& options) {
    if (!options.kubeconfig.empty()) return read_kubeconfig(options.kubeconfig, options.context);
    if (const auto named = environment("KUBECONFIG"); !named.empty()) {
        return read_files(TRY(open_listed(named)), options.context);
    }
    const bool in_pod = !environment("KUBERNETES_SERVICE_HOST").empty() && options.context.empty();
    std::error_code unknown;
    if (in_pod && fs::exists(options.service_account + "/token", unknown))
        return read_service_account(options.service_account);
    return read_kubeconfig(environment("HOME") + "/.kube/config", options.context);
}

}  // namespace berth::link
