#include "model/kinds/fields.h"

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "base/base64.h"
#include "model/kinds/where.h"
#include "model/quantity.h"
#include "model/times.h"

namespace berth::model {
namespace {

using base::bad_request;

// "core.v1.PodSpec" as Go's decoder names it: "PodSpec" for the owner, "v1.PodSpec" for the type.
std::string_view owner_name(const Type& type) {
    return std::string_view(type.name).substr(type.name.rfind('.') + 1);
}

std::string go_name(const Field& f) {
    static constexpr const char* kNames[] = {"",
                                             "string",
                                             "bool",
                                             "int32",
                                             "int64",
                                             "float64",
                                             "[]uint8",
                                             "v1.Time",
                                             "v1.MicroTime",
                                             "v1.Duration",
                                             "resource.Quantity",
                                             "intstr.IntOrString",
                                             "runtime.RawExtension",
                                             "v1.FieldsV1",
                                             "v1.JSON",
                                             "[]string",
                                             "bool",
                                             "v1.JSONSchemaProps",
                                             "v1.JSONSchemaProps"};
    std::string name = kNames[static_cast<size_t>(f.form)];
    if (f.form == Form::Struct) name = f.type->name.substr(f.type->name.find('.') + 1);
    if (f.holder == Holder::List) return "[]" + name;
    if (f.holder == Holder::Map) return "map[string]" + name;
    return name;
}

std::string json_kind(const Json& v) {
    if (v.is_string()) return "string";
    if (v.is_bool()) return "bool";
    if (v.is_object()) return "object";
    if (v.is_array()) return "array";
    return v.is_double() ? "number " + base::to_text(v) : "number";
}

Error mismatch(const Json& value, const Type& owner, const Field& f, const Where& where) {
    return bad_request(fmt::format("json: cannot unmarshal {} into Go struct field {}.{} of type {}", json_kind(value),
                                   owner_name(owner), where.plain_text(), go_name(f)));
}

bool is_integer(const Json& v) {
    return v.is_int64() || (v.is_uint64() && v.get_uint64() <= uint64_t(std::numeric_limits<int64_t>::max()));
}

bool fits_int32(const Json& v) {
    return v.is_int64() && v.get_int64() >= INT32_MIN && v.get_int64() <= INT32_MAX;
}

// The same, and the error says which field it is about.
template <class T>
Result<T> located(Result<T> read, const Where& where) {
    if (!read) return bad_request(fmt::format("{}: {}", where.text(), read.error().message));
    return read;
}

constexpr size_t kMostComplaints = 100;  // as Kubernetes' decoder

class Checker {
public:
    std::vector<std::string> complaints;

    Status object(JsonObject& o, const Type& type, const Where& where, bool keep, const JsonObject* only = nullptr) {
        for (auto it = o.begin(); it != o.end();) {
            if (only != nullptr && !only->contains(it->key())) {
                ++it;
                continue;
            }
            const Where here = where.member(it->key());
            const Field* f = type.find(it->key());
            if (f == nullptr) {
                if (!keep && complaints.size() < kMostComplaints)
                    complaints.push_back(fmt::format("unknown field \"{}\"", here.text()));
                it = keep ? it + 1 : o.erase(it);
                continue;
            }
            if (it->value().is_null() && !keep) {
                it = o.erase(it);
                continue;
            }
            const bool kept_below = keep || f->keep_unknown;
            TRY(member(it->value(), type, *f, here, kept_below));
            it = !kept_below && left_out(it->value(), *f) ? o.erase(it) : it + 1;
        }
        if (!keep) fill_zeros(o, type);
        return {};
    }

private:
    // Whether Go's omitempty leaves the value out.
    static bool left_out(const Json& v, const Field& f) {
        if (!f.omit_empty) return false;
        if (f.holder == Holder::List) return v.get_array().empty();
        if (f.holder == Holder::Map) return v.get_object().empty();
        if (f.pointer) return false;
        switch (f.form) {
            case Form::String:
            case Form::Bytes:
                return v.get_string().empty();
            case Form::Bool:
                return !v.get_bool();
            case Form::Int32:
            case Form::Int64:
                return v.is_int64() && v.get_int64() == 0;
            case Form::Double:
                return v == 0 || v == 0.0;
            default:
                return false;
        }
    }

    Status member(Json& v, const Type& owner, const Field& f, const Where& where, bool keep) {
        if (v.is_null()) return {};
        if (f.holder == Holder::List) {
            if (!v.is_array()) return mismatch(v, owner, f, where);
            size_t i = 0;
            for (auto& item : v.get_array()) TRY(element(item, owner, f, where.item(i++), keep));
            return {};
        }
        if (f.holder == Holder::Map) {
            if (!v.is_object()) return mismatch(v, owner, f, where);
            for (auto& entry : v.get_object()) TRY(element(entry.value(), owner, f, where.member(entry.key()), keep));
            return {};
        }
        return one(v, owner, f, where, keep);
    }

    // An element of a list or map: null stands for the zero value.
    Status element(Json& v, const Type& owner, const Field& f, const Where& where, bool keep) {
        if (v.is_null() && !keep) {
            if (f.form == Form::Struct) v = JsonObject();
            if (f.form == Form::String || f.form == Form::Bytes) v = "";
            if (f.form == Form::Int32 || f.form == Form::Int64) v = 0;
            if (f.form == Form::Quantity) v = "0";
            if (v.is_null()) return {};
        }
        return one(v, owner, f, where, keep);
    }

