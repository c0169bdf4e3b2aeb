#include "model/kinds/effects.h"

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"
#include "model/kinds/kinds_fleet.h"
#include "model/kinds/text.h"

namespace berth::model {
namespace {

constexpr std::string_view kEffects =
#include "effects.tbl.inc"
    ;

Effect parse_effect(std::string_view word) {
    if (word == "acted") return Effect::Acted;
    if (word == "kept") return Effect::Kept;
    if (word == "answered") return Effect::Answered;
    if (word == "idle") return Effect::Idle;
    if (word == "unserved") return Effect::Unserved;
    CHECK(word == "policy");
    return Effect::Policy;
}

bool is_told(Effect effect) {
    return effect == Effect::Idle || effect == Effect::Unserved || effect == Effect::Policy;
}

bool is_given(const Json* value) {
    if (value == nullptr || value->is_null()) return false;
    if (const auto* text = value->if_string()) return !text->empty();
    if (const auto* object = value->if_object()) return !object->empty();
    if (const auto* list = value->if_array()) return !list->empty();
    if (const auto* flag = value->if_bool()) return *flag;
    return !value->is_int64() || value->get_int64() != 0;
}

std::string text_of(const Json& value) {
    return value.is_string() ? std::string(value.get_string()) : base::to_text(value);
}

// A member that nobody acts on, when it is given, has one of these values, or has another one. Or, in a map, a key of a
// domain that is none of these.
struct Unheeded {
    enum class When : uint8_t { Given, Is, IsNot, HasOther, Strange };
    Effect effect = Effect::Idle;
    std::string map = {};  // "labels" or "annotations" of the metadata; empty: a member
    std::string member = {};
    When when = When::Given;
    std::vector<std::string> values = {};
    std::string shown = {};
    size_t reason = 0;  // equal words, equal number
    size_t line = 0;    // in the order of the table

    bool concerns(const Json* value) const {
        if (!is_given(value)) return false;
        if (when == When::Given) return true;
        if (when == When::HasOther) return has_other(*value);
        const bool listed = std::find(values.begin(), values.end(), text_of(*value)) != values.end();
        return listed == (when == When::Is);
    }
    // "KEY" of "a.b/KEY" or "x.a.b/KEY" where the domain is a.b.
    bool is_strange(std::string_view key) const {
        const size_t slash = key.find('/');
        if (slash == std::string_view::npos || !key.substr(0, slash).ends_with(member)) return false;
        const bool whole = slash == member.size() || key[slash - member.size() - 1] == '.';
        return whole && std::find(values.begin(), values.end(), key) == values.end();
    }
    // JSON with a member that is not listed. What is no JSON is refused by whoever reads it.
    bool has_other(const Json& value) const {
        const auto document = base::parse_json(text_of(value));
        if (!document || !document->is_object()) return false;
        return std::any_of(document->get_object().begin(), document->get_object().end(), [&](const auto& named) {
            return std::find(values.begin(), values.end(), named.key()) == values.end();
        });
    }
};

Unheeded parse_unheeded(Effect effect, std::string_view word, size_t reason) {
    Unheeded out{effect};
    out.reason = reason;
    out.shown = word;
    for (const auto& [prefix, map] : {std::pair("label:", "labels"), std::pair("annotation:", "annotations")}) {
        if (!word.starts_with(prefix)) continue;
        word.remove_prefix(std::string_view(prefix).size());
        out.map = map;
        out.shown = word;
    }
    if (const size_t domain = word.find("/*!"); domain != std::string_view::npos) {
        out.when = Unheeded::When::Strange;
        out.member = word.substr(0, domain);
        out.values = text::split<std::vector<std::string>>(word.substr(domain + 3), ',');
        return out;
    }
    if (const size_t names = word.find('~'); names != std::string_view::npos) {
        out.when = Unheeded::When::HasOther;
        out.member = out.shown = word.substr(0, names);
        out.values = text::split<std::vector<std::string>>(word.substr(names + 1), ',');
        return out;
    }
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos) {
        out.member = word;
        return out;
    }
    out.when = word[equals - 1] == '!' ? Unheeded::When::IsNot : Unheeded::When::Is;
    out.member = word.substr(0, equals - (out.when == Unheeded::When::IsNot ? 1 : 0));
    out.values = text::split<std::vector<std::string>>(word.substr(equals + 1), ',');
    if (out.when == Unheeded::When::IsNot) out.shown = out.member;
    return out;
}

// What a member of an object says: what nobody acts on, and where it leads to types of the table.
struct Member {
    std::vector<const Unheeded*> unheeded;
    const Type* below = nullptr;
};

// What the table says of a type.
struct TypeEffects {
    std::vector<MemberEffect> members;
    std::vector<Unheeded> unheeded;
    absl::flat_hash_map<std::string_view, Member, NameHash> by_name;  // each member of an object is looked up once
    std::vector<const Unheeded*> of_metadata;
};

struct Find {
    const Unheeded* row;
    std::string_view shown;
};
using Found = std::vector<Find>;

void note(const Unheeded& row, std::string_view shown, Found& out) {
    const auto same = [&](const Find& find) { return find.row == &row; };
    if (std::none_of(out.begin(), out.end(), same)) out.push_back({&row, shown});
}

void note(const Unheeded& row, const Json* value, Found& out) {
    if (row.concerns(value)) note(row, row.shown, out);
}

// The first one that is strange is told.
void note_metadata(const Unheeded& row, const Json& meta, Found& out) {
    if (row.when != Unheeded::When::Strange) return note(row, base::find(meta, {row.map, row.member}), out);
    constexpr size_t kMostShown = 100;
    const Json* entries = base::find(meta, {row.map});
    if (entries == nullptr || !entries->is_object()) return;
    for (const auto& entry : entries->get_object()) {
        const std::string_view key = entry.key();
        if (row.is_strange(key)) return note(row, key.substr(0, kMostShown), out);
    }
}

class Effects {
public:
    Effects() {
        TypeEffects* type = nullptr;
        text::lines(kEffects, [&](std::string_view line) {
            if (line.starts_with("type ")) {
                const Type* found = types()->find(text::trim(line.substr(5)));
                CHECK(found != nullptr);
                type = &types_[found];
            } else if (line.front() == ' ') {
                add_members(*type, line);
            } else {
                add_kind(line);
            }
        });
        find_ways();
    }

