#include "model/kinds/effects.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "model/kinds/defaults.h"
#include "model/kinds/kinds_fleet.h"

namespace berth::model {
namespace {

bool is_told(Effect effect) {
    return effect == Effect::Idle || effect == Effect::Unserved || effect == Effect::Policy;
}

bool of_metadata(std::string_view member) {
    return member.starts_with("label:") || member.starts_with("annotation:");
}

// "progressDeadlineSeconds!=600" -> "progressDeadlineSeconds"
std::string bare(std::string_view member) {
    return std::string(member.substr(0, member.find_first_of("!=")));
}

const Type* spec_of(const Kind& kind) {
    const Field* spec = kind.type->find("spec");
    return spec != nullptr && spec->form == Form::Struct ? spec->type : nullptr;
}

TEST(Effects, EveryKindSaysWhatBecomesOfIt) {
    for (const auto& kind : kinds_with_fleet().all()) {
        const KindEffect* row = effect_of(*kind);
        ASSERT_NE(row, nullptr) << kind->kind << ": say in effects.tbl what this server does with it";
        EXPECT_EQ(row->effect == Effect::Acted, !row->actors.empty()) << kind->kind;
        EXPECT_TRUE(!is_told(row->effect) || !row->words.empty()) << kind->kind;
        const auto remarks = remarks_on(JsonObject{}, *kind);
        EXPECT_EQ(remarks.size(), is_told(row->effect) ? 1U : 0U) << kind->kind;
        if (row->effect == Effect::Policy) {
            EXPECT_NE(remarks[0].text.find("stored, not enforced by this server"), std::string::npos) << kind->kind;
        }
    }
}

// A member that a new release brings is in no list, and may not be passed over in silence.
TEST(Effects, EveryMemberOfWhatIsActedOnIsAccountedFor) {
    for (const auto& kind : kinds_with_fleet().all()) {
        if (effect_of(*kind)->effect != Effect::Acted) continue;
        const Type* spec = spec_of(*kind);
        const bool whole = members_of(*kind->type) != nullptr;
        EXPECT_TRUE(whole || (spec != nullptr && members_of(*spec) != nullptr)) << kind->kind << " has no list";
    }
    for (const auto& type : types()->all()) {
        const auto* members = members_of(*type);
        if (members == nullptr) continue;
        std::set<std::string> listed, written;
        for (const auto& row : *members) {
            EXPECT_TRUE(written.insert(row.member).second) << type->name << " " << row.member << " is there twice";
            if (of_metadata(row.member)) continue;
            listed.insert(bare(row.member));
            // A member that stands for its inlined parts.
            const bool inlined = std::any_of(type->fields.begin(), type->fields.end(),
                                             [&](const Field& f) { return f.inlined && f.name == bare(row.member); });
            EXPECT_TRUE(inlined || type->find(bare(row.member)) != nullptr) << type->name << " " << row.member;
        }
        for (const auto& field : type->fields) {
            EXPECT_TRUE(listed.contains(field.name)) << type->name << " " << field.name << ": who acts on it?";
        }
    }
}

Json something(const Field& field) {
    if (field.holder == Holder::List) return JsonArray{"x"};
    if (field.holder == Holder::Map || field.form == Form::Struct) return JsonObject{{"x", "y"}};
    if (field.form == Form::Bool) return true;
    if (field.form == Form::Int32 || field.form == Form::Int64) return 7;
    return "x";
}

// "label:KEY=VALUE", "label:KEY!=VALUE", "annotation:KEY~NAME,NAME"
std::string key_of(const std::string& member) {
    const size_t from = member.find(':') + 1;
    if (const size_t any = member.find("/*!"); any != std::string::npos)
        return "x." + member.substr(from, any - from) + "/strange";
    return member.substr(from, member.find_first_of("!=~", from) - from);
}

// An object with this member and nothing else.
Json with_member(const Type& type, const std::string& member) {
    const size_t equals = member.find('=');
    const std::string value = equals == std::string::npos ? "" : member.substr(equals + 1);
    const std::string shown = member.find('~') == std::string::npos ? value : R"({"none-of-them":1})";
    if (of_metadata(member)) {
        const std::string key = key_of(member);
        const auto* map = member.starts_with("label:") ? "labels" : "annotations";
        return JsonObject{{"metadata", JsonObject{{map, JsonObject{{key, shown.empty() ? "x" : shown}}}}}};
    }
    const bool other = member.find('!') != std::string::npos;
    const Field& field = *type.find(bare(member));
    return JsonObject{{field.name, value.empty() || other ? something(field) : Json(value)}};
}

// Every way from a type to members that nobody acts on, as a document that has just that member.
void documents(const Type& type, int depth, std::vector<std::pair<std::string, Json>>& out) {
    const auto* members = members_of(type);
    std::set<std::string> kept;
    if (members != nullptr) {
        for (const auto& row : *members) {
            if (row.effect == Effect::Kept) kept.insert(row.member);
            if (is_told(row.effect)) out.emplace_back(row.member, with_member(type, row.member));
        }
    }
    if (depth == 0) return;
    for (const Field* field : type.json) {
        if (field->form != Form::Struct || field->holder == Holder::Map || kept.contains(field->name)) continue;
        std::vector<std::pair<std::string, Json>> below;
        documents(*field->type, depth - 1, below);
        for (auto& [member, document] : below) {
            out.emplace_back(
                member, JsonObject{{field->name, field->holder == Holder::List ? Json(JsonArray{std::move(document)})
                                                                               : std::move(document)}});
        }
    }
}

TEST(Effects, EachMemberThatNobodyActsOnIsTold) {
    std::set<std::string> told;
    for (const auto& kind : kinds_with_fleet().all()) {
        if (effect_of(*kind)->effect != Effect::Acted) continue;
        std::vector<std::pair<std::string, Json>> cases;
        documents(*kind->type, 5, cases);
        for (const auto& [member, document] : cases) {
            const auto remarks = remarks_on(document, *kind);
            ASSERT_EQ(remarks.size(), 1U) << kind->kind << " " << base::to_text(document);
            const std::string name = of_metadata(member) ? key_of(member) : bare(member);
            EXPECT_NE(remarks[0].text.find(name), std::string::npos) << remarks[0].text;
            EXPECT_LT(remarks[0].text.size(), 256U) << remarks[0].text;
            told.insert(kind->kind + " " + member);
        }
    }
    for (const auto* wanted :
         {"Pod command", "Deployment livenessProbe", "Job securityContext", "Service type=LoadBalancer",
          "Namespace label:pod-security.kubernetes.io/enforce", "Node effect=NoExecute"}) {
        EXPECT_TRUE(told.contains(wanted)) << wanted;
    }
}

TEST(Effects, ManyMembersAreOneSentence) {
    const Json pod = base::parse_json(R"({"spec":{"hostPID":true,"containers":[
        {"name":"a","image":"i","command":["x"],"livenessProbe":{"exec":{"command":["x"]}}},
        {"name":"b","image":"i","command":["y"],"env":[{"name":"A","value":"B"}]}]}})")
                         .value();
    const auto remarks = remarks_on(pod, *kinds().of("v1", "Pod"));
    ASSERT_EQ(remarks.size(), 1U);
    EXPECT_EQ(remarks[0].text,
              "without effect here: hostPID, command, env, livenessProbe (nodes are simulated, nothing runs)");
}

