#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/labels.h"

namespace berth::model {

// One condition on one label. Equals, DoubleEquals and In differ only in how they print.
struct Requirement {
    enum class Op : uint8_t { Equals, DoubleEquals, NotEquals, In, NotIn, Exists, DoesNotExist, Greater, Less };

    std::string key;
    Op op = Op::Exists;
    std::vector<std::string> values;  // sorted, unique; one for (in)equality, Greater and Less; none for Exists

    bool matches(const Labels& labels) const;
    std::string text() const;
    bool operator==(const Requirement&) const = default;
};

// What Gt and Lt compare: a decimal integer of 64 bits, with or without a sign.
std::optional<int64_t> parse_integer(std::string_view text);

// Checks key, number of values and their form, and sorts the values.
Result<Requirement> make_requirement(std::string key, Requirement::Op op, std::vector<std::string> values);

// What the door accepts from outside; stored objects are read without limits.
struct SelectorLimits {
    size_t requirements = SIZE_MAX;
    size_t values = SIZE_MAX;  // of one requirement
};
inline constexpr SelectorLimits kDoorLimits{64, 256};

// A set of conditions that must all hold. Without any it matches everything.
class Selector {
public:
    // "a=b,c!=d,e in (f,g),h,!i,j>5"
    static Result<Selector> parse(std::string_view text, const SelectorLimits& limits = {});
    static Selector everything() { return {}; }
    static Selector nothing();
    explicit Selector(std::vector<Requirement> requirements);
    Selector() = default;

    bool matches(const Labels& labels) const;
    bool matches_everything() const { return !nothing_ && requirements_.empty(); }
    bool matches_nothing() const { return nothing_; }
    // Sorted by key; empty for nothing().
    const std::vector<Requirement>& requirements() const { return requirements_; }
    std::string text() const;
    bool operator==(const Selector&) const = default;

private:
    std::vector<Requirement> requirements_;
    bool nothing_ = false;
};

// metav1.LabelSelector: operators are In, NotIn, Exists, DoesNotExist.
struct LabelSelector {
    struct Expression {
        std::string key;
        std::string op;
        std::vector<std::string> values;
        bool operator==(const Expression&) const = default;
    };
    Labels match_labels;
    std::vector<Expression> match_expressions;
    bool operator==(const LabelSelector&) const = default;
};

// An absent selector matches nothing, an empty one everything.
Result<Selector> to_selector(const LabelSelector& selector, const SelectorLimits& limits = {});
Result<Selector> to_selector(const std::optional<LabelSelector>& selector, const SelectorLimits& limits = {});

}  // namespace berth::model

namespace berth {
using model::LabelSelector;
using model::Selector;
}  // namespace berth
