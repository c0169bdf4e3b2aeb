#include "model/kinds/validate.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "model/kinds/path.h"
#include "model/kinds/text.h"
#include "model/kinds/validate_names.h"
#include "model/kinds/validate_pod.h"
#include "model/kinds/validate_rules.h"
#include "model/names.h"
#include "model/times.h"

namespace berth::model {
namespace {

constexpr std::string_view kRules =
#include "rules.tbl.inc"
    ;

struct Rule {
    std::string member;
    std::string name;
    std::string words;  // what follows the numbers
    std::vector<std::string> options;
    int64_t low = 0;
    int64_t high = 0;
    ValidationRule special = nullptr;
};

int64_t number(std::string_view& rest) {
    const auto word = text::word(rest);
    int64_t value = 0;
    CHECK(std::from_chars(word.data(), word.data() + word.size(), value).ec == std::errc());
    return value;
}

Rule parse_rule(std::string_view line) {
    Rule rule;
    rule.member = text::word(line);
    if (rule.member.front() == '@') {
        rule.special = validation_rule(std::string_view(rule.member).substr(1));
        CHECK(rule.special != nullptr);
        return rule;
    }
    rule.name = text::word(line);
    if (rule.name == "min" || rule.name == "above" || rule.name == "range") rule.low = number(line);
    if (rule.name == "range") rule.high = number(line);
    rule.words = text::trim(line);
    rule.options = text::split<std::vector<std::string>>(line, ' ');
    return rule;
}

bool is_empty(const Json* value) {
    if (value == nullptr || value->is_null()) return true;
    if (const auto* s = value->if_string()) return s->empty();
    if (const auto* list = value->if_array()) return list->empty();
    return value->is_int64() && value->get_int64() == 0;
}

void check_number(const Rule& rule, const Json& value, const Where& at, Causes& causes) {
    if (!value.is_int64()) return;
    const int64_t n = value.get_int64();
    if (rule.name == "min" && n < rule.low)
        causes.invalid(at, value, fmt::format("must be greater than or equal to {}", rule.low));
    if (rule.name == "above" && n <= rule.low) causes.invalid(at, value, rule.words);
    if (rule.name == "range" && (n < rule.low || n > rule.high)) {
        causes.invalid(
            at, value,
            rule.words.empty() ? fmt::format("must be between {} and {}, inclusive", rule.low, rule.high) : rule.words);
    }
}

void check_labels_map(const Json& value, const Where& at, Causes& causes) {
    if (!value.is_object()) return;
    for (const auto& label : value.get_object()) {
        if (const auto fault = label_key_fault(label.key())) causes.invalid(at, Json(label.key()), *fault);
        const auto text = string_at(label.value(), "");
        if (const auto fault = label_value_fault(text)) causes.invalid(at, Json(text), *fault);
    }
}

void check_config_keys(const Json& value, const Where& at, Causes& causes) {
    if (!value.is_object()) return;
    for (const auto& entry : value.get_object()) {
        if (const auto fault = config_key_fault(entry.key()))
            causes.invalid(at.key(entry.key()), Json(entry.key()), *fault);
    }
}

void check_unique(const Rule& rule, const Json& list, const Where& at, Causes& causes) {
    if (!list.is_array()) return;
    absl::flat_hash_set<std::string_view> seen;
    const std::string path = "." + rule.words;
    for (size_t i = 0; i < list.get_array().size(); ++i) {
        const auto key = string_at(list.get_array()[i], path);
        if (key.empty()) continue;
        if (seen.insert(key).second) continue;
        const Where item = at.item(i);
        causes.duplicate(item.member(rule.words), Json(key));
    }
}

Fault duration_fault(std::string_view text) {
    const auto read = parse_duration(text);
    if (read && *read >= base::Duration::zero()) return std::nullopt;
    return "must be a duration such as 1h30m, and not negative";
}

using NameCheck = Fault (*)(std::string_view);

NameCheck name_check(std::string_view rule) {
    if (rule == "label") return dns1123_label_fault;
    if (rule == "subdomain") return dns1123_subdomain_fault;
    if (rule == "qualified") return qualified_name_fault;
    if (rule == "port-name") return port_name_fault;
    if (rule == "env-name") return env_name_fault;
    if (rule == "duration") return duration_fault;
    return nullptr;
}

void check_member(const Rule& rule, const Json& value, const Where& at, Causes& causes) {
    if (const NameCheck check = name_check(rule.name)) {
        const auto text = string_at(value, "");
        if (text.empty()) return;
        if (const auto fault = check(text)) causes.invalid(at, value, *fault);
    } else if (rule.name == "one-of") {
        const auto text = string_at(value, "");
        if (!text.empty() && std::find(rule.options.begin(), rule.options.end(), text) == rule.options.end())
            causes.unsupported(at, value, rule.options);
    } else if (rule.name == "labels") {
        check_labels_map(value, at, causes);
    } else if (rule.name == "config-keys") {
        check_config_keys(value, at, causes);
    } else if (rule.name == "unique") {
        check_unique(rule, value, at, causes);
    } else if (rule.name == "port") {
        if (const auto fault = port_fault(value)) causes.invalid(at, value, *fault);
    } else if (rule.name == "share") {
        if (const auto fault = share_fault(value)) causes.invalid(at, value, *fault);
    } else {
        check_number(rule, value, at, causes);
    }
}

// All rules, and which types lead to some, as in defaults.cc.
class Rules {
public:
    Rules() {
        const Type* type = nullptr;
        text::lines(kRules, [&](std::string_view line) {
            if (line.front() != ' ') {
                type = types()->find(line);
                CHECK(type != nullptr);
                return;
            }
            Rule rule = parse_rule(line);
            auto& list = rule.name == "immutable" ? immutable_[type] : rules_[type];
            list.push_back(std::move(rule));
        });
        for (bool grown = true; grown;) {
            grown = false;
            for (const auto& t : types()->all()) {
                if (!concerns(t.get()) && reaches(*t)) grown |= reaching_.emplace(t.get(), true).second;
            }
        }
    }

