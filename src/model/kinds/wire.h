#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Protobuf's wire format: tags, varints, lengths.
namespace berth::model::wire {

enum class Kind : uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

// One field as it stands on the wire.
struct Item {
    int number = 0;
    Kind kind = Kind::Varint;
    uint64_t integer = 0;    // Varint, Fixed64, Fixed32
    std::string_view bytes;  // Bytes
};

// Reads the items of one message one after the other.
class Reader {
public:
    explicit Reader(std::string_view message) : rest_(message) {}

    bool at_end() const { return rest_.empty(); }
    // nullopt: the message is cut short or malformed.
    std::optional<Item> next();
    std::optional<uint64_t> varint();

private:
    std::optional<uint64_t> fixed(size_t bytes);

    std::string_view rest_;
};

// Appends the items of one message.
class Writer {
public:
    void varint(int number, uint64_t value);
    void bytes(int number, std::string_view value);

    std::string take() { return std::move(out_); }
    const std::string& out() const { return out_; }

private:
    void tag(int number, Kind kind);
    void raw_varint(uint64_t value);

    std::string out_;
};

}  // namespace berth::model::wire
