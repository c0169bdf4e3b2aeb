#include "link/iri_grpc.h"

#include <fmt/format.h>

#include <fstream>
#include <future>
#include <list>
#include <sstream>
#include <system_error>

#include "base/thread.h"
#include "link/iri_tls.h"

namespace berth::link {
namespace {

constexpr size_t kThreadsOfGrpc = 12;  // it makes seven at its start

struct Probe {
    std::thread thread;
    ~Probe() {
        if (thread.joinable()) thread.join();
    }
};

Result<std::string> read_file(const std::string& flag, const std::string& path) {
    std::ifstream in(path);
    std::ostringstream out;
    out << in.rdbuf();
    if (!in) return base::bad_request(fmt::format("{}: {} cannot be read", flag, path));
    return out.str();
}

}  // namespace

Result<IriAddress> read_iri_address(const std::string& text) {
    IriAddress out;
    if (text.starts_with("unix://")) {
        out.target = "unix:" + text.substr(7);
        out.unix_socket = out.loopback = true;
        if (text.size() > 7 && text[7] == '/') return out;
        return base::bad_request(fmt::format("{}: a unix socket is written unix:///PATH", text));
    }
    const auto colon = text.rfind(':');
    const bool number = colon != std::string::npos && colon + 1 < text.size() &&
                        text.find_first_not_of("0123456789", colon + 1) == std::string::npos;
    if (!number || colon == 0) return base::bad_request(fmt::format("{}: is neither unix:///PATH nor HOST:PORT", text));
    const std::string host = text.substr(0, colon);
    out.target = text;
    out.loopback = host == "localhost" || host == "[::1]" || host.starts_with("127.");
    return out;
}

Result<IriKeys> read_iri_keys(const std::string& address, const IriAddress& where, const IriTls& tls) {
    const bool of_somebody = !tls.clients.empty() || !tls.runtime.empty();
    if (!tls.given()) {
        if (of_somebody)
            return base::bad_request(
                fmt::format("{}: names are those of certificates: {} needs --tls-cert, --tls-key and --tls-ca", address,
                            tls.clients.empty() ? "--runtime-name" : "--client-name"));
        if (where.loopback) return IriKeys{};
        return base::bad_request(
            fmt::format("{}: off loopback TLS is needed on both sides: --tls-cert, --tls-key and --tls-ca", address));
    }
    if (tls.certificate.empty() || tls.key.empty() || tls.ca.empty())
        return base::bad_request("--tls-cert, --tls-key and --tls-ca belong together");
    return IriKeys{TRY(read_file("--tls-cert", tls.certificate)), TRY(read_file("--tls-key", tls.key)),
                   TRY(read_file("--tls-ca", tls.ca)), tls.clients};
}

Status threads_for_grpc() {
    std::promise<void> all;
    const std::shared_future<void> made = all.get_future().share();
    std::list<Probe> probes;
    Status out;
    try {
        while (probes.size() < kThreadsOfGrpc) {
            probes.emplace_back().thread = base::named_thread("grpc-probe", [made] { made.wait(); });
        }
    } catch (const std::system_error& fault) {
        out = base::internal(fmt::format("gRPC needs {} threads: {}", kThreadsOfGrpc, fault.code().message()));
    }
    all.set_value();
    return out;
}

}  // namespace berth::link