    void check(const Json& object, const Type& type, const Where& where, Causes& causes) const {
        check_own(object, type, where, causes);
        for (const auto& member : object.get_object()) {
            const Field* f = type.find(member.key());
            if (f == nullptr || f->form != Form::Struct || f->keep_unknown || !concerns(f->type)) continue;
            descend(member.value(), *f, where.member(member.key()), causes);
        }
    }

    const std::vector<Rule>* immutable(const Type* type) const {
        const auto found = immutable_.find(type);
        return found == immutable_.end() ? nullptr : &found->second;
    }

private:
    bool concerns(const Type* type) const { return reaching_.contains(type) || rules_.contains(type); }
    bool reaches(const Type& type) const {
        return std::any_of(type.fields.begin(), type.fields.end(),
                           [&](const Field& f) { return f.form == Form::Struct && concerns(f.type); });
    }

    void check_own(const Json& object, const Type& type, const Where& where, Causes& causes) const {
        const auto found = rules_.find(&type);
        if (found == rules_.end()) return;
        std::string_view silent;
        for (const auto& rule : found->second) {
            if (rule.special != nullptr) {
                rule.special(object, where, causes);
                continue;
            }
            const Json* value = object.get_object().if_contains(rule.member);
            const Where at = where.member(rule.member);
            if (rule.name == "required") {
                if (!is_empty(value)) continue;
                causes.required(at, rule.words);
                silent = rule.member;
            } else if (value != nullptr && rule.member != silent) {
                check_member(rule, *value, at, causes);
            }
        }
    }

    void descend(const Json& value, const Field& f, const Where& where, Causes& causes) const {
        if (f.holder == Holder::One) {
            if (value.is_object()) check(value, *f.type, where, causes);
        } else if (const auto* list = value.if_array()) {
            for (size_t i = 0; i < list->size(); ++i) {
                if ((*list)[i].is_object()) check((*list)[i], *f.type, where.item(i), causes);
            }
        } else if (const auto* map = value.if_object()) {
            for (const auto& entry : *map) {
                if (entry.value().is_object()) check(entry.value(), *f.type, where.key(entry.key()), causes);
            }
        }
    }

