#include "model/kinds/patch.h"

#include <gtest/gtest.h>

#include <boost/json/memory_resource.hpp>
#include <fstream>

#include "base/test_cost.h"
#include "model/kinds/kinds.h"
#include "model/kinds/test_objects.h"

namespace berth::model {
namespace {

struct PatchCase {
    std::string_view document, patch, expected;  // expected "": refused
};

TEST(JsonPatch, Operations) {
    const PatchCase cases[] = {
        {R"({"a":1})", R"([{"op":"add","path":"/b","value":[1]}])", R"({"a":1,"b":[1]})"},
        {R"({"a":[1,2]})", R"([{"op":"add","path":"/a/1","value":9}])", R"({"a":[1,9,2]})"},
        {R"({"a":[1,2]})", R"([{"op":"add","path":"/a/-","value":9}])", R"({"a":[1,2,9]})"},
        {R"({"a":[1,2]})", R"([{"op":"remove","path":"/a/0"}])", R"({"a":[2]})"},
        {R"({"a":[1,2]})", R"([{"op":"remove","path":"/a/-1"}])", R"({"a":[1]})"},
        {R"({"a/b":{"~":1}})", R"([{"op":"replace","path":"/a~1b/~0","value":2}])", R"({"a/b":{"~":2}})"},
        {R"({"a":1})", R"([{"op":"move","from":"/a","path":"/b"}])", R"({"b":1})"},
        {R"({"a":{"x":1}})", R"([{"op":"copy","from":"/a","path":"/b"}])", R"({"a":{"x":1},"b":{"x":1}})"},
        {R"({"a":1})", R"([{"op":"test","path":"/a","value":1}])", R"({"a":1})"},
        {R"({"a":1})", R"([{"op":"test","path":"/b","value":null}])", R"({"a":1})"},
        {R"({"a":1})", R"([{"op":"test","path":"/a","value":2}])", ""},
        {R"({"a":1})", R"([{"op":"remove","path":"/b"}])", ""},
        {R"({"a":1})", R"([{"op":"replace","path":"/b","value":1}])", ""},
        {R"({"a":1})", R"([{"op":"add","path":"/b/c","value":1}])", ""},
        {R"({"a":[1]})", R"([{"op":"add","path":"/a/5","value":1}])", ""},
        {R"({"a":1})", R"([{"op":"jump","path":"/a"}])", ""},
        {R"({"a":1})", R"([{"op":"add","path":"a","value":1}])", ""},
        {R"({"a":1})", R"({"op":"add"})", ""},
    };
    for (const auto& c : cases) {
        Json document = parsed(c.document);
        const Status done = apply_json_patch(document, parsed(c.patch));
        EXPECT_EQ(done.ok(), !c.expected.empty()) << c.patch;
        if (done.ok()) {
            EXPECT_EQ(document, parsed(c.expected)) << c.patch;
        }
    }
}

TEST(JsonPatch, Limits) {
    JsonArray many(kMaxPatchOperations + 1, Json{{"op", "add"}, {"path", "/a"}, {"value", 1}});
    Json document = JsonObject();
    EXPECT_EQ(apply_json_patch(document, many).error().reason, Reason::RequestEntityTooLarge);
    Json big{{"a", std::string(1 << 20, 'x')}};
    const Json copy{{"op", "copy"}, {"from", "/a"}, {"path", "/b"}};
    EXPECT_EQ(apply_json_patch(big, JsonArray(4, copy)).error().reason, Reason::RequestEntityTooLarge);
}

// Counts what documents ask for.
class CountedMemory final : public boost::json::memory_resource {
public:
    size_t asked = 0;

private:
    void* do_allocate(size_t size, size_t) override {
        asked += size;
        return ::operator new(size);
    }
    void do_deallocate(void* from, size_t, size_t) override { ::operator delete(from); }
    bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

Json move_of(std::string_view from, std::string_view to) {
    return {{"op", "move"}, {"from", from}, {"path", to}};
}

TEST(JsonPatch, MovesTakeNoCopies) {
    CountedMemory memory;
    Json document(parsed(R"({"data":{"a":[]}})"), &memory);
    auto& list = document.at("data").at("a").get_array();
    for (int i = 0; i < 10'000; ++i) list.push_back(JsonObject{{"name", std::to_string(i)}});
    const size_t size = memory.asked;
    JsonArray moves;
    for (int i = 0; i < 500; ++i) {
        moves.push_back(move_of("/data/a", "/data/b"));
        moves.push_back(move_of("/data/b", "/data/a"));
    }
    ASSERT_TRUE(apply_json_patch(document, moves).ok());
    EXPECT_EQ(document.at("data").at("a").get_array().size(), 10'000U);
    EXPECT_LT(memory.asked, 2 * size);
}

TEST(JsonPatch, HasALimitOfWhatItPassesBy) {
    Json wide{{"a", JsonArray(100'000, 1)}};
    EXPECT_EQ(apply_json_patch(wide, JsonArray(1000, move_of("/a/0", "/a/-"))).error().reason,
              Reason::RequestEntityTooLarge);
    Json short_list{{"a", JsonArray(400, 1)}};
    EXPECT_TRUE(apply_json_patch(short_list, JsonArray(kMaxPatchOperations, move_of("/a/0", "/a/-"))).ok());
    Json deeper{{"a", JsonArray(100'000, 1)}, {"b", JsonObject()}};
    JsonArray down_and_up;
    for (int i = 0; i < 50; ++i) {
        down_and_up.push_back(move_of("/a", "/b/a"));
        down_and_up.push_back(move_of("/b/a", "/a"));
    }
    EXPECT_EQ(apply_json_patch(deeper, down_and_up).error().reason, Reason::RequestEntityTooLarge);
}

// What is stored deeper than a document may be could never be read again, and each level costs stack.
TEST(JsonPatch, NestsNoDeeperThanADocumentMay) {
    std::string below;
    JsonArray copies;
    for (size_t depth = 1; depth < 600; depth *= 2) {
        below = "/a";
        for (size_t i = 0; i < depth; ++i) below += "/a";
        copies.push_back(Json{{"op", "copy"}, {"from", "/a"}, {"path", below}});
    }
    Json document = parsed(R"({"a":{}})");
    EXPECT_EQ(apply_json_patch(document, copies).error().reason, Reason::Invalid);
    JsonArray moves;
    Json pieces = JsonObject();
    const std::string bottom = "/k/k/k/k/k/k/k/k/k/k/k/k/k/k/k/k/k/k/k";
    Json piece = JsonObject();
    for (int i = 0; i < 20; ++i) piece = Json{{"k", piece}};
    for (int i = 0; i < 20; ++i) {
        pieces.get_object()[std::to_string(i)] = piece;
        if (i > 0) moves.push_back(move_of("/" + std::to_string(i - 1), "/" + std::to_string(i) + bottom + "/k"));
    }
    EXPECT_EQ(apply_json_patch(pieces, moves).error().reason, Reason::Invalid);
}

TEST(MergePatch, FollowsTheStandard) {
    const PatchCase cases[] = {
        {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
        {R"({"a":"b"})", R"({"a":null})", R"({})"},
        {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
        {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
        {R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
        {R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
        {R"({})", R"([1])", ""},
    };
    for (const auto& c : cases) {
        Json document = parsed(c.document);
        const Status done = apply_merge_patch(document, parsed(c.patch));
        EXPECT_EQ(done.ok(), !c.expected.empty()) << c.patch;
        if (done.ok()) {
            EXPECT_EQ(document, parsed(c.expected)) << c.patch;
        }
    }
}

TEST(StrategicPatch, MergesByKeyAndObeysDirectives) {
    const PatchCase cases[] = {
        {R"({"spec":{"containers":[{"name":"a","image":"x"},{"name":"b","image":"y"}]}})",
         R"({"spec":{"containers":[{"name":"b","image":"z"},{"name":"c","image":"w"}]}})",
         R"({"spec":{"containers":[{"name":"a","image":"x"},{"name":"b","image":"z"},{"name":"c","image":"w"}]}})"},
        {R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
         R"({"spec":{"containers":[{"$patch":"delete","name":"a"}]}})", R"({"spec":{"containers":[{"name":"b"}]}})"},
        {R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
         R"({"spec":{"containers":[{"name":"c"},{"$patch":"replace"}]}})", R"({"spec":{"containers":[{"name":"c"}]}})"},
        {R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
         R"({"spec":{"$setElementOrder/containers":[{"name":"b"},{"name":"a"}]}})",
         R"({"spec":{"containers":[{"name":"b"},{"name":"a"}]}})"},
        {R"({"metadata":{"finalizers":["a","b","c"]}})",
         R"({"metadata":{"$deleteFromPrimitiveList/finalizers":["b"],"finalizers":["d"]}})",
         R"({"metadata":{"finalizers":["d","a","c"]}})"},
        {R"({"spec":{"tolerations":[{"key":"a"}]}})", R"({"spec":{"tolerations":[{"key":"b"}]}})",
         R"({"spec":{"tolerations":[{"key":"b"}]}})"},
        {R"({"spec":{"nodeSelector":{"a":"1"}}})", R"({"spec":{"nodeSelector":{"$patch":"replace","b":"2"}}})",
         R"({"spec":{"nodeSelector":{"b":"2"}}})"},
        {R"({"metadata":{"labels":{"a":"1"}}})", R"({"metadata":{"labels":{"a":null,"b":"2"}}})",
         R"({"metadata":{"labels":{"b":"2"}}})"},
        {R"({"spec":{"volumes":[{"name":"v","emptyDir":{}}]}})",
         R"({"spec":{"volumes":[{"$retainKeys":["name","hostPath"],"name":"v","hostPath":{"path":"/x"}}]}})",
         R"({"spec":{"volumes":[{"name":"v","hostPath":{"path":"/x"}}]}})"},
        {R"({"spec":{"containers":[{"name":"a"}]}})", R"({"spec":{"containers":[{"image":"x"}]}})", ""},
        {R"({"spec":{"containers":[{"name":"a"}]}})", R"({"spec":{"$patch":"explode"}})", ""},
    };
    for (const auto& c : cases) {
        Json document = parsed(c.document);
        const Status done = apply_strategic_patch(document, parsed(c.patch), *kinds().of("v1", "Pod")->type);
        EXPECT_EQ(done.ok(), !c.expected.empty()) << c.patch << (done.ok() ? "" : done.error().message);
        if (done.ok()) {
            EXPECT_EQ(document, parsed(c.expected)) << base::to_text(document);
        }
    }
}

// A pod and a patch that use every way of merging a list on n items.
struct Lists {
    Json document, patch;
};

Lists lists_of(int n) {
    JsonArray containers, finalizers, changed, order, added, removed, orders, kept, spoiled;
    for (int i = 0; i < n; ++i) {
        const std::string name = "n" + std::to_string(i);
        const std::string other = "m" + std::to_string(i);
        containers.push_back(JsonObject{{"name", name}});
        finalizers.push_back(Json(name));
        changed.push_back(i % 3 == 0 ? Json{{"$patch", "delete"}, {"name", name}} : Json{{"name", other}});
        if (i % 3 != 0) order.push_back(JsonObject{{"name", other}});
        added.push_back(Json(other));
        removed.push_back(Json(name));
        kept.push_back(Json(name));
        spoiled.push_back(JsonObject{{"$patch", "x"}});
    }
    std::reverse(removed.begin(), removed.end());
    Json document{{"metadata", {{"finalizers", finalizers}}}, {"spec", {{"containers", containers}}}};
    Json patch{
        {"metadata", {{"finalizers", added}, {"$deleteFromPrimitiveList/finalizers", removed}}},
        {"spec", {{"containers", changed}, {"$setElementOrder/containers", order}, {"tolerations", spoiled}}},
        {"status", {{"$retainKeys", kept}}},
    };
    JsonObject status;
    for (const auto& name : kept) status[name.get_string()] = 1;
    document.get_object()["status"] = std::move(status);
    return {std::move(document), std::move(patch)};
}

// Eight times the items may cost some more than eight times the work; a quadratic way costs 64 times as much.
TEST(StrategicPatch, CostGrowsAsTheListsDo) {
    const auto cost = [](int n) {
        const Lists lists = lists_of(n);
        return base::least_cost([&] {
            Json document = lists.document;
            ASSERT_TRUE(apply_strategic_patch(document, lists.patch, *kinds().of("v1", "Pod")->type).ok());
        });
    };
    const auto few = cost(1000);
    EXPECT_LT(cost(8000) / few, 24);
}

// Each line: what k8s.io/apimachinery's strategicpatch makes of a random object and patch (tools/kinds, oracle patch).
TEST(StrategicPatch, AgreesWithKubernetes) {
    std::ifstream in("src/model/kinds/testdata/strategic.jsonl");
    ASSERT_TRUE(in);
    size_t count = 0;
    for (std::string line; std::getline(in, line); ++count) {
        const Json c = parsed(line);
        Json document = c.at("document");
        const Kind* kind =
            kinds().of(base::find_string(document, {"apiVersion"}), base::find_string(document, {"kind"}));
        ASSERT_NE(kind, nullptr) << line;
        const Status done = apply_strategic_patch(document, c.at("patch"), *kind->type);
        const Json* expected = c.get_object().if_contains("expected");
        EXPECT_EQ(done.ok(), expected != nullptr) << line << (done.ok() ? "" : done.error().message);
        if (done.ok() && expected != nullptr) {
            EXPECT_EQ(drop_nulls(document), drop_nulls(*expected)) << line;
        }
    }
    EXPECT_GE(count, 200U);
}

}  // namespace
}  // namespace berth::model
