#include "link/kubeconfig.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/base64.h"
#include "base/json.h"
#include "base/log.h"
#include "base/private_file.h"
#include "base/yaml.h"

namespace berth::link {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kKey = "client-key";
constexpr base::Duration kReadAgain = std::chrono::seconds(10);

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
    Result<Json> entry(std::string_view list, std::string_view name, std::string_view field) const {
        const Json* all = base::find(document, {list});
        if (all != nullptr && all->is_array()) {
            for (const Json& item : all->get_array()) {
                if (base::find_string(item, {"name"}) != name) continue;
                const Json* found = base::find(item, {field});
                return found == nullptr || found->is_null() ? Json(JsonObject{}) : *found;
            }
        }
        return wrong(fmt::format("{} has no entry named \"{}\"", list, name));
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

bool given(const Json& from, std::string_view field) {
    const Json* found = base::find(from, {field});
    return found != nullptr && !found->is_null() && !(found->is_string() && found->get_string().empty());
}

// "https://host:6443/prefix", "https://[::1]:6443".
Status read_url(std::string_view url, Access& out) {
    const Error wrong = base::bad_request(fmt::format("server \"{}\" is not http(s)://HOST[:PORT][/PATH]", url));
    std::string_view rest = url;
    if (rest.starts_with("https://")) {
        rest.remove_prefix(8);
    } else if (rest.starts_with("http://")) {
        rest.remove_prefix(7);
        out.tls = false;
    } else {
        return wrong;
    }
    const auto slash = rest.find('/');
    if (slash != std::string_view::npos) out.path = rest.substr(slash);
    while (out.path.ends_with('/')) out.path.pop_back();
    rest = rest.substr(0, slash);
    const bool bracketed = rest.starts_with('[');
    const auto end = bracketed ? rest.find(']') : rest.find(':');
    if (bracketed && end == std::string_view::npos) return wrong;
    out.host = bracketed ? rest.substr(1, end - 1) : rest.substr(0, end);
    const auto behind = bracketed ? rest.substr(end + 1) : rest.substr(std::min(end, rest.size()));
    out.port = behind.starts_with(':') ? behind.substr(1) : std::string_view(out.tls ? "443" : "80");
    const bool number = !out.port.empty() && out.port.find_first_not_of("0123456789") == std::string::npos;
    if (out.host.empty() || !number || out.port.size() > 5 || std::stoi(out.port) > 65535) return wrong;
    return {};
}

Status read_cluster(const File& file, const Json& cluster, Access& out) {
    if (given(cluster, "proxy-url")) return file.wrong("proxy-url is not supported");
    if (auto url = read_url(base::find_string(cluster, {"server"}), out); !url) return file.wrong(url.error().message);
    out.ca_pem = TRY(file.pem(cluster, "certificate-authority"));
    const Json* skip = base::find(cluster, {"insecure-skip-tls-verify"});
    out.skip_verify = skip != nullptr && skip->is_bool() && skip->get_bool();
    out.server_name = base::find_string(cluster, {"tls-server-name"});
    if (out.server_name.empty()) out.server_name = out.host;
    return {};
}

Status read_user(const File& file, const Json& user, Access& out) {
    for (const auto* field : {"exec", "auth-provider", "username", "as", "as-uid", "as-groups"}) {
        if (given(user, field)) {
            return file.wrong(
                fmt::format("user.{} is not supported: use a client certificate, a token or a tokenFile", field));
        }
    }
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

Result<Access> read_kubeconfig(const std::string& path, const std::string& wanted) {
    File file{path, {}};
    auto documents = base::parse_yaml(TRY(read_file(path)));
    if (!documents) return file.wrong(documents.error().message);
    if (documents->size() != 1 || !documents->front().is_object()) return file.wrong("this is not a kubeconfig");
    file.document = std::move(documents->front());
    const std::string context =
        wanted.empty() ? std::string(base::find_string(file.document, {"current-context"})) : wanted;
    if (context.empty()) return file.wrong("current-context is empty, and no --context was given");
    const Json chosen = TRY(file.entry("contexts", context, "context"));
    Access out;
    const Json cluster = TRY(file.entry("clusters", base::find_string(chosen, {"cluster"}), "cluster"));
    TRY(read_cluster(file, cluster, out));
    // A context without a user is anonymous.
    if (const auto name = base::find_string(chosen, {"user"}); !name.empty()) {
        const Json user = TRY(file.entry("users", name, "user"));
        TRY(read_user(file, user, out));
    }
    if (const auto ns = base::find_string(chosen, {"namespace"}); !ns.empty()) out.ns = ns;
    return out;
}

Result<Access> read_service_account(const std::string& folder) {
    Access out;
    out.host = environment("KUBERNETES_SERVICE_HOST");
    out.port = environment("KUBERNETES_SERVICE_PORT");
    if (out.port.empty()) out.port = "443";
    out.server_name = out.host;
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
        if (named.find(':') != std::string::npos) {
            return base::bad_request(fmt::format("KUBECONFIG={}: several files are not merged; name one", named));
        }
        return read_kubeconfig(named, options.context);
    }
    if (!environment("KUBERNETES_SERVICE_HOST").empty() && fs::exists(options.service_account + "/token")) {
        return read_service_account(options.service_account);
    }
    return read_kubeconfig(environment("HOME") + "/.kube/config", options.context);
}

Result<FreshAccess> FreshAccess::open(AccessOptions options, base::Instant now) {
    Access access = TRY(read_access(options));
    return FreshAccess(std::move(options), std::move(access), now);
}

const Access& FreshAccess::get(base::Instant now) {
    if (!fixed_ && now - read_at_ >= kReadAgain) refresh(now);
    return access_;
}

bool FreshAccess::refresh(base::Instant now) {
    if (fixed_) return false;
    read_at_ = now;
    auto access = read_access(options_);
    if (!access) {
        base::log_warning("The credentials cannot be read again", {{"error", access.error()}});
        return false;
    }
    const bool changed = *access != access_;
    access_ = std::move(*access);
    return changed;
}

}  // namespace berth::link
