// Runs every story of tests/scenarios/*.yaml against a cluster in memory: the scheduler as operators see it, without a
// server.
//
//   scenario, because: what and why
//   given:  {nodes: TABLE, pods: TABLE, reservations: TABLE, consumers: TABLE, objects: YAML}; with consumers pods
//   start
//           only where their namespaces deserve it
//   config: a KubeSchedulerConfiguration, in place of the default profile
//   spread: false, for exact dominant shares
//   now:    RFC 3339 (default 2026-01-01T00:00:00Z)
//   steps:  a list of  apply: TABLE | objects: YAML | delete: TABLE | advance: DURATION | expect: TABLE
// Tables: story_table.h and story_objects.h. expect knows  pod: node reservation why victims score:NODE;
// reservation: phase node allocatable allocated owners;  node: cpu memory pods (what is used);  consumer: used
// deserved. Of pods and reservations cpus and numa, too.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "base/json_view.h"
#include "base/yaml.h"
#include "cli/dump.h"
#include "model/times.h"
#include "run/world.h"
#include "sched/config.h"
#include "sched/shares.h"
#include "story_objects.h"
#include "story_table.h"

namespace berth::scenarios {
namespace {

class Story {
public:
    explicit Story(const Json& document) : now_(start_of(document)), world_(now_, options_of(document)) {
        if (const Json* given = base::find(document, {"given"})) {
            for (const auto& [name, text] : given->as_object()) {
                if (name == "objects") {
                    apply_objects(std::string(text.as_string()));
                } else {
                    apply_table(parse_table(as_kind(std::string(name), std::string(text.as_string()))));
                }
            }
        }
        settle();
    }

    void step(const JsonObject& step) {
        for (const auto& [verb, value] : step) {
            const std::string text(value.as_string());
            if (verb == "apply") {
                apply_table(parse_table(text));
                settle();
            } else if (verb == "objects") {
                apply_objects(text);
                settle();
            } else if (verb == "delete") {
                remove(parse_table(text));
                settle();
            } else if (verb == "advance") {
                now_ = now_ + model::parse_duration(text).value();
                world_.cluster().advance_to(now_);
                settle();
            } else if (verb == "expect") {
                expect(parse_table(text));
            } else {
                ADD_FAILURE() << "unknown step " << std::string(verb);
            }
        }
    }

private:
    static base::Time start_of(const Json& document) {
        const auto text = base::find_string(document, {"now"});
        return model::parse_time(text.empty() ? "2026-01-01T00:00:00Z" : text).value();
    }
    // given's tables may title their first column "name".
    static std::string as_kind(const std::string& plural, const std::string& text) {
        const std::string kind = plural.substr(0, plural.size() - 1);
        const auto at = text.find("name");
        return at == text.find_first_not_of(" \n") ? text.substr(0, at) + kind + text.substr(at + 4) : text;
    }

    static run::ClusterOptions options_of(const Json& document) {
        run::ClusterOptions options;
        if (base::find(document, {"given", "consumers"}) != nullptr) {
            options.shares.emplace();
            const Json* spread = base::find(document, {"spread"});
            options.shares->spread = spread == nullptr || spread->as_bool();
        }
        const std::string text(base::find_string(document, {"config"}));
        if (text.empty()) return options;
        base::JsonParser parser;
        const std::string json = base::to_text(base::parse_yaml(text).value().at(0));
        options.profiles = sched::read_configuration(*parser.parse(json)).value().profiles;
        return options;
    }
    void put(const Json& object) {
        const auto known = world_.put(object);
        EXPECT_TRUE(known) << (known ? "" : known.error().message);
        if (known) {
            EXPECT_TRUE(*known) << "unknown kind in " << base::to_text(object);
        }
    }
    void apply_table(const StoryTable& table) {
        for (const auto& row : table.rows) {
            if (!row.contains("count")) {
                put(object_of(table.kind, row));
                continue;
            }
            for (int i = 1; i <= std::stoi(cell(row, "count")); ++i) {
                StoryRow one = row;
                one[table.kind] += "-" + std::to_string(i);
                put(object_of(table.kind, one));
            }
        }
    }
    void apply_objects(const std::string& text) {
        const auto objects = cli::read_objects(text);
        ASSERT_TRUE(objects) << objects.error().message;
        for (const auto& object : *objects) put(object);
    }
    void remove(const StoryTable& table) {
        for (const auto& row : table.rows) {
            const auto ns = cell(row, "namespace");
            if (table.kind == "pod") world_.remove("Pod", ns.empty() ? "default" : ns, cell(row, "pod"));
            if (table.kind == "reservation") world_.remove("Reservation", "", cell(row, "reservation"));
            if (table.kind == "node") world_.remove("Node", "", cell(row, "node"));
            if (table.kind == "consumer") world_.remove("Consumer", "", cell(row, "consumer"));
            if (table.kind == "topology") world_.remove("NodeResourceTopology", "", cell(row, "topology"));
            if (table.kind == "device") world_.remove("Device", "", cell(row, "device"));
        }
    }
    void settle() {
        for (auto& outcome : world_.settle()) {
            const auto key = outcome.is_reservation ? "/" + outcome.name : outcome.ns + "/" + outcome.name;
            last_[key] = std::move(outcome);
        }
    }

