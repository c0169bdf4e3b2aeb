#include "store/log_row.h"

#include <array>
#include <string>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace berth::store {
namespace {

void append(std::string& out, int64_t value) {
    std::array<char, 8> bytes;
    for (int i = 0; i < 8; ++i)
        bytes[static_cast<size_t>(i)] = static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
    out.append(bytes.data(), bytes.size());
}

void append(std::string& out, std::string_view text) {
    append(out, static_cast<int64_t>(text.size()));
    out.append(text);
}

}  // namespace

int64_t checksum(const LogRow& row) {
    std::string head;
    head.reserve(256);
    append(head, row.id);
    append(head, row.created);
    for (const std::string_view text : {row.kind, row.ns, row.name, row.uid}) append(head, text);
    append(head, row.object ? static_cast<int64_t>(row.object->size()) : -1);
    const uint64_t sum = XXH3_64bits(head.data(), head.size());
    if (!row.object) return static_cast<int64_t>(sum);
    return static_cast<int64_t>(XXH3_64bits_withSeed(row.object->data(), row.object->size(), sum));
}

}  // namespace berth::store
