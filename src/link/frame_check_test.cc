#include "link/frame_check.h"

#include <gtest/gtest.h>

#include <string>

namespace berth::link {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr uint8_t kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kPing = 6, kContinuation = 9;
constexpr uint8_t kEndStream = 1, kEndHeaders = 4;

std::string frame(uint8_t type, uint8_t flags, uint32_t stream, size_t size = 0) {
    std::string out;
    for (const int shift : {16, 8, 0}) out += static_cast<char>(size >> shift);
    out += static_cast<char>(type);
    out += static_cast<char>(flags);
    for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(stream >> shift);
    return out + std::string(size, 'x');
}

// A client that has said hello; every call says why the connection ends, or nothing.
class FrameCheckTest : public testing::Test {
protected:
    FrameCheckTest() { EXPECT_EQ(send(std::string(kPreface)), ""); }

    std::string send(const std::string& bytes) { return std::string(check_.from_client(bytes, now_)); }
    std::string answer(const std::string& bytes) { return std::string(check_.from_server(bytes, now_)); }
    // How many of them may pass.
    int passes(const std::string& bytes, int most) {
        for (int i = 0; i < most; ++i) {
            if (!send(bytes).empty()) return i;
        }
        return most;
    }

    base::Instant now_{1};
    FrameLimits limits_;
    FrameCheck check_{limits_};
};

TEST_F(FrameCheckTest, ACallIsOverWhenItIsAnswered) {
    EXPECT_EQ(send(frame(kHeaders, kEndHeaders, 1, 100)), "");
    EXPECT_EQ(send(frame(kData, kEndStream, 1, 1000)), "");
    EXPECT_EQ(check_.open_streams(), 1U);
    EXPECT_EQ(check_.held(), 1000U);
    EXPECT_EQ(answer(frame(kHeaders, kEndHeaders, 1, 10) + frame(kData, 0, 1, 50)), "");
    EXPECT_EQ(check_.open_streams(), 1U);
    EXPECT_EQ(answer(frame(kHeaders, kEndHeaders | kEndStream, 1, 10)), "");
    EXPECT_EQ(check_.open_streams(), 0U);
    EXPECT_EQ(check_.held(), 0U);
}

TEST_F(FrameCheckTest, BytesComeInAnyPieces) {
    FrameCheck other;
    std::string all(kPreface);
    all += frame(kHeaders, kEndHeaders, 1, 20) + frame(kData, 0, 1, 300) + frame(kHeaders, kEndHeaders, 3, 20);
    for (const char byte : all) EXPECT_EQ(other.from_client({&byte, 1}, now_), "");
    EXPECT_TRUE(other.begun());
    EXPECT_EQ(other.open_streams(), 2U);
    EXPECT_EQ(other.held(), 300U);
}

TEST_F(FrameCheckTest, WhoDoesNotSpeakHttp2Ends) {
    FrameCheck other;
    EXPECT_EQ(other.from_client("PRI", now_), "");
    EXPECT_FALSE(other.begun());
    EXPECT_EQ(other.from_client(" * HTTP/1.1", now_), "it does not speak HTTP/2");
    FrameCheck third;
    EXPECT_NE(third.from_client("GET / HTTP/1.1\r\n", now_), "");
}

TEST_F(FrameCheckTest, HeadersEnd) {
    EXPECT_EQ(send(frame(kHeaders, 0, 1, 16000)), "");
    EXPECT_EQ(passes(frame(kContinuation, 0, 1, 16000), 100), 3) << "64 KiB in all";
    FrameCheck small;
    (void)small.from_client(kPreface, now_);
    (void)small.from_client(frame(kHeaders, 0, 1, 1), now_);
    int passed = 0;
    while (passed < 100 && small.from_client(frame(kContinuation, 0, 1, 1), now_).empty()) ++passed;
    EXPECT_EQ(passed, limits_.continuations);
}

TEST_F(FrameCheckTest, NothingComesInTheMidstOfHeaders) {
    EXPECT_EQ(send(frame(kHeaders, 0, 1, 10)), "");
    EXPECT_EQ(send(frame(kPing, 0, 0, 8)), "a frame is in the midst of headers");
}

TEST_F(FrameCheckTest, ResetsAreCountedOfBothSides) {
    for (uint32_t i = 0; i < 100; ++i) {
        const uint32_t stream = 2 * i + 1;
        EXPECT_EQ(send(frame(kHeaders, kEndHeaders, stream, 10)), "");
        EXPECT_EQ(i % 2 == 0 ? send(frame(kReset, 0, stream, 4)) : answer(frame(kReset, 0, stream, 4)), "");
    }
    EXPECT_EQ(check_.open_streams(), 0U);
    EXPECT_EQ(passes(frame(kReset, 0, 1001, 4), 1000), limits_.resets - 100);
    now_ = now_ + limits_.window;
    EXPECT_EQ(passes(frame(kReset, 0, 1001, 4), 1000), limits_.resets) << "each window has its own";
}

TEST_F(FrameCheckTest, FramesThatCarryNothingAreCounted) {
    EXPECT_EQ(passes(frame(kPing, 0, 0, 8), 600), 600);
    EXPECT_EQ(passes(frame(kSettings, 0, 0, 6), 1000), limits_.odd - 600);
}

TEST_F(FrameCheckTest, OnlyDataAndHeadersAreLarge) {
    EXPECT_EQ(send(frame(kSettings, 0, 0, 60000)), "a frame is too large");
}

TEST_F(FrameCheckTest, WhatIsAskedAtOnceIsBounded) {
    size_t sent = 0;
    for (uint32_t stream = 1; sent < 2 * limits_.requests; stream += 2) {
        EXPECT_EQ(send(frame(kHeaders, kEndHeaders, stream, 10)), "");
        if (!send(frame(kData, 0, stream, size_t{1} << 20)).empty()) break;
        sent += size_t{1} << 20;
    }
    EXPECT_EQ(sent, limits_.requests);
}

}  // namespace
}  // namespace berth::link
