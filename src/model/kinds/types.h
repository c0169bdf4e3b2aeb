#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// The types of API objects as values, read from types.tbl: what a member is called, what it holds, how patches merge it
// and which number it has in protobuf.
namespace berth::model {

// What one value is. The named ones after Bytes have a form of their own in JSON or protobuf.
enum class Form : uint8_t {
    Struct,
    String,
    Bool,
    Int32,
    Int64,
    Double,
    Bytes,
    Time,
    MicroTime,
    Duration,
    Quantity,
    IntOrString,
    RawExtension,
    FieldsV1,
    Any,           // any JSON
    Strings,       // a list of strings that is a message in protobuf
    SchemaOrBool,  // the three unions of a JSON schema; Field::type is the schema's
    SchemaOrArray,
    SchemaOrStrings,
};

enum class Holder : uint8_t { One, List, Map };
enum class ListType : uint8_t { None, Atomic, Set, Map };

struct Type;

struct Field {
    std::string name;
    Form form = Form::String;
    Holder holder = Holder::One;
    const Type* type = nullptr;  // for Struct and the unions of a schema
    int number = 0;              // in protobuf; 0: not on the wire
    bool pointer = false;
    bool omit_empty = false;
    bool omit_zero = false;
    bool required = false;
    bool inlined = false;       // its members stand in the parent's JSON object
    bool keep_unknown = false;  // unknown members below are kept
    bool patch_merge = false;   // strategic merge patch merges the list (by merge_key, or as a set of scalars)
    bool retain_keys = false;
    bool map_atomic = false;
    ListType list = ListType::None;
    std::string merge_key;
    std::vector<std::string> map_keys;  // of ListType::Map
};

// Of a field's name: every member of every object that comes in is looked up. Its length and its first and last eight
// characters (four, or one and two) tell names apart.
struct NameHash {
    size_t operator()(std::string_view name) const {
        const size_t size = name.size();
        uint64_t front = 0, back = 0;
        if (size >= 8) {
            std::memcpy(&front, name.data(), 8);
            std::memcpy(&back, name.data() + size - 8, 8);
        } else if (size >= 4) {
            std::memcpy(&front, name.data(), 4);
            std::memcpy(&back, name.data() + size - 4, 4);
        } else if (size > 0) {
            front = static_cast<unsigned char>(name[0]);
            back = static_cast<unsigned char>(name[size / 2]) * 256U + static_cast<unsigned char>(name[size - 1]);
        }
        const uint64_t mixed = (front + size) * 0x9e3779b97f4a7c15 + back * 0xd6e8feb86659fd93;
        return mixed ^ (mixed >> 32);
    }
};

struct Type {
    std::string name;  // "core.v1.Container"
    bool atomic = false;
    std::vector<Field> fields;         // as declared; an inlined member is one field
    std::vector<const Field*> json;    // members of the JSON object (inlined ones flattened), sorted by name
    std::vector<const Field*> sparse;  // those of json whose zero value Go prints: no omitempty, or a plain struct
    absl::flat_hash_map<std::string_view, const Field*, NameHash> by_name;  // of json

    const Field* find(std::string_view name) const;
    const Field* by_number(int number) const;
};

// All types of the tables. Types point at one another, so a table is made once and shared.
class TypeTable {
public:
    // Parses the text of a table; our own tables are trusted: a mistake in them is a failed CHECK.
    static std::shared_ptr<const TypeTable> parse(std::string_view text);

    const Type* find(std::string_view name) const;  // nullptr when there is none
    const std::vector<std::unique_ptr<Type>>& all() const { return types_; }

private:
    std::vector<std::unique_ptr<Type>> types_;  // sorted by name
};

// The embedded table.
const std::shared_ptr<const TypeTable>& types();

}  // namespace berth::model
