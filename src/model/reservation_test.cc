#include "model/reservation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/json_view.h"
#include "model/allocated.h"
#include "model/reservation_affinity.h"
#include "model/reservation_rules.h"
#include "model/reservation_status.h"

namespace berth::model {
namespace {

constexpr std::string_view kWhole = R"({"kind":"Reservation","metadata":{"name":"r1","uid":"u1"},"spec":{
  "owners":[{"labelSelector":{"matchLabels":{"app":"web"}}}],
  "template":{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"4"}}}]}}}})";

Json whole() {
    return *base::parse_json(kWhole);
}

Reservation read(const Json& object) {
    const std::string text = base::to_text(object);
    base::JsonParser parser;
    auto out = read_reservation(*parser.parse(text));
    EXPECT_TRUE(out) << (out ? "" : out.error().message);
    return std::move(*out);
}

// Sets the value at a dotted path and gives "field: message" of the refusal.
std::string refused(std::string_view path, std::string_view value) {
    Json object = whole();
    JsonObject* at = &object.get_object();
    std::string_view rest = path;
    for (size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
        Json& next = (*at)[rest.substr(0, dot)];
        if (!next.is_object()) next = JsonObject();
        at = &next.get_object();
        rest = rest.substr(dot + 1);
    }
    if (value.empty()) {
        at->erase(rest);
    } else {
        (*at)[rest] = *base::parse_json(value);
    }
    const std::string text = base::to_text(object);
    base::JsonParser parser;
    const auto read = read_reservation(*parser.parse(text));
    if (read) return "";
    EXPECT_EQ(read.error().reason, Reason::Invalid);
    return read.error().causes.at(0).field + ": " + read.error().causes[0].message;
}

TEST(Reservation, ABrokenOneNamesTheField) {
    EXPECT_EQ(refused("spec.ttl", "\"5m\""), "");
    EXPECT_EQ(refused("spec.template", ""), "spec.template: Required value: is required");
    EXPECT_EQ(refused("spec.template.spec.containers", "[]"),
              "spec.template.spec.containers: Required value: needs at least one container");
    EXPECT_EQ(refused("spec.owners", "[]"), "spec.owners: Required value: needs at least one owner");
    const struct {
        std::string_view path, value, field;
    } cases[] = {
        {"spec.owners", "[{}]", "spec.owners[0]"},
        {"spec.owners", R"([{"object":{}}])", "spec.owners[0].object"},
        {"spec.owners", R"([{"object":{"apiVersion":"v1","kind":"Pod"}}])", "spec.owners[0].object"},
        {"spec.owners", R"([{"controller":{}}])", "spec.owners[0].controller"},
        {"spec.owners", R"([{"labelSelector":{}}])", "spec.owners[0].labelSelector"},
        {"spec.owners", R"([{"labelSelector":{"matchExpressions":[{"key":"a","operator":"Near"}]}}])",
         "spec.owners[0].labelSelector"},
        {"spec.ttl", R"("abc")", "spec.ttl"},
        {"spec.ttl", R"("-5s")", "spec.ttl"},
        {"spec.expires", R"("tomorrow")", "spec.expires"},
        {"spec.allocatePolicy", R"("Strict")", "spec.allocatePolicy"},
        {"spec.allocateOnce", "3", "spec.allocateOnce"},
        {"spec.taints", R"([{"key":"a","effect":"Never"}])", "spec.taints[0].effect"},
        {"spec.template.spec.containers", R"([{"resources":{"requests":{"cpu":"1C"}}}])",
         "spec.template.spec.containers[0].resources.requests.cpu"},
        {"spec.template.spec.containers", R"([{"ports":[{"hostPort":70000}]}])",
         "spec.template.spec.containers[0].ports[0].hostPort"},
        {"metadata.labels", R"({"scheduling.koordinator.sh/reservation-order":"first"})",
         "metadata.labels[scheduling.koordinator.sh/reservation-order]"},
        {"metadata.labels", R"({"koordinator.sh/priority":"high"})", "metadata.labels"},
        {"spec.template.metadata.labels", R"({"koordinator.sh/priority":"7x"})", "spec.template.metadata.labels"},
        {"metadata.annotations", R"({"scheduling.koordinator.sh/reservation-restricted-options":"{"})",
         "metadata.annotations[scheduling.koordinator.sh/reservation-restricted-options]"},
        {"metadata.annotations", R"({"node.koordinator.sh/reservation":"{\"resources\":{\"cpu\":\"-1\"}}"})",
         "metadata.annotations[node.koordinator.sh/reservation]"},
    };
    for (const auto& c : cases) {
        const std::string got = refused(c.path, c.value);
        EXPECT_EQ(got.substr(0, got.find(": ")), c.field) << c.path << " " << c.value << " gave " << got;
    }
}