    Status one(Json& v, const Type& owner, const Field& f, const Where& where, bool keep) {
        switch (f.form) {
            case Form::Struct:
                if (!v.is_object()) return mismatch(v, owner, f, where);
                return object(v.get_object(), *f.type, where, keep);
            case Form::String:
                return v.is_string() ? Status() : mismatch(v, owner, f, where);
            case Form::Bool:
                return v.is_bool() ? Status() : mismatch(v, owner, f, where);
            case Form::Int32:
                return fits_int32(v) ? Status() : mismatch(v, owner, f, where);
            case Form::Int64:
                return is_integer(v) ? Status() : mismatch(v, owner, f, where);
            case Form::Double:
                return v.is_number() ? Status() : mismatch(v, owner, f, where);
            case Form::IntOrString:
                return v.is_string() || fits_int32(v) ? Status() : mismatch(v, owner, f, where);
            case Form::FieldsV1:
                return v.is_object() ? Status() : mismatch(v, owner, f, where);
            case Form::RawExtension:
            case Form::Any:
                return {};
            case Form::Strings:
                return strings(v, owner, f, where);
            case Form::SchemaOrBool:
            case Form::SchemaOrArray:
            case Form::SchemaOrStrings:
                return schema(v, owner, f, where);
            default:
                return text(v, owner, f, where, keep);
        }
    }

    static Status strings(const Json& v, const Type& owner, const Field& f, const Where& where) {
        if (!v.is_array()) return mismatch(v, owner, f, where);
        for (const auto& item : v.get_array()) {
            if (!item.is_string()) return mismatch(item, owner, f, where);
        }
        return {};
    }

    // A schema, or its other form: a flag, a list of schemas, a list of names.
    Status schema(Json& v, const Type& owner, const Field& f, const Where& where) {
        if (v.is_object()) return object(v.get_object(), *f.type, where, false);
        if (f.form == Form::SchemaOrBool && v.is_bool()) return {};
        if (f.form == Form::SchemaOrStrings) return strings(v, owner, f, where);
        if (f.form != Form::SchemaOrArray || !v.is_array()) return mismatch(v, owner, f, where);
        size_t i = 0;
        for (auto& item : v.get_array()) {
            if (!item.is_object()) return mismatch(item, owner, f, where);
            TRY(object(item.get_object(), *f.type, where.item(i++), false));
        }
        return {};
    }

    // Values with a syntax of their own; they become canonical unless the document is to be kept as it is.
    static Status text(Json& v, const Type& owner, const Field& f, const Where& where, bool keep) {
        if (f.form == Form::Quantity && v.is_number()) {
            const auto amount = TRY(located(Quantity::parse(base::to_text(v)), where));
            if (!keep) v = amount.text();
            return {};
        }
        if (!v.is_string()) return mismatch(v, owner, f, where);
        const std::string_view written(v.get_string().data(), v.get_string().size());
        std::optional<std::string> canonical;
        if (f.form == Form::Quantity) canonical = TRY(located(Quantity::parse(written), where)).text();
        if (f.form == Form::Time) {
            const base::Time time = TRY(located(parse_time(written), where));
            // In UTC and without a fraction there is one way to write it.
            if (written.size() != 20 || written.back() != 'Z') canonical = time_text(time);
        }
        if (f.form == Form::MicroTime) canonical = micro_time_text(TRY(located(parse_time(written), where)));
        if (f.form == Form::Duration) TRY(located(parse_duration(written), where));
        if (f.form == Form::Bytes && !base::from_base64(written))
            return bad_request(fmt::format("illegal base64 data in {}", where.text()));
        if (canonical && !keep && *canonical != written) v = *canonical;
        return {};
    }
};

// The zero value that Go prints, or nullopt when that is null.
std::optional<Json> zero_of(const Field& f) {
    if (f.holder != Holder::One || f.pointer) return std::nullopt;
    switch (f.form) {
        case Form::Struct: {
            JsonObject empty;
            fill_zeros(empty, *f.type);
            return empty;
        }
        case Form::String:
            return Json("");
        case Form::Bool:
            return Json(false);
        case Form::Int32:
        case Form::Int64:
        case Form::Double:
        case Form::IntOrString:
            return Json(0);
        case Form::Quantity:
            return Json("0");
        default:
            return std::nullopt;
    }
}

}  // namespace

void fill_zeros(JsonObject& object, const Type& type) {
    for (const Field* f : type.sparse) {
        if (object.contains(f->name)) continue;
        if (auto zero = zero_of(*f)) object.emplace(f->name, std::move(*zero));
    }
}

Result<std::vector<std::string>> check_fields(Json& document, const Type& type, const JsonObject* only) {
    if (!document.is_object()) {
        return bad_request(fmt::format("json: cannot unmarshal {} into Go value of type {}", json_kind(document),
                                       type.name.substr(type.name.find('.') + 1)));
    }
    Checker checker;
    TRY(checker.object(document.get_object(), type, {}, false, only));
    return std::move(checker.complaints);
}

Error strict_error(const std::vector<std::string>& complaints) {
    return bad_request(fmt::format("strict decoding error: {}", fmt::join(complaints, ", ")));
}

}  // namespace berth::model