    const KindEffect* of(const Kind& kind) const {
        const auto found = kinds_.find(kind.type.get());
        return found == kinds_.end() ? nullptr : &found->second;
    }
    const TypeEffects* of(const Type& type) const {
        const auto found = types_.find(&type);
        return found == types_.end() ? nullptr : &found->second;
    }
    const std::string& words(size_t reason) const { return reasons_[reason]; }

    void collect(const JsonObject& object, const Type& type, Found& out) const {
        const TypeEffects* known = of(type);
        if (known == nullptr) return;
        for (const auto* row : known->of_metadata) {
            const Json* meta = object.if_contains("metadata");
            if (meta != nullptr) note_metadata(*row, *meta, out);
        }
        for (const auto& [name, value] : object) {
            const auto found = known->by_name.find(name);
            if (found == known->by_name.end()) continue;
            for (const auto* row : found->second.unheeded) note(*row, &value, out);
            if (found->second.below != nullptr) collect_below(value, *found->second.below, out);
        }
    }

private:
    void add_kind(std::string_view line) {
        const auto name = text::word(line);
        const auto version = text::word(line);
        const Kind* kind = kinds_with_fleet().of(version, name);
        CHECK(kind != nullptr);
        KindEffect row{parse_effect(text::word(line))};
        if (row.effect == Effect::Acted) {
            for (const auto actor : text::split(text::cut(line, '|'), ',')) row.actors.emplace_back(text::trim(actor));
        }
        row.words = text::trim(line);
        CHECK(kinds_.emplace(kind->type.get(), std::move(row)).second);
    }

    void collect_below(const Json& value, const Type& type, Found& out) const {
        if (const auto* object = value.if_object()) collect(*object, type, out);
        const auto* list = value.if_array();
        if (list == nullptr) return;
        for (const auto& item : *list) {
            if (item.is_object()) collect(item.get_object(), type, out);
        }
    }

