#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/selector.h"

namespace berth::model {

// "spec.nodeName=n1,status.phase!=Running": conditions on fields of an object, all of which must hold. In values '\',
// ',' and '=' are written with a '\' before them. Which fields a kind offers is for the caller to check.
class FieldSelector {
public:
    struct Term {
        std::string field;
        std::string value;
        bool equal = true;
        bool operator==(const Term&) const = default;
    };

    static Result<FieldSelector> parse(std::string_view text, const SelectorLimits& limits = {});
    FieldSelector() = default;
    explicit FieldSelector(std::vector<Term> terms) : terms_(std::move(terms)) {}

    // value_of(field) gives the field's text, "" when it is absent.
    template <class ValueOf>
    bool matches(ValueOf&& value_of) const {
        for (const auto& term : terms_) {
            if ((value_of(term.field) == term.value) != term.equal) return false;
        }
        return true;
    }
    bool matches_everything() const { return terms_.empty(); }
    const std::vector<Term>& terms() const { return terms_; }
    std::string text() const;
    bool operator==(const FieldSelector&) const = default;

private:
    std::vector<Term> terms_;
};

}  // namespace berth::model

namespace berth {
using model::FieldSelector;
}  // namespace berth