    void expect(const StoryTable& table) {
        for (const auto& row : table.rows) {
            SCOPED_TRACE(table.kind + " " + cell(row, table.kind));
            if (table.kind == "pod") expect_pod(row);
            if (table.kind == "reservation") expect_reservation(row);
            if (table.kind == "node") expect_node(row);
            if (table.kind == "consumer") expect_consumer(row);
        }
    }
    void expect_pod(const StoryRow& row) {
        const auto ns = cell(row, "namespace").empty() ? "default" : cell(row, "namespace");
        const auto* pod = world_.find_pod(ns, cell(row, "pod"));
        const auto& outcome = last_[ns + "/" + cell(row, "pod")];
        if (row.contains("node")) {
            EXPECT_EQ(pod ? (pod->row == ledger::kNoRow ? "" : world_.ledger().name(pod->row)) : "", cell(row, "node"))
                << outcome.message << outcome.error;
        }
        if (row.contains("reservation")) {
            EXPECT_EQ(pod ? outcome.reservation : "", cell(row, "reservation"));
        }
        if (row.contains("why")) expect_why(outcome, cell(row, "why"));
        if (row.contains("victims")) {
            EXPECT_EQ(joined(outcome.victims), cell(row, "victims"));
        }
        expect_which(row, pod && pod->which ? *pod->which : model::Which());
        for (const auto& [column, wanted] : row) {
            if (!column.starts_with("score:")) continue;
            const auto score = outcome.scores.find(column.substr(6));
            EXPECT_EQ(score == outcome.scores.end() ? "" : std::to_string(score->second), cell(row, column)) << column;
        }
    }
    // "gpu:0 gpu:1=50 rdma:0/vf0.1": of gpu 1 half, of rdma 0 a virtual function.
    static std::string devices_text(const model::DeviceRecord& devices) {
        std::string text;
        for (const auto& share : devices) {
            const auto part = share.type == model::DeviceType::Gpu ? share.amounts.ratio : share.amounts.core;
            text += (text.empty() ? "" : " ") + std::string(model::name_of(share.type)) + ":";
            text += std::to_string(share.minor) + (part == model::kWholeDevice ? "" : "=" + std::to_string(part));
            for (const auto& function : share.functions) text += "/" + function.bus;
        }
        return text;
    }
    // Which cores, and how much of which NUMA node: "0:cpu=4 1:cpu=2"; which devices.
    static void expect_which(const StoryRow& row, const model::Which& which) {
        const model::CoreRecord& cores = which.cores;
        if (row.contains("devices")) {
            EXPECT_EQ(devices_text(which.devices), cell(row, "devices"));
        }
        if (row.contains("cpus")) {
            EXPECT_EQ(model::cpu_list_text(cores.cpus), cell(row, "cpus"));
        }
        if (!row.contains("numa")) return;
        std::string text;
        for (const auto& [node, amount] : cores.numa) {
            text += (text.empty() ? "" : " ") + std::to_string(node) + ":" + amounts(amount);
        }
        EXPECT_EQ(text, cell(row, "numa"));
    }
    static std::string joined(const std::vector<std::string>& texts) {
        std::string all;
        for (const auto& text : texts) all += (all.empty() ? "" : ",") + text;
        return all;
    }
    static void expect_why(const run::Placement& outcome, const std::string& wanted) {
        std::string all = outcome.message + outcome.error;
        for (const auto& [node, reasons] : outcome.rejected) {
            for (const auto& reason : reasons) all += "\n" + node + ": " + reason;
        }
        EXPECT_NE(all.find(wanted), std::string::npos) << "wanted \"" << wanted << "\" in: " << all;
    }
    void expect_reservation(const StoryRow& row) {
        for (const auto& holding : world_.holdings()) {
            if (holding.name != cell(row, "reservation")) continue;
            if (row.contains("phase")) {
                EXPECT_EQ(model::name_of(holding.phase), cell(row, "phase"));
            }
            if (row.contains("node")) {
                EXPECT_EQ(holding.node, cell(row, "node"));
            }
            if (row.contains("allocatable")) {
                EXPECT_EQ(amounts(holding.allocatable), cell(row, "allocatable"));
            }
            if (row.contains("allocated")) {
                EXPECT_EQ(amounts(holding.allocated), cell(row, "allocated"));
            }
            if (row.contains("owners")) {
                std::string owners;
                for (const auto& owner : holding.owners) owners += (owners.empty() ? "" : ",") + owner.name;
                EXPECT_EQ(owners, cell(row, "owners"));
            }
            expect_which(row, holding.which);
            if (row.contains("why")) expect_why(last_["/" + holding.name], cell(row, "why"));
            return;
        }
        if (row.contains("why")) return expect_why(last_["/" + cell(row, "reservation")], cell(row, "why"));
        EXPECT_EQ(cell(row, "phase"), "") << "the reservation does not exist";
    }
    static std::string amounts(const model::Resources& resources) {
        std::map<std::string, std::string> sorted;
        resources.for_each([&](model::ResourceId id, int64_t amount) {
            sorted.emplace(model::resource_name(id), model::quantity_text(id, amount));
        });
        std::string text;
        for (const auto& [name, value] : sorted) text += (text.empty() ? "" : ",") + name + "=" + value;
        return text;
    }
    void expect_consumer(const StoryRow& row) {
        const auto nothing_left_out = [](const model::Resources& resources) {
            model::Resources out;
            resources.for_each([&](model::ResourceId id, int64_t amount) {
                if (amount != 0) out.set(id, amount);
            });
            return amounts(out);
        };
        ASSERT_NE(world_.cluster().scheduler().shares(), nullptr) << "no consumers are given";
        for (const auto& account : world_.cluster().scheduler().shares()->accounts(world_.ledger())) {
            if (account.name != cell(row, "consumer")) continue;
            if (row.contains("used")) {
                EXPECT_EQ(nothing_left_out(account.used), cell(row, "used"));
            }
            if (row.contains("deserved")) {
                EXPECT_EQ(nothing_left_out(account.share.deserved), cell(row, "deserved"));
            }
            return;
        }
        ADD_FAILURE() << "there is no such consumer";
    }
    void expect_node(const StoryRow& row) {
        const auto at = world_.ledger().row_of(cell(row, "node"));
        ASSERT_NE(at, ledger::kNoRow);
        const auto used = world_.ledger().recomputed_use(at);
        for (const auto& [column, value] : row) {
            if (column == "node") continue;
            const auto id = model::intern_resource(column).value();
            EXPECT_EQ(model::quantity_text(id, used.get(id)), value) << column;
            EXPECT_EQ(used.get(id), world_.ledger().column(id)->used[at]) << "the column differs from its members";
        }
    }

