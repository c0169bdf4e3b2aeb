#include "model/kinds/printers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/kinds/path.h"
#include "model/kinds/table.h"
#include "model/selector.h"
#include "model/times.h"

namespace berth::model {
namespace {

// The string or number at a path as text; "" when there is none.
std::string text_at(const Json& object, std::string_view path) {
    const Json* found = at_path(object, path);
    if (found == nullptr || found->is_null()) return "";
    return found->is_string() ? std::string(found->get_string()) : base::to_text(*found);
}

Json text_or(const Cell& c, std::string_view path, std::string_view otherwise) {
    const std::string text = text_at(c.object, path);
    return Json(text.empty() ? std::string(otherwise) : text);
}

// Pointers: "" is a value.
Json given_or(const Cell& c, std::string_view path, std::string_view otherwise) {
    return Json(at_path(c.object, path) == nullptr ? std::string(otherwise) : text_at(c.object, path));
}

Json or_none(const Cell& c) {
    return text_or(c, c.argument, "<none>");
}
Json or_unset(const Cell& c) {
    return given_or(c, c.argument, "<unset>");
}
Json or_unknown(const Cell& c) {
    return text_or(c, c.argument, "<unknown>");
}
Json or_na(const Cell& c) {
    return given_or(c, c.argument, "N/A");
}
Json or_null(const Cell& c) {
    const std::string text = text_at(c.object, c.argument);
    return text.empty() ? Json() : Json(text);
}

// "or Delete .reclaimPolicy"
Json or_word(const Cell& c) {
    const size_t space = c.argument.find(' ');
    return given_or(c, c.argument.substr(space + 1), c.argument.substr(0, space));
}

Json quantity(const Cell& c) {
    return text_or(c, c.argument, "0");
}

Json trimmed(const Cell& c) {
    std::string_view text = string_at(c.object, c.argument);
    const auto blank = [](char ch) { return ch == ' ' || ch == '\n' || ch == '\t' || ch == '\r'; };
    while (!text.empty() && blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && blank(text.back())) text.remove_suffix(1);
    return Json(text);
}

Json integer(const Cell& c) {
    return Json(int_at(c.object, c.argument));
}

Json flag(const Cell& c) {
    return Json(bool_at(c.object, c.argument));
}

Json flag_or_true(const Cell& c) {
    return Json(at_path(c.object, c.argument) == nullptr || bool_at(c.object, c.argument));
}

Json true_false(const Cell& c) {
    if (at_path(c.object, c.argument) == nullptr) return "<unset>";
    return bool_at(c.object, c.argument) ? "True" : "False";
}

Json count(const Cell& c) {
    return Json(static_cast<int64_t>(list_at(c.object, c.argument).size() + members_at(c.object, c.argument).size()));
}

Json age(const Cell& c) {
    return Json(age_at(c, c.argument.empty() ? ".metadata.creationTimestamp" : c.argument));
}

Json age_or_none(const Cell& c) {
    return string_at(c.object, c.argument).empty() ? Json("<none>") : age(c);
}

Json joined_or_none(const Cell& c) {
    std::vector<std::string> items;
    for (const auto& item : list_at(c.object, c.argument)) items.emplace_back(string_at(item, ""));
    const std::string all = joined(items);
    return Json(all.empty() ? "<none>" : all);
}

Json labels(const Cell& c) {
    std::map<std::string, std::string> sorted;
    for (const auto& label : members_at(c.object, c.argument)) sorted[label.key()] = string_at(label.value(), "");
    std::vector<std::string> items;
    for (const auto& [key, value] : sorted) items.push_back(key + "=" + value);
    return Json(items.empty() ? "<none>" : joined(items));
}

LabelSelector selector_at(const Json& object, std::string_view path) {
    LabelSelector selector;
    const Json* found = at_path(object, path);
    if (found == nullptr) return selector;
    for (const auto& label : members_at(*found, ".matchLabels"))
        selector.match_labels.set(std::string(label.key()), std::string(string_at(label.value(), "")));
    for (const auto& item : list_at(*found, ".matchExpressions")) {
        LabelSelector::Expression e{
            std::string(string_at(item, ".key")), std::string(string_at(item, ".operator")), {}};
        for (const auto& value : list_at(item, ".values")) e.values.emplace_back(string_at(value, ""));
        selector.match_expressions.push_back(std::move(e));
    }
    return selector;
}

std::string selector_text(const Cell& c, std::string_view broken) {
    if (at_path(c.object, c.argument) == nullptr) return "";
    const auto selector = to_selector(selector_at(c.object, c.argument));
    return selector.ok() ? selector->text() : std::string(broken);
}

Json selector(const Cell& c) {
    const std::string text = selector_text(c, "<error>");
    return Json(text.empty() ? "<none>" : text);
}

Json plain_selector(const Cell& c) {
    return Json(selector_text(c, "<invalid>"));
}

Json member_of_containers(const Cell& c, std::string_view member) {
    const Json* spec = at_path(c.object, c.argument);
    std::vector<std::string> items;
    if (spec != nullptr) {
        for (const auto& container : list_at(*spec, ".containers")) items.emplace_back(string_at(container, member));
    }
    return Json(joined(items));
}

Json containers(const Cell& c) {
    return member_of_containers(c, ".name");
}
Json images(const Cell& c) {
    return member_of_containers(c, ".image");
}

// "cpu=2,memory=4Gi"
Json resources(const Cell& c) {
    std::map<std::string, std::string> sorted;
    for (const auto& r : members_at(c.object, c.argument)) sorted[r.key()] = text_at(r.value(), "");
    std::vector<std::string> items;
    for (const auto& [name, amount] : sorted) items.push_back(name + "=" + amount);
    return items.empty() ? Json() : Json(joined(items));
}

constexpr Printer kPrinters[] = {
    {"or-none", or_none},
    {"or-unset", or_unset},
    {"or-unknown", or_unknown},
    {"or-na", or_na},
    {"or-null", or_null},
    {"or", or_word},
    {"quantity", quantity},
    {"trim", trimmed},
    {"int", integer},
    {"bool", flag},
    {"bool-or-true", flag_or_true},
    {"true-false", true_false},
    {"count", count},
    {"age", age},
    {"age-or-none", age_or_none},
    {"joined-or-none", joined_or_none},
    {"labels", labels},
    {"selector", selector},
    {"plain-selector", plain_selector},
    {"containers", containers},
    {"images", images},
    {"resources", resources},
};

}  // namespace

std::span<const Printer> general_printers() {
    return kPrinters;
}

const Printer* find_printer(std::string_view name) {
    for (const auto printers : {general_printers(), pod_printers(), workload_printers(), cluster_printers()}) {
        const auto found = std::find_if(printers.begin(), printers.end(), [&](auto& p) { return p.name == name; });
        if (found != printers.end()) return &*found;
    }
    return nullptr;
}

std::string age_at(const Cell& cell, std::string_view path) {
    const auto text = string_at(cell.object, path);
    const auto time = parse_time(text);
    if (text.empty() || !time.ok()) return "<unknown>";
    return human_duration(cell.now - *time);
}

std::string joined(const std::vector<std::string>& items, std::string_view separator) {
    return fmt::format("{}", fmt::join(items, separator));
}

std::string some_of(const std::vector<std::string>& items, size_t most) {
    if (items.size() <= most) return joined(items);
    const std::vector<std::string> first(items.begin(), items.begin() + static_cast<ptrdiff_t>(most));
    return fmt::format("{} + {} more...", joined(first), items.size() - most);
}

}  // namespace berth::model
