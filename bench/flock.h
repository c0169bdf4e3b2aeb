#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::bench {

// Many HTTPS connections with the admin's certificate, served by one thread, for measuring: the clients should cost
// little beside the server.
class BenchFlock {
public:
    // `pki` is the directory with ca.crt, admin.crt and admin.key.
    static Result<BenchFlock> connect(uint16_t port, const std::string& pki, size_t count);
    BenchFlock(BenchFlock&&) noexcept;
    BenchFlock& operator=(BenchFlock&&) noexcept;
    ~BenchFlock();

    size_t size() const;
    Status send(size_t connection, std::string_view bytes);
    // Waits for bytes, at most so long, and calls f(connection, text) for each connection that has some: all that came
    // on it and was not taken. f removes what it takes.
    using Take = std::function<Status(size_t connection, std::string& text)>;
    Status poll(int milliseconds, const Take& f);

private:
    struct Wires;
    explicit BenchFlock(std::unique_ptr<Wires> wires);
    std::unique_ptr<Wires> wires_;
};

std::string request_text(std::string_view method, std::string_view path, std::string_view body = {});

struct BenchAnswer {
    int code = 0;
    std::string body;
};
// Takes the first whole answer out of the text, if there is one.
std::optional<BenchAnswer> take_answer(std::string& text);

}  // namespace berth::bench
