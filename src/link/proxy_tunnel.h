#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <string>

#include "link/kubeconfig.h"

// Only the HTTP units include this.
namespace berth::link {

// Asks the proxy, to which `socket` is connected, for a way to the server, as access.proxy wants it. Afterwards the
// socket is as if connected to the server. Calls back with what went wrong, or an empty text; `done` keeps the socket.
void open_tunnel(boost::asio::ip::tcp::socket& socket, const Access& access,
                 std::function<void(const std::string& trouble)> done);

// Proxy-Authorization's value; empty where the proxy is told no user.
std::string proxy_authorization(const Proxy& proxy);

}  // namespace berth::link
