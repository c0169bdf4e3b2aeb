// Two schedulers before one server, each turned when chance will have it, with requests of its own under way, and
// killed now and then: no node holds more than it has, and nothing is given twice. The judge reads what is stored.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "../attack/judge.h"
#include "history.h"
#include "live.h"
#include "settings.h"

namespace berth::whatif {
namespace {

constexpr int kDeedsOfTwo = 20;

class Pair {
public:
    Pair(Live& live, uint64_t seed) : live_(live), history_(seed), random_(seed) {}

    void run() {
        live_.add_scheduler();
        for (int i = 0; i < kDeedsOfTwo && !testing::Test::HasFailure(); ++i) {
            const Deed deed = i < 2 ? History::make_node(fmt::format("n-{}", i), 8) : history_.next(live_.dump());
            story_ += "\n" + deed.what;
            live_.try_to(deed.request);
            const bool of_node = deed.request.method == "PATCH" && deed.request.path.starts_with(kNodes);
            judge(of_node ? deed.request.path.substr(std::string(kNodes).size() + 1) : "");
            for (uint64_t turns = random_.below(30); turns > 0; --turns) {
                live_.turn_any(random_);
                if (turns % 8 == 0) judge("");
            }
            if (random_.chance(1, 5)) {
                story_ += "\none dies";
                live_.kill_scheduler();
                live_.add_scheduler();
            }
        }
        live_.kill_scheduler();
        live_.settle();
        judge("");
    }

private:
    void judge(const std::string& node_written) {
        const auto next = attack::look(live_.server().store(), seen_);
        EXPECT_EQ(attack::complaint(seen_, next, node_written, false), "") << story_;
        seen_ = next;
    }

    Live& live_;
    History history_;
    base::Random random_;
    attack::Picture seen_;
    std::string story_;
};

TEST(TwoSchedulers, GiveNothingTwiceInAnyOrderOfTurns) {
    Live live;
    each_seed(60, [&](uint64_t seed) {
        SCOPED_TRACE(fmt::format("BERTH_SEED={}", seed));
        Pair(live, seed).run();
        live.clear();
    });
}

}  // namespace
}  // namespace berth::whatif
