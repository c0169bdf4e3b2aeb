#include "model/kinds/wire.h"

namespace berth::model::wire {

std::optional<uint64_t> Reader::varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (rest_.empty()) return std::nullopt;
        const auto byte = static_cast<uint8_t>(rest_.front());
        rest_.remove_prefix(1);
        value |= uint64_t(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    return std::nullopt;
}

std::optional<uint64_t> Reader::fixed(size_t bytes) {
    if (rest_.size() < bytes) return std::nullopt;
    uint64_t value = 0;
    for (size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<uint8_t>(rest_[i]);
    rest_.remove_prefix(bytes);
    return value;
}

std::optional<Item> Reader::next() {
    const auto tag = varint();
    if (!tag || *tag >> 3 == 0 || *tag >> 3 > 0x1fffffff) return std::nullopt;
    Item item;
    item.number = static_cast<int>(*tag >> 3);
    item.kind = static_cast<Kind>(*tag & 7);
    if (item.kind == Kind::Bytes) {
        const auto length = varint();
        if (!length || *length > rest_.size()) return std::nullopt;
        item.bytes = rest_.substr(0, *length);
        rest_.remove_prefix(*length);
        return item;
    }
    std::optional<uint64_t> value;
    if (item.kind == Kind::Varint) value = varint();
    if (item.kind == Kind::Fixed64) value = fixed(8);
    if (item.kind == Kind::Fixed32) value = fixed(4);
    if (!value) return std::nullopt;
    item.integer = *value;
    return item;
}

void Writer::raw_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_.push_back(static_cast<char>(value | 0x80));
    out_.push_back(static_cast<char>(value));
}

void Writer::tag(int number, Kind kind) {
    raw_varint(static_cast<uint64_t>(number) << 3 | static_cast<uint64_t>(kind));
}

void Writer::varint(int number, uint64_t value) {
    tag(number, Kind::Varint);
    raw_varint(value);
}

void Writer::bytes(int number, std::string_view value) {
    tag(number, Kind::Bytes);
    raw_varint(value.size());
    out_ += value;
}

}  // namespace berth::model::wire
