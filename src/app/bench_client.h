#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::app {

// A blocking HTTPS client with the admin's certificate, for measuring: one connection, kept alive.
class BenchClient {
public:
    // `pki` is the directory with ca.crt, admin.crt and admin.key.
    static Result<BenchClient> connect(uint16_t port, const std::string& pki);
    BenchClient(BenchClient&&) noexcept;
    BenchClient& operator=(BenchClient&&) noexcept;
    ~BenchClient();

    struct Answer {
        int code = 0;
        std::string body;
    };
    Result<Answer> ask(std::string_view method, std::string_view path, std::string_view body = {});
    // Sends the request of a stream; then read() gives what comes.
    Status open_stream(std::string_view path);
    // Appends what arrives; an error at the end of the stream or after shut().
    Status read(std::string& out);
    // From another thread: read() returns.
    void shut();

private:
    struct Wire;
    explicit BenchClient(std::unique_ptr<Wire> wire);
    std::unique_ptr<Wire> wire_;
    std::string buffer_;
};

}  // namespace berth::app
