#include "store/wal_scan.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <span>
#include <vector>

namespace berth::store {
namespace {

// https://www.sqlite.org/fileformat2.html, section 4. Numbers are big-endian; what a checksum reads as numbers is so
// when the magic is odd.
constexpr size_t kHeader = 32;
constexpr size_t kFrameHeader = 24;
constexpr uint32_t kMagic = 0x377f0682;

uint32_t big_endian(const char* at) {
    std::array<unsigned char, 4> b;
    std::memcpy(b.data(), at, 4);
    return static_cast<uint32_t>(b[0]) << 24 | static_cast<uint32_t>(b[1]) << 16 | static_cast<uint32_t>(b[2]) << 8 |
           b[3];
}

struct Sum {
    uint32_t first = 0;
    uint32_t second = 0;
    bool operator==(const Sum&) const = default;

    static Sum at(const char* place) { return {big_endian(place), big_endian(place + 4)}; }
    void add(std::span<const char> bytes, bool big) {
        const auto word = [&](size_t at) {
            const uint32_t value = big_endian(&bytes[at]);
            return big ? value : __builtin_bswap32(value);
        };
        for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
            first += word(i) + second;
            second += word(i + 4) + first;
        }
    }
};

struct Header {
    bool big = false;
    size_t page = 0;
    std::array<char, 8> salts = {};
    Sum sum;
};

bool read_header(std::span<const char> bytes, Header& out) {
    const uint32_t magic = big_endian(bytes.data());
    out.big = (magic & 1) != 0;
    out.page = big_endian(&bytes[8]);
    const bool power_of_two = (out.page & (out.page - 1)) == 0;
    if ((magic & ~1U) != kMagic || out.page < 512 || out.page > 65536 || !power_of_two) return false;
    std::memcpy(out.salts.data(), &bytes[16], 8);
    out.sum.add(bytes.first(24), out.big);
    return out.sum == Sum::at(&bytes[24]);
}

}  // namespace

WalScan scan_wal(const std::string& path) {
    WalScan out;
    std::ifstream in(path, std::ios::binary);
    out.there = in.good();
    std::array<char, kHeader> head;
    Header header;
    if (!in.read(head.data(), kHeader) || !read_header(head, header)) return out;
    out.header = true;
    std::vector<char> frame(kFrameHeader + header.page);
    const std::span<const char> bytes(frame);
    Sum before = header.sum;
    bool broken = false;
    while (in.read(frame.data(), static_cast<std::streamsize>(frame.size()))) {
        Sum sum = before;
        sum.add(bytes.first(8), header.big);
        sum.add(bytes.subspan(kFrameHeader), header.big);
        before = Sum::at(&frame[16]);
        const bool ours = std::memcmp(&frame[8], header.salts.data(), 8) == 0;
        if (!ours || sum != before || big_endian(frame.data()) == 0) {
            broken = true;
        } else if (!broken) {
            ++out.frames;
        } else {
            ++out.good_behind;
            out.ends_behind += big_endian(&frame[4]) != 0 ? 1 : 0;
        }
    }
    return out;
}

std::string WalScan::describe(const std::string& path) const {
    if (!there) return fmt::format("its write-ahead log {} is missing", path);
    if (!header) return fmt::format("its write-ahead log {} is empty or its header is damaged", path);
    std::string out = fmt::format("its write-ahead log {} ends with frame {}", path, frames);
    if (good_behind > 0) out += fmt::format(", the next is damaged and {} good ones stand behind it", good_behind);
    return out;
}

}  // namespace berth::store
