#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"

// HTTP/2 as it passes by. What Debian's gRPC (1.51) does with some of it costs more than it should: headers without an
// end are kept without an end (CVE-2023-33953), a stream that is opened and reset costs a call (CVE-2023-44487), and
// parts of messages are kept for every stream there is. So a connection that does more of it than a client of ours has
// a reason to is closed before gRPC sees it.
namespace berth::link {

struct FrameLimits {
    size_t headers = size_t{64} << 10;   // a header block, in all its frames
    int continuations = 8;               // frames of it after the first
    size_t control = 1024;               // a frame that is neither DATA nor headers
    size_t requests = size_t{32} << 20;  // bytes of requests that are not answered: eight of the largest messages
    size_t streams = 10'000;             // gRPC answers far fewer at once, but some may be on their way
    int resets = 200;                    // of streams, by either side, in a window
    int odd = 1000;                      // frames that carry nothing, in a window: pings, settings, empty data
    base::Duration window = std::chrono::seconds(10);
};

// One connection's frames, of both directions. Nothing is kept but sizes.
class FrameCheck {
public:
    explicit FrameCheck(const FrameLimits& limits = {}) : limits_(limits) {}

    std::vector<uint32_t> streams() const;  // that are open

    // The next bytes of either side. Empty: they may go on; else why the connection ends.
    std::string_view from_client(std::string_view bytes, base::Instant now);
    std::string_view from_server(std::string_view bytes, base::Instant now);

    bool begun() const { return preface_ == kPreface.size(); }
    size_t open_streams() const { return streams_.size(); }
    size_t held() const { return held_; }  // bytes of requests that are not answered

private:
    static constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    struct Frame {
        uint32_t size = 0;
        uint8_t type = 0;
        uint8_t flags = 0;
        uint32_t stream = 0;
    };
    struct Side {
        std::array<unsigned char, 9> head{};
        size_t known = 0;  // of the head
        size_t rest = 0;   // of the payload
    };

    template <class Take>
    std::string_view each_frame(Side& side, std::string_view bytes, Take take);
    std::string_view client_frame(const Frame& frame);
    std::string_view headers(const Frame& frame);
    std::string_view data(const Frame& frame);
    std::string_view reset();
    std::string_view odd();
    std::string_view server_frame(const Frame& frame);
    void end(uint32_t stream);
    void begin_window(base::Instant now);

    FrameLimits limits_;
    size_t preface_ = 0;
    Side client_, server_;
    std::unordered_map<uint32_t, size_t> streams_;  // open ones: bytes of the request
    size_t held_ = 0;
    uint32_t block_stream_ = 0;  // 0: no header block is under way
    size_t block_ = 0;
    int continuations_ = 0;
    base::Instant window_{};
    int resets_ = 0;
    int odd_ = 0;
};

}  // namespace berth::link
