#include "cli/live.h"

#include <fmt/format.h>

#include "cli/command_line.h"
#include "link/connect.h"

namespace berth::cli {
namespace {

Error refused(const link::Reply& reply) {
    const auto status = base::parse_json(reply.body);
    std::string said(status ? base::find_string(*status, {"message"}) : std::string_view(reply.body));
    if (said.empty()) said = fmt::format("the server answered {}", reply.code);
    const bool taken = status && base::find_string(*status, {"reason"}) == "AlreadyExists";
    return {reply.code == 404 ? Reason::NotFound : (taken ? Reason::AlreadyExists : Reason::BadRequest),
            std::move(said)};
}

}  // namespace

void add_server_flags(CommandLine& line, ServerFlags& flags) {
    line.option("--kubeconfig", flags.access.kubeconfig, "which server; default: $KUBECONFIG, then ~/.kube/config");
    line.option("--context", flags.access.context, "of the kubeconfig; default: its current one");
    line.option("-n,--namespace", flags.ns, "default: the context's");
}

Result<Connection> open_connection(const ServerFlags& flags) {
    Connection out;
    out.ns = flags.ns.empty() ? TRY(link::read_access(flags.access)).ns : flags.ns;
    out.server = TRY(link::connect(flags.access));
    return out;
}

Result<Json> ask_object(link::ApiClient& server, link::Request request) {
    const auto reply = TRY(link::ask(server, std::move(request)));
    if (!reply.ok()) return refused(reply);
    return base::parse_json(reply.body);
}

Status list_all(link::ApiClient& server, const std::string& path, std::string_view kind,
                const std::function<Status(const Json&)>& put) {
    std::string more;
    do {
        const auto reply = TRY(
            link::ask(server, {"GET", fmt::format("{}?limit=500{}{}", path, more.empty() ? "" : "&continue=", more)}));
        if (reply.code == 404) return {};
        if (!reply.ok()) return refused(reply);
        Json page = TRY(base::parse_json(reply.body));
        if (const Json* items = base::find(page, {"items"}); items != nullptr && items->is_array()) {
            for (Json item : items->as_array()) {
                item.as_object()["kind"] = kind;
                TRY(put(item));
            }
        }
        more = base::find_string(page, {"metadata", "continue"});
    } while (!more.empty());
    return {};
}

Status load_live(link::ApiClient& server, run::World& world) {
    const auto put = [&](const Json& item) -> Status {
        TRY(world.put(item));
        return {};
    };
    for (const auto& kind : ledger::kinds()) {
        if (kind.reader == ledger::Reader::Shares && !world.cluster().shares()) continue;
        TRY(list_all(server, fmt::format("{}/{}", kind.path(), kind.plural), kind.kind, put));
    }
    return {};
}

}  // namespace berth::cli