    base::Time now_;
    run::World world_;
    std::map<std::string, run::Placement> last_;  // the newest outcome of each object
};

class StoryTest : public testing::Test {
public:
    explicit StoryTest(Json document) : document_(std::move(document)) {}
    void TestBody() override {
        Story story(document_);
        int number = 0;
        for (const auto& step : document_.at("steps").as_array()) {
            SCOPED_TRACE("step " + std::to_string(++number));
            story.step(step.as_object());
        }
    }

private:
    Json document_;
};

// One test a document; a file may hold several.
int register_stories() {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("tests/scenarios")) {
        if (entry.path().extension() != ".yaml") continue;
        std::ifstream in(entry.path());
        std::stringstream text;
        text << in.rdbuf();
        const auto documents = base::parse_yaml(text.str());
        if (!documents) {
            std::fprintf(stderr, "%s: %s\n", entry.path().c_str(), documents.error().message.c_str());
            return -1;
        }
        for (const auto& document : *documents) {
            const std::string name(base::find_string(document, {"scenario"}));
            testing::RegisterTest(entry.path().stem().c_str(), name.c_str(), nullptr, nullptr, entry.path().c_str(), 1,
                                  [document]() -> StoryTest* { return new StoryTest(document); });
            ++count;
        }
    }
    return count;
}

}  // namespace
}  // namespace berth::scenarios

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    if (berth::scenarios::register_stories() <= 0) return 1;
    return RUN_ALL_TESTS();
}
