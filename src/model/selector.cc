#include "model/selector.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "model/names.h"

namespace berth::model {

std::optional<int64_t> parse_integer(std::string_view text) {
    if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
    int64_t value = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

namespace {

using base::bad_request;
using Op = Requirement::Op;

bool holds(const std::vector<std::string>& sorted, std::string_view value) {
    return std::binary_search(sorted.begin(), sorted.end(), value);
}

bool compares(Op op, const std::string& value, const std::vector<std::string>& limit) {
    if (limit.size() != 1) return false;
    const auto left = parse_integer(value);
    const auto right = parse_integer(limit.front());
    if (!left || !right) return false;
    return op == Op::Greater ? *left > *right : *left < *right;
}

std::string_view symbol(Op op) {
    switch (op) {
        case Op::Equals:
            return "=";
        case Op::DoubleEquals:
            return "==";
        case Op::NotEquals:
            return "!=";
        case Op::In:
            return " in ";
        case Op::NotIn:
            return " notin ";
        case Op::Greater:
            return ">";
        case Op::Less:
            return "<";
        case Op::Exists:
        case Op::DoesNotExist:
            return "";
    }
    return "";
}

// Nothing when op may have that many values.
Fault count_fault(Op op, size_t values) {
    switch (op) {
        case Op::In:
        case Op::NotIn:
            return values > 0 ? Fault() : "operators In and NotIn need at least one value";
        case Op::Exists:
        case Op::DoesNotExist:
            return values == 0 ? Fault() : "operators Exists and DoesNotExist take no values";
        default:
            return values == 1 ? Fault() : "this operator needs exactly one value";
    }
}

Status check_limits(const SelectorLimits& limits, const std::vector<Requirement>& requirements) {
    if (requirements.size() > limits.requirements) {
        return bad_request(fmt::format("selector has {} requirements; at most {} are accepted", requirements.size(),
                                       limits.requirements));
    }
    for (const auto& requirement : requirements) {
        if (requirement.values.size() > limits.values) {
            return bad_request(fmt::format("selector requirement on \"{}\" has {} values; at most {} are accepted",
                                           requirement.key, requirement.values.size(), limits.values));
        }
    }
    return {};
}

}  // namespace

bool Requirement::matches(const Labels& labels) const {
    const std::string* value = labels.find(key);
    switch (op) {
        case Op::Equals:
        case Op::DoubleEquals:
        case Op::In:
            return value && holds(values, *value);
        case Op::NotEquals:
        case Op::NotIn:
            return !value || !holds(values, *value);
        case Op::Exists:
            return value != nullptr;
        case Op::DoesNotExist:
            return value == nullptr;
        case Op::Greater:
        case Op::Less:
            return value && compares(op, *value, values);
    }
    return false;
}

std::string Requirement::text() const {
    const bool set = op == Op::In || op == Op::NotIn;
    return fmt::format("{}{}{}{}{}{}", op == Op::DoesNotExist ? "!" : "", key, symbol(op), set ? "(" : "",
                       fmt::join(values, ","), set ? ")" : "");
}

Result<Requirement> make_requirement(std::string key, Op op, std::vector<std::string> values) {
    if (const auto fault = label_key_fault(key))
        return bad_request(fmt::format("selector key \"{}\": {}", key.substr(0, 128), *fault));
    if (const auto fault = count_fault(op, values.size()))
        return bad_request(fmt::format("selector requirement on \"{}\": {}", key, *fault));
    for (const auto& value : values) {
        if (const auto fault = label_value_fault(value))
            return bad_request(fmt::format("selector value \"{}\" of \"{}\": {}", value.substr(0, 128), key, *fault));
        if ((op == Op::Greater || op == Op::Less) && !parse_integer(value))
            return bad_request(fmt::format("selector value \"{}\" of \"{}\" must be an integer", value, key));
    }
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return Requirement{std::move(key), op, std::move(values)};
}

Selector::Selector(std::vector<Requirement> requirements) : requirements_(std::move(requirements)) {
    std::stable_sort(requirements_.begin(), requirements_.end(),
                     [](const Requirement& a, const Requirement& b) { return a.key < b.key; });
}

Selector Selector::nothing() {
    Selector selector;
    selector.nothing_ = true;
    return selector;
}

bool Selector::matches(const Labels& labels) const {
    return !nothing_ && std::all_of(requirements_.begin(), requirements_.end(),
                                    [&](const Requirement& requirement) { return requirement.matches(labels); });
}

std::string Selector::text() const {
    std::string out;
    for (const auto& requirement : requirements_) {
        if (!out.empty()) out += ',';
        out += requirement.text();
    }
    return out;
}

Result<Selector> to_selector(const LabelSelector& selector, const SelectorLimits& limits) {
    std::vector<Requirement> requirements;
    for (const auto& [key, value] : selector.match_labels)
        requirements.push_back(TRY(make_requirement(key, Op::Equals, {value})));
    for (const auto& [key, op, values] : selector.match_expressions) {
        Op meant = Op::In;
        if (op == "In") {
            meant = Op::In;
        } else if (op == "NotIn") {
            meant = Op::NotIn;
        } else if (op == "Exists") {
            meant = Op::Exists;
        } else if (op == "DoesNotExist") {
            meant = Op::DoesNotExist;
        } else {
            return bad_request(fmt::format("\"{}\" is not a valid label selector operator", op.substr(0, 64)));
        }
        requirements.push_back(TRY(make_requirement(key, meant, values)));
    }
    if (auto checked = check_limits(limits, requirements); !checked) return checked.error();
    return Selector(std::move(requirements));
}

Result<Selector> to_selector(const std::optional<LabelSelector>& selector, const SelectorLimits& limits) {
    if (!selector) return Selector::nothing();
    return to_selector(*selector, limits);
}

}  // namespace berth::model
