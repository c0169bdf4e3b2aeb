#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

// Requests as a hostile client sends them: a sound one, then changed in its headers, its chunks and its bytes.
namespace berth::fuzz {

struct Hostile {
    std::string bytes;
    std::vector<size_t> pauses;  // ascending places in it behind which the client waits to be read
};

class HostileRequests {
public:
    // Every request that carries a credential carries this one; empty: none does.
    explicit HostileRequests(uint64_t seed, std::string authorization = {})
        : dice_(seed), authorization_(std::move(authorization)) {}

    Hostile next();

private:
    struct Chunk {
        std::string size, extension, data, end;
    };
    struct Parts {
        std::string method, target, version;
        std::vector<std::string> headers;  // whole lines without their ends
        std::string body;
        std::vector<Chunk> chunks;
        std::vector<std::string> trailers;
        std::string chunks_end;
        bool chunked = false;
    };

    size_t below(size_t limit) { return dice_() % limit; }
    bool one_in(size_t times) { return below(times) == 0; }
    template <class List>
    const auto& any(const List& list) {
        return list[below(std::size(list))];
    }
    std::string noise(size_t size);
    std::string blown_up(std::string_view seed);

    Parts sound();
    void change_line(Parts& parts);
    void change_headers(Parts& parts);
    void change_chunks(Parts& parts);
    void change_trailers(Parts& parts);
    void change_bytes(std::string& bytes);
    static std::string written(const Parts& parts);

    std::mt19937_64 dice_;
    std::string authorization_;
};

// What a server on loopback answers until it closes, or until nothing comes for a while. The client says at once that
// it sends nothing more.
struct Told {
    std::string bytes;
    bool connected = true;
};
Told tell(uint16_t port, const Hostile& request);

// What is wrong with an answer: nothing, a 5xx, or no HTTP. An empty answer is a closed connection, which is no wrong.
std::string wrong_with(const std::string& answer);

}  // namespace berth::fuzz
