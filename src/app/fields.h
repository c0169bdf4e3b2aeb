#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"

namespace berth::app {

// The fields of one object of a configuration file. Every field that is read is remembered; check() refuses the rest,
// and the first that had a wrong type. Errors name the path: profiles[0].plugins.score: ....
class Fields {
public:
    Fields(const Json& value, std::string path) : path_(std::move(path)) {
        object_ = value.if_object();
        if (object_ == nullptr) wrong("", "must be an object");
    }

    std::optional<std::string> text(std::string_view name);
    std::optional<int64_t> integer(std::string_view name);
    std::optional<bool> flag(std::string_view name);
    std::optional<base::Duration> duration(std::string_view name);
    // An object; without fields when it is absent.
    Fields object(std::string_view name);
    std::vector<Fields> list(std::string_view name);
    // Known, and of no meaning here.
    void ignore(std::string_view name) { known_.insert(std::string(name)); }

    // Remembers what is wrong with a field, unless an earlier one already was.
    void wrong(std::string_view name, std::string_view what);
    Status check() const;
    const std::string& path() const { return path_; }

private:
    const Json* take(std::string_view name);
    std::string path_to(std::string_view name) const;

    std::string path_;
    const JsonObject* object_ = nullptr;
    std::set<std::string, std::less<>> known_;
    std::string trouble_;
};

}  // namespace berth::app