    absl::flat_hash_map<const Type*, std::vector<Rule>> rules_;
    absl::flat_hash_map<const Type*, std::vector<Rule>> immutable_;
    absl::flat_hash_map<const Type*, bool> reaching_;
};

const Rules& rules() {
    static const Rules all;
    return all;
}

void check_immutable_data(const Json& before, const Json& after, Causes& causes) {
    if (!bool_at(before, ".immutable")) return;
    const Where root;
    constexpr std::string_view kWords = "field is immutable when `immutable` is set";
    if (!bool_at(after, ".immutable")) causes.forbidden(root.member("immutable"), kWords);
    for (const auto* member : {"data", "binaryData"}) {
        const std::string path = "." + std::string(member);
        if (members_at(before, path) != members_at(after, path)) causes.forbidden(root.member(member), kWords);
    }
}

// A StatefulSet whose template has the volumes that its pods will have: one for each claim.
Json with_claims(const Json& set) {
    Json out = set;
    if (list_at(set, ".spec.volumeClaimTemplates").empty() || at_path(set, ".spec.template.spec") == nullptr)
        return out;
    Json& volumes = base::object_at(out, {"spec", "template", "spec"})["volumes"];
    if (!volumes.is_array()) volumes = JsonArray();
    for (const auto& claim : list_at(set, ".spec.volumeClaimTemplates")) {
        const auto name = string_at(claim, ".metadata.name");
        const auto& given = volumes.get_array();
        const bool taken = std::any_of(given.begin(), given.end(),
                                       [&](const Json& volume) { return string_at(volume, ".name") == name; });
        if (taken || name.empty()) continue;
        volumes.get_array().push_back(
            JsonObject{{"name", name}, {"persistentVolumeClaim", JsonObject{{"claimName", name}}}});
    }
    return out;
}

void check_stateful_update(const Json& before, const Json& after, Causes& causes) {
    constexpr std::string_view kFree[] = {"replicas",
                                          "ordinals",
                                          "template",
                                          "updateStrategy",
                                          "revisionHistoryLimit",
                                          "persistentVolumeClaimRetentionPolicy",
                                          "minReadySeconds"};
    JsonObject old = members_at(before, ".spec");
    JsonObject now = members_at(after, ".spec");
    for (const auto key : kFree) {
        old.erase(key);
        now.erase(key);
    }
    if (old == now) return;
    const Where root;
    causes.forbidden(root.member("spec"),
                     "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
                     "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
                     "'minReadySeconds' are forbidden");
}

}  // namespace

std::vector<base::Cause> validate(const Json& object, const Kind& kind) {
    Causes causes;
    if (kind.type == nullptr || !object.is_object()) return {};
    if (kind.kind == "StatefulSet" && kind.group == "apps") {
        rules().check(with_claims(object), *kind.type, {}, causes);
    } else {
        rules().check(object, *kind.type, {}, causes);
    }
    return causes.take();
}

std::vector<base::Cause> validate_update(const Json& before, const Json& after, const Kind& kind) {
    Causes causes;
    if (kind.type == nullptr) return {};
    if (const auto* immutable = rules().immutable(kind.type.get())) {
        const Where root;
        for (const auto& rule : *immutable) {
            const Json* old = at_path(before, "." + rule.member);
            const Json* now = at_path(after, "." + rule.member);
            if (old == nullptr || (now != nullptr && *old == *now)) continue;
            causes.invalid(root.member(rule.member), now == nullptr ? Json() : *now, "field is immutable");
        }
    }
    if (kind.kind == "ConfigMap" || kind.kind == "Secret") check_immutable_data(before, after, causes);
    if (kind.kind == "StatefulSet") check_stateful_update(before, after, causes);
    if (kind.kind == "Machine") check_machine_update(before, after, causes);
    return causes.take();
}

}  // namespace berth::model