TEST(Effects, AMisspeltMemberOfAnAnnotationIsTold) {
    const auto said = [](std::string_view note) {
        JsonObject pod{
            {"metadata", JsonObject{{"annotations", JsonObject{{"scheduling.koordinator.sh/reservation-affinity",
                                                                std::string(note)}}}}}};
        const auto remarks = remarks_on(pod, *kinds().of("v1", "Pod"));
        return remarks.empty() ? std::string() : remarks[0].text;
    };
    EXPECT_EQ(said(R"({"reservationSelector":{"a":"b"},"name":"r"})"), "");
    EXPECT_EQ(said(R"({"reservationSelektor":{"a":"b"}})"),
              "without effect here: scheduling.koordinator.sh/reservation-affinity (it has a member that is none of "
              "its own)");
    EXPECT_EQ(said("no json"), "") << "that is refused";
}

TEST(Effects, AStrangeKeyOfAKnownDomainIsTold) {
    const auto said = [](const std::string& key) {
        const JsonObject notes{{key, "x"}};
        const auto remarks =
            remarks_on(JsonObject{{"metadata", JsonObject{{"annotations", notes}}}}, *kinds().of("v1", "Pod"));
        return remarks.empty() ? std::string() : remarks[0].text;
    };
    EXPECT_EQ(said("scheduling.koordinator.sh/resource-specs"),
              "without effect here: scheduling.koordinator.sh/resource-specs (nobody here knows it)");
    EXPECT_NE(said("koordinator.sh/anything"), "");
    EXPECT_EQ(said("scheduling.koordinator.sh/resource-spec"), "");
    EXPECT_EQ(said("mykoordinator.sh/anything"), "");
    EXPECT_EQ(said("example.com/resource-specs"), "");
    EXPECT_LT(said("koordinator.sh/" + std::string(300, 'a')).size(), 256U);
}

