// Compares with what kube-scheduler's own plugins answered (tests/oracles/placement).
#include <fstream>

#include "base/json_view.h"
#include "sched/plugins/test_near.h"

namespace berth::sched::plugins {
namespace {

template <class T>
std::shared_ptr<const T> shared(Result<T> read) {
    EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message);
    return std::make_shared<const T>(*std::move(read));
}

void put(Ledger& ledger, JsonView object) {
    const std::string_view kind = object["kind"].get_string();
    if (kind == "Node") return ledger.put(shared(model::read_node(object)));
    if (kind == "Pod") return ledger.put(*shared(model::read_pod(object)));
    if (kind == "Namespace") return ledger.put(*shared(model::read_namespace(object)));
    const auto workload = model::workload_kind(kind);
    ASSERT_TRUE(workload) << kind;
    ledger.put(*shared(model::read_workload(*workload, object)));
}

Reasons reasons_in(JsonView object) {
    Reasons out;
    for (const auto member : object.get_object()) {
        out[std::string(member.key)] = std::string_view(member.value.get_string());
    }
    return out;
}

Scores scores_in(JsonView object) {
    Scores out;
    for (const auto member : object.get_object()) out[std::string(member.key)] = member.value.get_int64();
    return out;
}

// A "!" says that no eviction could help.
Reasons marked(const NearTable& table, const Ask& ask, const Filter& filter) {
    Strikes strikes(table.ledger, 0, static_cast<Row>(table.ledger.rows()));
    filter.strike(ask, table.ledger, strikes);
    Reasons out = table.strikes(ask, filter);
    for (auto& [name, reason] : out) {
        const Refusal* why = strikes.why(table.ledger.row_of(name));
        if (why && why->unresolvable) reason = "!" + reason;
    }
    return out;
}

void compare(const NearTable& table, JsonView answer) {
    const auto pod = shared(model::read_pod(answer["pod"]));
    Ask ask = table.ask(*pod->spec);
    ask.pod = pod.get();
    EXPECT_EQ(marked(table, ask, *table.spread_filter_), reasons_in(answer["spread"]));
    EXPECT_EQ(marked(table, ask, *table.affinity_filter_), reasons_in(answer["affinity"]));
    std::vector<Row> rows;
    for (const auto name : answer["scored"].get_array()) {
        rows.push_back(table.ledger.row_of(std::string_view(name.get_string())));
    }
    EXPECT_EQ(table.scores(ask, *table.spread_scorer_, rows), scores_in(answer["spreadScores"]));
    EXPECT_EQ(table.scores(ask, *table.affinity_scorer_, rows), scores_in(answer["affinityScores"]));
}

TEST(NearOracle, AnswersAsKubeSchedulersPlugins) {
    std::ifstream in("tests/data/placement.jsonl");
    ASSERT_TRUE(in);
    size_t number = 0;
    for (std::string line; std::getline(in, line);) {
        SCOPED_TRACE("line " + std::to_string(++number));
        base::JsonParser parser;
        const auto document = parser.parse(line);
        ASSERT_TRUE(document.ok());
        NearTable table;
        for (const JsonView object : (*document)["objects"].get_array()) put(table.ledger, object);
        for (const JsonView answer : (*document)["asks"].get_array()) compare(table, answer);
        if (testing::Test::HasFailure()) FAIL() << line;
    }
    EXPECT_GE(number, 30u);
}

}  // namespace
}  // namespace berth::sched::plugins
