#include "model/kinds/kinds.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "model/kinds/kinds_fleet.h"
#include "model/kinds/path.h"
#include "model/kinds/text.h"

namespace berth::model {
namespace {

constexpr std::string_view kKinds =
#include "kinds.tbl.inc"
    ;
constexpr std::string_view kFleetKinds =
#include "kinds_fleet.tbl.inc"
    ;

using Words = std::vector<std::string>;

void set_group_version(std::string_view text, std::string& group, std::string& version) {
    const size_t slash = text.find('/');
    if (slash != std::string_view::npos) group = text.substr(0, slash);
    version = text.substr(slash == std::string_view::npos ? 0 : slash + 1);
}

Kind parse_title(std::string_view rest) {
    Kind k;
    k.kind = text::word(rest);
    set_group_version(text::word(rest), k.group, k.version);
    k.plural = text::word(rest);
    const Type* type = types()->find(text::word(rest));
    CHECK(type != nullptr);
    k.type = std::shared_ptr<const Type>(types(), type);
    k.list_kind = k.kind + "List";
    for (const char c : k.kind) k.singular += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    k.verbs = {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"};
    return k;
}

Column parse_column(std::string_view rest) {
    Column c;
    c.name = text::trim(text::cut(rest, '|'));
    c.type = text::trim(text::cut(rest, '|'));
    c.source = text::trim(text::cut(rest, '|'));
    c.priority = text::trim(rest) == "wide" ? 1 : 0;
    if (c.name == "Name") c.format = "name";
    return c;
}

SelectableField parse_selectable(std::string_view word) {
    SelectableField f;
    if (word.ends_with(":bool")) {
        f.flag = true;
        word.remove_suffix(5);
    }
    f.name = text::cut(word, '=');
    f.paths = word.empty() ? Words{f.name} : text::split<Words>(word, '|');
    for (auto& path : f.paths) path.insert(0, ".");
    return f;
}

Subresource parse_subresource(std::string_view rest) {
    Subresource s;
    s.name = text::word(rest);
    s.kind = text::word(rest);
    set_group_version(text::word(rest), s.group, s.version);
    s.verbs = text::split<Words>(rest, ' ');
    return s;
}

void add_columns(Kind& k, std::string_view key, std::string_view rest) {
    if (k.columns.empty() && key == "column") k.columns.push_back(parse_column("Name | string | .metadata.name"));
    k.columns.push_back(parse_column(rest));
}

NameForm parse_name_form(std::string_view word) {
    if (word == "short-subdomain") return NameForm::ShortSubdomain;
    if (word == "label") return NameForm::Label;
    if (word == "service-label") return NameForm::ServiceLabel;
    CHECK(word == "path-segment");
    return NameForm::PathSegment;
}

void set_line(Kind& k, std::string_view rest) {
    const auto key = text::word(rest);
    if (key == "short") {
        k.short_names = text::split<Words>(rest, ' ');
    } else if (key == "categories") {
        k.categories = text::split<Words>(rest, ' ');
    } else if (key == "cluster") {
        k.namespaced = false;
    } else if (key == "naming") {
        k.name_form = parse_name_form(text::word(rest));
    } else if (key == "verbs") {
        k.verbs = text::split<Words>(rest, ' ');
    } else if (key == "generation") {
        k.generation = true;
    } else if (key == "status") {
        k.subresources.push_back({"status", k.kind, k.group, k.version, {"get", "patch", "update"}});
    } else if (key == "sub") {
        k.subresources.push_back(parse_subresource(rest));
    } else if (key == "scale") {
        k.scale = {std::string(text::word(rest)), std::string(text::word(rest)), std::string(text::word(rest))};
        k.subresources.push_back({"scale", "Scale", "autoscaling", "v1", {"get", "patch", "update"}});
    } else if (key == "select") {
        for (const auto word : text::split(rest, ' ')) k.selectable.push_back(parse_selectable(word));
    } else if (key == "stored") {
        k.stored_kind = text::word(rest);
        set_group_version(text::word(rest), k.stored_group, k.stored_version);
    } else {
        CHECK(key == "column" || key == "names");
        add_columns(k, key, rest);
    }
}

Kinds parse_kinds(std::string_view text, Kinds all = {}) {
    Kind current;
    const auto flush = [&] {
        if (current.kind.empty()) return;
        if (current.columns.empty()) {
            current.columns = {parse_column("Name | string | .metadata.name"),
                               parse_column("Created At | date | .metadata.creationTimestamp")};
        }
        all.add(std::move(current));
    };
    text::lines(text, [&](std::string_view line) {
        if (line.starts_with("kind ")) {
            flush();
            current = parse_title(line.substr(5));
        } else {
            set_line(current, line);
        }
    });
    flush();
    return all;
}

}  // namespace

const Subresource* Kind::subresource(std::string_view wanted) const {
    const auto at = std::find_if(subresources.begin(), subresources.end(), [&](auto& s) { return s.name == wanted; });
    return at != subresources.end() ? &*at : nullptr;
}

bool Kind::allows(std::string_view verb) const {
    return std::find(verbs.begin(), verbs.end(), verb) != verbs.end();
}

const SelectableField* Kind::selector_field(std::string_view wanted) const {
    static const SelectableField name{"metadata.name", {".metadata.name"}};
    static const SelectableField space{"metadata.namespace", {".metadata.namespace"}};
    if (wanted == name.name) return &name;
    if (wanted == space.name && namespaced) return &space;
    const auto at = std::find_if(selectable.begin(), selectable.end(), [&](auto& s) { return s.name == wanted; });
    return at != selectable.end() ? &*at : nullptr;
}

void Kinds::add(Kind kind) {
    auto shared = std::make_shared<const Kind>(std::move(kind));
    for (auto& k : kinds_) {
        if (k->plural == shared->plural && k->group == shared->group && k->version == shared->version) {
            k = std::move(shared);
            return;
        }
    }
    kinds_.push_back(std::move(shared));
}

void Kinds::remove(std::string_view group, std::string_view version, std::string_view plural) {
    std::erase_if(kinds_, [&](auto& k) { return k->plural == plural && k->group == group && k->version == version; });
}

const Kind* Kinds::find(std::string_view group, std::string_view version, std::string_view plural) const {
    for (const auto& k : kinds_) {
        if (k->plural == plural && k->group == group && k->version == version) return k.get();
    }
    return nullptr;
}

const Kind* Kinds::of(std::string_view api_version, std::string_view kind) const {
    std::string group;
    std::string version;
    set_group_version(api_version, group, version);
    for (const auto& k : kinds_) {
        if (k->kind == kind && k->group == group && k->version == version) return k.get();
    }
    return nullptr;
}

const Type* Kinds::body_type(std::string_view api_version, std::string_view kind) const {
    const Kind* known = of(api_version, kind);
    if (known != nullptr) return known->type.get();
    if (kind == "DeleteOptions") return types()->find("meta.v1.DeleteOptions");
    for (const char* name :
         {"policy/v1 Eviction policy.v1.Eviction", "autoscaling/v1 Scale autoscaling.v1.Scale",
          "authentication.k8s.io/v1 TokenRequest authentication.v1.TokenRequest", "v1 Status meta.v1.Status"}) {
        std::string_view rest = name;
        const bool same = text::word(rest) == api_version && text::word(rest) == kind;
        if (same) return types()->find(text::word(rest));
    }
    return nullptr;
}

const Kinds& kinds() {
    static const Kinds all = parse_kinds(kKinds);
    return all;
}

const Kinds& kinds_with_fleet() {
    static const Kinds all = parse_kinds(kFleetKinds, kinds());
    return all;
}

std::string selected_value(const Json& object, const SelectableField& field) {
    for (const auto& path : field.paths) {
        const Json* found = at_path(object, path);
        if (found == nullptr || found->is_null()) continue;
        std::string text = found->is_string() ? std::string(found->get_string()) : base::to_text(*found);
        if (!text.empty()) return text;
    }
    return field.flag ? "false" : "";
}

}  // namespace berth::model
