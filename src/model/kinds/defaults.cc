#include "model/kinds/defaults.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>

#include "base/check.h"
#include "model/kinds/default_rules.h"
#include "model/kinds/path.h"
#include "model/kinds/text.h"
#include "model/quantity.h"

namespace berth::model {
namespace {

constexpr std::string_view kDefaults =
#include "defaults.tbl.inc"
    ;

enum class When : uint8_t { Always, Has, HasNot, Is };

struct Rule {
    std::vector<std::string> path;
    Json value;
    When when = When::Always;
    std::string other;  // a path
    std::string word;
    DefaultRule special = nullptr;
};

// Nothing was given: missing, or a zero that Go's decoder cannot tell from missing.
bool is_missing(const Json* value) {
    if (value == nullptr || value->is_null()) return true;
    if (const auto* text = value->if_string()) return text->empty();
    if (const auto* list = value->if_array()) return list->empty();
    return false;
}

bool is_zero(const Json& value) {
    return value.is_int64() && value.get_int64() == 0;
}

Rule parse_rule(std::string_view line) {
    Rule rule;
    line = text::trim(line);
    if (line.front() == '@') {
        rule.special = default_rule(line.substr(1));
        CHECK(rule.special != nullptr);
        return rule;
    }
    const size_t equals = line.find(" = ");
    const size_t condition = line.find(" if ");
    rule.path = text::split<std::vector<std::string>>(line.substr(0, equals), '.');
    rule.value = base::parse_json(line.substr(equals + 3, condition - equals - 3)).value();
    if (condition == std::string_view::npos) return rule;
    std::string_view rest = line.substr(condition + 4);
    auto word = text::word(rest);
    rule.when = word == "no" ? When::HasNot : When::Has;
    if (word == "no") word = text::word(rest);
    rule.other = "." + std::string(word);
    if (text::word(rest) == "is") rule.when = When::Is;
    rule.word = text::word(rest);
    return rule;
}

bool holds(const Rule& rule, const JsonObject& object) {
    if (rule.when == When::Always) return true;
    const Json* other = nullptr;
    std::string_view rest = std::string_view(rule.other).substr(1);
    for (const JsonObject* here = &object; here != nullptr && !rest.empty();) {
        other = here->if_contains(text::cut(rest, '.'));
        here = other == nullptr ? nullptr : other->if_object();
    }
    if (!rest.empty()) other = nullptr;
    if (rule.when == When::Is) return other != nullptr && other->is_string() && other->get_string() == rule.word;
    return is_missing(other) == (rule.when == When::HasNot);
}

// All rules, and for each type whether it or anything inside it has some, so that the walk leaves the rest alone.
class Defaults {
public:
    Defaults() {
        const Type* type = nullptr;
        text::lines(kDefaults, [&](std::string_view line) {
            if (line.front() == ' ') {
                rules_[type].push_back(parse_rule(line));
            } else {
                type = types()->find(line);
                CHECK(type != nullptr);
            }
        });
        for (bool grown = true; grown;) {
            grown = false;
            for (const auto& t : types()->all()) grown |= !concerns(t.get()) && reaches(*t) && mark(t.get());
        }
    }

    void apply(JsonObject& object, const Type& type, const JsonObject* only = nullptr) const {
        if (const auto found = rules_.find(&type); found != rules_.end()) {
            for (const auto& rule : found->second) apply_rule(object, rule, type);
        }
        for (auto& member : object) {
            if (only != nullptr && !only->contains(member.key())) continue;
            const Field* f = type.find(member.key());
            if (f == nullptr || f->keep_unknown) continue;
            if (f->form == Form::Struct && concerns(f->type)) {
                descend(member.value(), *f);
            } else if (f->form == Form::Quantity && f->holder == Holder::Map) {
                round_up(member.value());
            }
        }
    }

private:
    bool concerns(const Type* type) const { return reaching_.contains(type) || rules_.contains(type); }
    bool mark(const Type* type) { return reaching_.emplace(type, true).second; }
    bool reaches(const Type& type) const {
        return std::any_of(type.fields.begin(), type.fields.end(), [&](const Field& f) {
            return (f.type != nullptr && concerns(f.type)) || (f.form == Form::Quantity && f.holder == Holder::Map);
        });
    }

    static void apply_rule(JsonObject& object, const Rule& rule, const Type& type) {
        if (rule.special != nullptr) {
            rule.special(object);
            return;
        }
        if (!holds(rule, object)) return;
        JsonObject* here = &object;
        for (size_t i = 0; i + 1 < rule.path.size(); ++i) {
            Json& next = (*here)[rule.path[i]];
            if (!next.is_object()) next = JsonObject();
            here = &next.get_object();
        }
        Json* present = here->if_contains(rule.path.back());
        const Field* f = rule.path.size() == 1 ? type.find(rule.path.back()) : nullptr;
        const bool zero_counts = f != nullptr && f->pointer;
        const bool missing = zero_counts ? present == nullptr || present->is_null()
                                         : is_missing(present) || (is_zero(*present) && f != nullptr);
        if (missing) (*here)[rule.path.back()] = rule.value;
    }

    void descend(Json& value, const Field& f) const {
        if (f.holder == Holder::One) {
            if (value.is_object()) apply(value.get_object(), *f.type);
        } else if (auto* list = value.if_array()) {
            for (auto& item : *list) {
                if (item.is_object()) apply(item.get_object(), *f.type);
            }
        } else if (auto* map = value.if_object()) {
            for (auto& entry : *map) {
                if (entry.value().is_object()) apply(entry.value().get_object(), *f.type);
            }
        }
    }

    // Amounts in resource lists are whole thousandths; finer ones are rounded up.
    static void round_up(Json& map) {
        if (!map.is_object()) return;
        for (auto& entry : map.get_object()) {
            const auto* text = entry.value().if_string();
            if (text == nullptr || text->empty() || (text->back() != 'n' && text->back() != 'u')) continue;
            const auto amount = Quantity::parse(std::string_view(text->data(), text->size()));
            if (amount.ok()) entry.value() = Quantity::from_milli(amount->milli(), amount->format()).text();
        }
    }

    absl::flat_hash_map<const Type*, std::vector<Rule>> rules_;
    absl::flat_hash_map<const Type*, bool> reaching_;
};

const Defaults& defaults() {
    static const Defaults all;
    return all;
}

}  // namespace

void apply_defaults(Json& object, const Kind& kind, const JsonObject* only) {
    if (kind.type != nullptr && object.is_object()) defaults().apply(object.get_object(), *kind.type, only);
}

}  // namespace berth::model