TEST(Effects, OfWhatWorksNothingIsSaid) {
    for (const auto* text :
         {R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","labels":{"run":"web"}},"spec":{"containers":[
              {"name":"web","image":"nginx","resources":{"requests":{"cpu":"1"}},"ports":[{"containerPort":80}]}]}})",
          R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":3,
              "selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
              "spec":{"containers":[{"name":"web","image":"nginx"}]}}}})",
          R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"sum"},"spec":{"completions":3,
              "template":{"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"b"}]}}}})",
          R"({"apiVersion":"storage.k8s.io/v1","kind":"StorageClass","metadata":{"name":"fast"},
              "provisioner":"berth.dev/simulated"})",
          R"({"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data"},"spec":{
              "accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}})",
          R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"b":"c"}})",
          R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}})"}) {
        Json object = base::parse_json(text).value();
        const Kind& kind = *kinds().of(base::find_string(object, {"apiVersion"}), base::find_string(object, {"kind"}));
        apply_defaults(object, kind);
        const auto remarks = remarks_on(object, kind);
        EXPECT_TRUE(remarks.empty()) << text << remarks[0].text;
    }
}

// --- the document ---

std::string actors_text(const KindEffect& row) {
    std::string out;
    for (const auto& actor : row.actors) out += fmt::format("{}`{}`", out.empty() ? "" : ", ", actor);
    return out;
}

std::string what_becomes(const KindEffect& row) {
    const std::string words = row.words.empty() ? "" : ": " + row.words;
    switch (row.effect) {
        case Effect::Acted:
            return "acted on by " + actors_text(row) + words;
        case Effect::Kept:
            return "kept" + words;
        case Effect::Answered:
            return "answered" + words;
        case Effect::Idle:
        case Effect::Unserved:
            return "**stored only**" + words;
        case Effect::Policy:
            return "**policy, not enforced**" + words;
    }
    return "";
}

std::string table_of_kinds() {
    std::string out = "| kind | what becomes of it |\n|---|---|\n";
    for (const auto& kind : kinds_with_fleet().all()) {
        out += fmt::format("| {} ({}) | {} |\n", kind->kind, kind->api_version(), what_becomes(*effect_of(*kind)));
    }
    return out;
}

std::string table_of_members() {
    std::string out = "| of | without effect | because |\n|---|---|---|\n";
    for (const auto& type : types()->all()) {
        const auto* members = members_of(*type);
        if (members == nullptr) continue;
        std::map<std::string, std::string> by_reason;
        for (const auto& row : *members) {
            if (!is_told(row.effect)) continue;
            auto& names = by_reason[row.words];
            names += fmt::format("{}`{}`", names.empty() ? "" : ", ", row.member);
        }
        for (const auto& [words, names] : by_reason) {
            out += fmt::format("| {} | {} | {} |\n", type->name, names, words);
        }
    }
    return out;
}

constexpr const char* kDocument = "docs/reference/embedded.md";

// The document with another text between "<!-- NAME -->" and the next mark.
std::string with_part(std::string document, const std::string& name, const std::string& part) {
    const std::string mark = "<!-- " + name + " -->\n";
    const size_t from = document.find(mark);
    EXPECT_NE(from, std::string::npos) << kDocument << " has no mark " << mark;
    if (from == std::string::npos) return document;
    const size_t to = document.find("<!--", from + mark.size());
    return document.replace(from + mark.size(), to - from - mark.size(), part);
}

// BERTH_REWRITE=1 puts the tables into the document.
TEST(Effects, TheDocumentSaysWhatTheTableSays) {
    std::stringstream text;
    text << std::ifstream(kDocument).rdbuf();
    const std::string wanted =
        with_part(with_part(text.str(), "kinds", table_of_kinds()), "members", table_of_members());
    if (std::getenv("BERTH_REWRITE") != nullptr) std::ofstream(kDocument) << wanted;
    EXPECT_EQ(text.str(), wanted) << "BERTH_REWRITE=1 test_model --gtest_filter='Effects.TheDocument*' mends it";
}

}  // namespace
}  // namespace berth::model
