#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/command_line.h"
#include "link/api_client.h"
#include "link/kubeconfig.h"
#include "run/world.h"

namespace berth::cli {

// Which server a command talks to, and in which namespace.
struct ServerFlags {
    link::AccessOptions access;
    std::string ns;
};
void add_server_flags(CommandLine& line, ServerFlags& flags);

struct Connection {
    std::unique_ptr<link::ApiClient> server;
    std::string ns;  // of the flag, else of the kubeconfig's context
};
Result<Connection> open_connection(const ServerFlags& flags);

// The object of a 2xx answer. An answer of another code is an Error in the server's words.
Result<Json> ask_object(link::ApiClient& server, link::Request request);

// Every object of a kind, page by page. A kind that the server does not have is no error: there are none of it.
// `path` as in "/apis/apps/v1/replicasets".
Status list_all(link::ApiClient& server, const std::string& path, std::string_view kind,
                const std::function<Status(const Json&)>& put);

// Everything that placement depends on, as the server has it now.
Status load_live(link::ApiClient& server, run::World& world);

}  // namespace berth::cli
