#include <cstddef>
#include <cstdint>
#include <cstring>

#include "api/http_reader.h"
#include "base/result.h"

using namespace berth;
using namespace berth::api;

namespace {

using State = HttpReader::State;

// Limits that a small input reaches.
HttpOptions small() {
    HttpOptions out;
    out.max_headers = 512;
    out.max_header_fields = 20;
    out.max_url = 100;
    out.max_body = 600;
    return out;
}

// Every request that was whole. What is refused at last may be refused sooner when more of it came at once.
std::string read(std::string_view bytes, size_t step) {
    static const HttpOptions options = small();
    HttpReader reader(options);
    std::string out;
    State state = reader.advance();
    while (true) {
        if (state == State::More) {
            CHECK(reader.pending() < options.max_headers);
            if (bytes.empty()) break;
            const auto space = reader.space();
            const size_t n = std::min({step, bytes.size(), space.size()});
            std::memcpy(space.data(), bytes.data(), n);
            bytes.remove_prefix(n);
            reader.came(n);
        } else if (state == State::Refused) {
            const int status = reader.refusal().status;
            CHECK(status == 400 || status == 413 || status == 414 || status == 415 || status == 431);
            return out;
        } else if (state == State::Whole) {
            const Request request = reader.take();
            CHECK(request.body.size() <= options.max_body && request.path.size() <= options.max_url);
            CHECK(request.headers.size() <= options.max_header_fields);
            out += request.method + " " + request.path + " " + request.body + "\n";
            for (const auto& [name, value] : request.headers) out += name + ": " + value + "\n";
            reader.begin();
        }
        state = reader.advance();
    }
    return out;
}

}  // namespace

// Bytes of a connection. The first one says in which steps they come: whatever they are, the same requests are read.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    CHECK(read(bytes, 1 + data[0]) == read(bytes, SIZE_MAX));
    return 0;
}