TEST(Reservation, PortsAndVolumesWithoutRequestsAreFine) {
    EXPECT_EQ(refused("spec.template.spec.containers", R"([{"ports":[{"hostPort":7777}]}])"), "");
}

// Each is what Kubernetes refuses in a pod.
TEST(Reservation, ABrokenTemplateNamesTheField) {
    const struct {
        std::string_view part, value, field;
    } cases[] = {
        {"containers", R"([{"ports":[{"hostPort":80,"protocol":"ICMP"}]}])", "containers[0].ports[0].protocol"},
        {"containers", R"([{"ports":[{"hostPort":80,"hostIP":"300.1.1.1"}]}])", "containers[0].ports[0].hostIP"},
        {"containers", R"([{"resources":{"requests":{"a b":"1"}}}])", "containers[0].resources.requests"},
        {"containers", R"([{"resources":{"requests":{"x.io/gpu":"500m"}}}])",
         "containers[0].resources.requests.x.io/gpu"},
        {"volumes", R"([{"name":"v","persistentVolumeClaim":{}}])", "volumes[0].persistentVolumeClaim.claimName"},
        {"priority", "99999999999", "priority"},
        {"nodeSelector", R"({"a b":"c"})", "nodeSelector"},
        {"nodeSelector", R"({"a":"b c"})", "nodeSelector.a"},
        {"tolerations", R"([{"key":"a","operator":"Near"}])", "tolerations[0].operator"},
        {"tolerations", R"([{"key":"a","operator":"Gt","value":"1"}])", "tolerations[0].operator"},
        {"tolerations", R"([{"value":"b"}])", "tolerations[0].operator"},
        {"tolerations", R"([{"key":"a","operator":"Exists","value":"b"}])", "tolerations[0].value"},
        {"tolerations", R"([{"key":"a","effect":"Never"}])", "tolerations[0].effect"},
        {"topologySpreadConstraints", R"([{"maxSkew":0,"topologyKey":"z","whenUnsatisfiable":"DoNotSchedule"}])",
         "topologySpreadConstraints[0].maxSkew"},
        {"topologySpreadConstraints", R"([{"maxSkew":1,"whenUnsatisfiable":"DoNotSchedule"}])",
         "topologySpreadConstraints[0].topologyKey"},
        {"topologySpreadConstraints", R"([{"maxSkew":1,"topologyKey":"z","whenUnsatisfiable":"Sometimes"}])",
         "topologySpreadConstraints[0].whenUnsatisfiable"},
        {"affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution", R"({"nodeSelectorTerms":[]})",
         "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"},
        {"affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution",
         R"({"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Near"}]}]})",
         "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"},
        {"affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution", R"([{"weight":101,"preference":{}}])",
         "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight"},
        {"affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution", R"([{"labelSelector":{}}])",
         "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey"},
        {"affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution",
         R"([{"weight":1,"podAffinityTerm":{"labelSelector":{}}}])",
         "affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey"},
    };
    for (const auto& c : cases) {
        const std::string got = refused(fmt::format("spec.template.spec.{}", c.part), c.value);
        EXPECT_EQ(got.substr(0, got.find(": ")), fmt::format("spec.template.spec.{}", c.field)) << got;
    }
    EXPECT_EQ(refused("spec.template.spec.tolerations", R"([{"operator":"Exists"},{"key":"a","value":"b"}])"), "");
}

TEST(Reservation, OneThatHoldsRoomKeepsItWhenItBreaks) {
    Json object = whole();
    object.at("spec").get_object()["ttl"] = "abc";
    const std::string text = base::to_text(object);
    base::JsonParser parser;
    EXPECT_FALSE(read_reservation(*parser.parse(text)));
    object.get_object()["status"] = JsonObject{{"phase", "Available"}, {"nodeName", "n1"}};
    const Reservation held = read(object);
    EXPECT_EQ(held.allocatable.get(kCpu), 4000);
    EXPECT_NE(held.fault.find("spec.ttl"), std::string::npos);
}

TEST(Reservation, ItsLabelsLieOverTheTemplates) {
    Json object = whole();
    object.at("metadata").get_object()["labels"] = JsonObject{{"tier", "gold"}, {"koordinator.sh/priority", "7"}};
    base::object_at(object, {"spec", "template", "metadata"})["labels"] = JsonObject{{"tier", "tin"}, {"app", "web"}};
    const Reservation got = read(object);
    EXPECT_EQ(got.spec->labels.get("tier"), "gold");
    EXPECT_EQ(got.spec->labels.get("app"), "web");
    EXPECT_EQ(got.spec->priority, 7);
}

