#include "model/kinds/types.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>

#include "base/check.h"
#include "model/kinds/text.h"

namespace berth::model {
namespace {

constexpr std::string_view kTypes =
#include "types.tbl.inc"
    ;
constexpr std::string_view kOwnTypes =
#include "types_own.tbl.inc"
    ;

using TypeIndex = absl::flat_hash_map<std::string_view, Type*>;

struct FormName {
    std::string_view name;
    Form form;
};
constexpr FormName kForms[] = {
    {"string", Form::String},
    {"bool", Form::Bool},
    {"int32", Form::Int32},
    {"int64", Form::Int64},
    {"double", Form::Double},
    {"bytes", Form::Bytes},
    {"Time", Form::Time},
    {"MicroTime", Form::MicroTime},
    {"Duration", Form::Duration},
    {"Quantity", Form::Quantity},
    {"IntOrString", Form::IntOrString},
    {"RawExtension", Form::RawExtension},
    {"FieldsV1", Form::FieldsV1},
    {"Any", Form::Any},
    {"Strings", Form::Strings},
    {"SchemaOrBool", Form::SchemaOrBool},
    {"SchemaOrArray", Form::SchemaOrArray},
    {"SchemaOrStrings", Form::SchemaOrStrings},
};
constexpr std::string_view kSchema = "apiextensions.v1.JSONSchemaProps";

void set_form(Field& field, std::string_view name, const TypeIndex& index) {
    if (name.starts_with("[]")) field.holder = Holder::List;
    if (name.starts_with("{}")) field.holder = Holder::Map;
    if (field.holder != Holder::One) name.remove_prefix(2);
    const auto* known = std::find_if(std::begin(kForms), std::end(kForms), [&](auto& f) { return f.name == name; });
    field.form = known == std::end(kForms) ? Form::Struct : known->form;
    if (field.form == Form::Struct || field.form >= Form::SchemaOrBool) {
        const auto found = index.find(field.form == Form::Struct ? name : kSchema);
        CHECK(found != index.end());
        field.type = found->second;
    }
}

void set_list(Field& field, std::string_view value) {
    const auto kind = text::cut(value, ':');
    if (kind == "atomic") field.list = ListType::Atomic;
    if (kind == "set") field.list = ListType::Set;
    if (kind == "map") field.list = ListType::Map;
    field.map_keys = text::split<std::vector<std::string>>(value, ',');
}

void set_mark(Field& field, std::string_view mark) {
    if (mark == "p") field.pointer = true;
    if (mark == "o") field.omit_empty = true;
    if (mark == "z") field.omit_zero = true;
    if (mark == "r") field.required = true;
    if (mark == "inline") field.inlined = true;
    if (mark == "keep") field.keep_unknown = true;
    if (mark == "map:atomic") field.map_atomic = true;
    if (mark.starts_with("merge:")) field.merge_key = mark.substr(6);
    if (mark.starts_with("patch:")) {
        field.patch_merge = mark.find("merge", 6) != std::string_view::npos;
        field.retain_keys = mark.find("retainKeys", 6) != std::string_view::npos;
    }
    if (mark.starts_with("list:")) set_list(field, mark.substr(5));
}

Field parse_field(std::string_view line, const TypeIndex& index) {
    Field field;
    field.name = text::word(line);
    set_form(field, text::word(line), index);
    for (const char c : text::word(line)) field.number = field.number * 10 + (c - '0');
    while (!line.empty()) set_mark(field, text::word(line));
    return field;
}

// Whether Go prints the member although it holds nothing.
bool printed_when_zero(const Field& f) {
    if (!f.omit_empty) return true;
    if (f.pointer || f.omit_zero || f.holder != Holder::One) return false;
    return f.form == Form::Struct || f.form == Form::Time || f.form == Form::MicroTime || f.form == Form::Quantity ||
           f.form == Form::IntOrString || f.form == Form::RawExtension;
}

void flatten(const Type& type, std::vector<const Field*>& out) {
    for (const auto& f : type.fields) {
        if (f.inlined) {
            flatten(*f.type, out);
        } else {
            out.push_back(&f);
        }
    }
}

void finish(Type& type) {
    flatten(type, type.json);
    for (const auto* f : type.json) {
        if (printed_when_zero(*f)) type.sparse.push_back(f);
        type.by_name.emplace(f->name, f);
    }
    std::sort(type.json.begin(), type.json.end(), [](auto* a, auto* b) { return a->name < b->name; });
}

bool by_name(const std::unique_ptr<Type>& type, std::string_view name) {
    return type->name < name;
}

}  // namespace

const Field* Type::find(std::string_view wanted) const {
    const auto at = by_name.find(wanted);
    return at == by_name.end() ? nullptr : at->second;
}

const Field* Type::by_number(int wanted) const {
    const auto at = std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.number == wanted; });
    return at != fields.end() && wanted != 0 ? &*at : nullptr;
}

std::shared_ptr<const TypeTable> TypeTable::parse(std::string_view text) {
    auto table = std::make_shared<TypeTable>();
    TypeIndex index;
    text::lines(text, [&](std::string_view line) {
        if (line.front() == ' ') return;
        auto type = std::make_unique<Type>();
        type->name = text::word(line);
        type->atomic = line == "atomic";
        index.emplace(type->name, type.get());
        table->types_.push_back(std::move(type));
    });
    Type* current = nullptr;
    text::lines(text, [&](std::string_view line) {
        if (line.front() == ' ') {
            current->fields.push_back(parse_field(line, index));
        } else {
            current = index.at(text::word(line));
        }
    });
    for (auto& type : table->types_) finish(*type);
    std::sort(table->types_.begin(), table->types_.end(), [](auto& a, auto& b) { return a->name < b->name; });
    return table;
}

const Type* TypeTable::find(std::string_view name) const {
    const auto at = std::lower_bound(types_.begin(), types_.end(), name, by_name);
    return at != types_.end() && (*at)->name == name ? at->get() : nullptr;
}

const std::shared_ptr<const TypeTable>& types() {
    static const auto table = TypeTable::parse(std::string(kTypes) + std::string(kOwnTypes));
    return table;
}

}  // namespace berth::model
