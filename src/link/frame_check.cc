#include "link/frame_check.h"

#include <algorithm>

namespace berth::link {
namespace {

enum Type : uint8_t { Data = 0, Headers = 1, RstStream = 3, WindowUpdate = 8, Continuation = 9 };
constexpr uint8_t kEndStream = 1;
constexpr uint8_t kEndHeaders = 4;

}  // namespace

template <class Take>
std::string_view FrameCheck::each_frame(Side& side, std::string_view bytes, Take take) {
    while (!bytes.empty()) {
        if (side.rest > 0) {
            const size_t skipped = std::min(side.rest, bytes.size());
            side.rest -= skipped;
            bytes.remove_prefix(skipped);
            continue;
        }
        side.head[side.known++] = static_cast<unsigned char>(bytes.front());
        bytes.remove_prefix(1);
        if (side.known < side.head.size()) continue;
        side.known = 0;
        const auto& head = side.head;
        const auto number = [&](size_t from, size_t to) {
            uint32_t out = 0;
            for (size_t i = from; i < to; ++i) out = out << 8 | head[i];
            return out;
        };
        const Frame frame{number(0, 3), head[3], head[4], number(5, 9) & 0x7fffffff};
        side.rest = frame.size;
        if (const auto why = take(frame); !why.empty()) return why;
    }
    return {};
}

std::vector<uint32_t> FrameCheck::streams() const {
    std::vector<uint32_t> out;
    for (const auto& [stream, bytes] : streams_) out.push_back(stream);
    return out;
}

void FrameCheck::begin_window(base::Instant now) {
    if (now - window_ < limits_.window) return;
    window_ = now;
    resets_ = odd_ = 0;
}

std::string_view FrameCheck::from_client(std::string_view bytes, base::Instant now) {
    begin_window(now);
    const auto rest = kPreface.substr(preface_, bytes.size());
    if (!bytes.starts_with(rest)) return "it does not speak HTTP/2";
    preface_ += rest.size();
    bytes.remove_prefix(rest.size());
    return each_frame(client_, bytes, [this](const Frame& frame) { return client_frame(frame); });
}

std::string_view FrameCheck::from_server(std::string_view bytes, base::Instant now) {
    begin_window(now);
    return each_frame(server_, bytes, [this](const Frame& frame) { return server_frame(frame); });
}

std::string_view FrameCheck::client_frame(const Frame& frame) {
    const bool continues = frame.type == Continuation && frame.stream == block_stream_;
    if (block_stream_ != 0 && !continues) return "a frame is in the midst of headers";
    switch (frame.type) {
        case Data:
            return data(frame);
        case Headers:
        case Continuation:
            return headers(frame);
        case RstStream:
            end(frame.stream);
            return reset();
        case WindowUpdate:
            return frame.size > limits_.control ? "a frame is too large" : "";
        default:
            return frame.size > limits_.control ? "a frame is too large" : odd();
    }
}

std::string_view FrameCheck::headers(const Frame& frame) {
    if (frame.type == Headers) {
        block_ = 0;
        continuations_ = 0;
        streams_.try_emplace(frame.stream, 0);
        if (streams_.size() > limits_.streams) return "too many streams";
    } else if (++continuations_ > limits_.continuations) {
        return "headers in too many frames";
    }
    block_ += frame.size;
    if (block_ > limits_.headers) return "headers are too large";
    block_stream_ = (frame.flags & kEndHeaders) != 0 ? 0 : frame.stream;
    return {};
}

std::string_view FrameCheck::data(const Frame& frame) {
    const auto found = streams_.find(frame.stream);
    const bool ends = (frame.flags & kEndStream) != 0;
    // What is under way when a stream ends comes to nothing.
    if (found == streams_.end() || (frame.size == 0 && !ends)) return odd();
    found->second += frame.size;
    held_ += frame.size;
    return held_ > limits_.requests ? "too much is asked at once" : "";
}

std::string_view FrameCheck::reset() {
    return ++resets_ > limits_.resets ? "too many streams are reset" : "";
}

std::string_view FrameCheck::odd() {
    return ++odd_ > limits_.odd ? "too many frames that carry nothing" : "";
}

std::string_view FrameCheck::server_frame(const Frame& frame) {
    if (frame.type == RstStream) {
        end(frame.stream);
        return reset();
    }
    const bool last = (frame.type == Data || frame.type == Headers) && (frame.flags & kEndStream) != 0;
    if (last) end(frame.stream);
    return {};
}

void FrameCheck::end(uint32_t stream) {
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return;
    held_ -= found->second;
    streams_.erase(found);
}

}  // namespace berth::link