TEST(Reservation, EndsByExpiresAloneWhenItIsGiven) {
    Reservation reservation;
    reservation.meta.created = {1000};
    EXPECT_EQ(end_of(reservation), reservation.meta.created + std::chrono::hours(24));
    reservation.expires = base::Time{1000} + std::chrono::hours(48);
    EXPECT_EQ(end_of(reservation), reservation.expires);
    reservation.expires.reset();
    reservation.ttl = base::Duration::zero();
    EXPECT_EQ(end_of(reservation), std::nullopt);
}

TEST(Wishes, TermsAreOredThenAndedWithSelectorAndName) {
    const Labels annotations{{std::string(kReservationAffinity),
                              R"({"requiredDuringSchedulingIgnoredDuringExecution":{"reservationSelectorTerms":[
        {"matchExpressions":[{"key":"zone","operator":"In","values":["a"]}]},
        {"matchExpressions":[{"key":"zone","operator":"In","values":["b"]}]}]},
        "reservationSelector":{"pool":"x"},"tolerations":[{"key":"t","operator":"Exists"}]})"}};
    const auto wishes = read_wishes(annotations);
    ASSERT_TRUE(wishes);
    EXPECT_TRUE(wishes->affinity->matches("r", Labels{{"zone", "b"}, {"pool", "x"}}));
    EXPECT_FALSE(wishes->affinity->matches("r", Labels{{"zone", "c"}, {"pool", "x"}}));
    EXPECT_FALSE(wishes->affinity->matches("r", Labels{{"zone", "a"}}));
    EXPECT_EQ(wishes->affinity->tolerations.size(), 1u);
}

TEST(Wishes, EmptyMatchesEveryReservationAndNameOnlyOne) {
    const auto any = read_wishes(Labels{{std::string(kReservationAffinity), "{}"}});
    ASSERT_TRUE(any && any->affinity);
    EXPECT_TRUE(any->affinity->matches("r", {}));
    const auto one = read_wishes(Labels{{std::string(kReservationAffinity), R"({"name":"r2"})"}});
    EXPECT_FALSE(one->affinity->matches("r", {}));
    EXPECT_TRUE(one->affinity->matches("r2", {}));
}

TEST(Wishes, BrokenOnesQuoteTheKey) {
    for (const auto key : {kReservationAffinity, kExactMatch}) {
        for (const char* text : {"{", "", "[1]", R"({"name":1,"resourceNames":2})"}) {
            const auto wishes = read_wishes(Labels{{std::string(key), text}});
            ASSERT_FALSE(wishes) << key << " " << text;
            EXPECT_NE(wishes.error().message.find(key), std::string::npos);
        }
    }
    const auto wishes = read_wishes(Labels{{std::string(kReservationAffinity),
                                            R"({"requiredDuringSchedulingIgnoredDuringExecution":
        {"reservationSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Near"}]}]}})"}});
    EXPECT_FALSE(wishes);
}

TEST(Links, ReadsWhatItWrites) {
    const std::vector<Draw> draws{{"b", "ub", {{kMemory, 8LL << 30}}}};
    const Labels annotations{{std::string(kReservationAllocated), allocated_text({"a", "ua"})},
                             {std::string(kReservationDraws), draws_text(draws)}};
    const auto links = read_links(annotations);
    ASSERT_TRUE(links);
    EXPECT_EQ(links->allocated, (Allocated{"a", "ua"}));
    EXPECT_EQ(links->draws, draws);
    EXPECT_FALSE(read_links(Labels{{std::string(kReservationAllocated), R"({"name":"a"})"}}));
    EXPECT_FALSE(read_links(Labels{{std::string(kReservationDraws), R"([{"uid":"u","resources":{"cpu":"-1"}}])"}}));
}

TEST(ReservationStatus, TimesChangeOnlyWhenTheConditionDoes) {
    const auto first = placed({}, "n1", {{kCpu, 4000}, {kPods, 1}}, {10});
    EXPECT_EQ(first.phase, ReservationPhase::Available);
    EXPECT_EQ(first.allocatable, (Resources{{kCpu, 4000}}));
    EXPECT_EQ(available(first, {20}), first);
    const auto last = succeeded(first, {30});
    EXPECT_EQ(find_condition(last, "Ready")->changed, base::Time{30});
    EXPECT_EQ(find_condition(last, "Scheduled")->changed, base::Time{10});
    const Json document = status_document(last);
    EXPECT_EQ(base::find_string(document, {"phase"}), "Succeeded");
    EXPECT_EQ(base::find_string(document, {"allocatable", "cpu"}), "4");
}

}  // namespace
}  // namespace berth::model
