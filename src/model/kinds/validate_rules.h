#pragma once

#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "model/kinds/where.h"

namespace berth::model {

// The causes found so far, and how to word one. Values print as Kubernetes prints them: strings in quotes, the rest as
// JSON. What is wrong in very many places is named in the first of them; the last cause then says how many more.
class Causes {
public:
    static constexpr size_t kMost = 100;

    void required(const Where& at, std::string_view words = {});
    void invalid(const Where& at, const Json& value, std::string_view words);
    void unsupported(const Where& at, const Json& value, const std::vector<std::string>& supported);
    void duplicate(const Where& at, const Json& value);
    void not_found(const Where& at, const Json& value);
    void forbidden(const Where& at, std::string_view words);
    void too_long(const Where& at, std::string_view words);

    std::vector<base::Cause> take();

private:
    // False when there is no room for another, which is counted.
    bool room();
    void add(const Where& at, const char* reason, std::string message, std::string_view words);

    std::vector<base::Cause> causes_;
    size_t untold_ = 0;
};

// A rule that a line of rules.tbl cannot say; it gets the object of the type it stands under.
using ValidationRule = void (*)(const Json& object, const Where& where, Causes& causes);

// nullptr when there is none of that name.
ValidationRule validation_rule(std::string_view name);

}  // namespace berth::model