    void add_members(TypeEffects& type, std::string_view line) {
        const Effect effect = parse_effect(text::word(line));
        const auto members = text::split(text::cut(line, '|'), ' ');
        const std::string words(text::trim(line));
        const auto known = std::find(reasons_.begin(), reasons_.end(), words);
        const auto reason = static_cast<size_t>(known - reasons_.begin());
        if (known == reasons_.end()) reasons_.push_back(words);
        for (const auto member : members) {
            type.members.push_back({effect, std::string(member), words});
            if (!is_told(effect)) continue;
            type.unheeded.push_back(parse_unheeded(effect, member, reason));
            type.unheeded.back().line = ++lines_;
        }
    }

    // Types that lead to one of the table join it, with nothing to say of their own.
    void find_ways() {
        for (bool grown = true; grown;) {
            grown = false;
            for (const auto& type : types()->all()) {
                if (!types_.contains(type.get()) && !ways(*type).empty())
                    grown |= types_.try_emplace(type.get()).second;
            }
        }
        for (auto& [type, known] : types_) {
            for (const auto& row : known.unheeded) {
                if (!row.map.empty()) known.of_metadata.push_back(&row);
                if (row.map.empty()) known.by_name[row.member].unheeded.push_back(&row);
            }
            for (const Field* field : ways(*type)) known.by_name[field->name].below = field->type;
        }
    }

    std::vector<const Field*> ways(const Type& type) const {
        std::vector<const Field*> out;
        for (const Field* field : type.json) {
            if (field->form != Form::Struct || field->holder == Holder::Map || !types_.contains(field->type)) continue;
            if (!is_kept(type, field->name)) out.push_back(field);
        }
        return out;
    }

    bool is_kept(const Type& type, std::string_view member) const {
        const TypeEffects* known = of(type);
        return known != nullptr && std::any_of(known->members.begin(), known->members.end(), [&](const auto& row) {
                   return row.effect == Effect::Kept && row.member == member;
               });
    }

    absl::flat_hash_map<const Type*, KindEffect> kinds_;
    absl::flat_hash_map<const Type*, TypeEffects> types_;
    std::vector<std::string> reasons_;
    size_t lines_ = 0;
};

const Effects& effects() {
    static const Effects all;
    return all;
}

std::string qualified(const Kind& kind) {
    return kind.group.empty() ? kind.plural : kind.plural + "." + kind.group;
}

std::string sentence(const Kind& kind, const KindEffect& row) {
    switch (row.effect) {
        case Effect::Policy:
            return fmt::format("{}: stored, not enforced by this server: {}", qualified(kind), row.words);
        case Effect::Unserved:
            return fmt::format("{}: stored only: {}", qualified(kind), row.words);
        default:
            return fmt::format("{}: stored only, no controller of this server acts on it: {}", qualified(kind),
                               row.words);
    }
}

std::vector<Remark> remarks_on_members(const Json& object, const Kind& kind) {
    Found found;
    effects().collect(object.get_object(), *kind.type, found);
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.row->line < b.row->line; });
    std::vector<Remark> out;
    while (!found.empty()) {
        const Unheeded& first = *found.front().row;
        std::vector<std::string_view> names;
        std::erase_if(found, [&](const Find& find) {
            const bool alike = find.row->reason == first.reason && find.row->effect == first.effect;
            if (alike && std::find(names.begin(), names.end(), find.shown) == names.end()) names.push_back(find.shown);
            return alike;
        });
        const auto form =
            first.effect == Effect::Policy ? "stored, not enforced by this server" : "without effect here";
        out.push_back(
            {first.effect, fmt::format("{}: {} ({})", form, fmt::join(names, ", "), effects().words(first.reason))});
    }
    return out;
}

}  // namespace

const KindEffect* effect_of(const Kind& kind) {
    return effects().of(kind);
}

std::vector<Remark> remarks_on(const Json& object, const Kind& kind) {
    const KindEffect* row = effects().of(kind);
    if (row == nullptr || !object.is_object()) return {};
    if (is_told(row->effect)) return {{row->effect, sentence(kind, *row)}};
    if (row->effect != Effect::Acted) return {};
    return remarks_on_members(object, kind);
}

const std::vector<MemberEffect>* members_of(const Type& type) {
    const TypeEffects* known = effects().of(type);
    return known == nullptr || known->members.empty() ? nullptr : &known->members;
}

}  // namespace berth::model
