#include "cli/near_word.h"

#include <gtest/gtest.h>

namespace berth::cli {
namespace {

TEST(NearWord, FindsWhatWasProbablyMeant) {
    const std::vector<std::string> words{"up", "serve", "scheduler", "explain", "reserve", "version"};
    for (const auto& [given, meant] : std::vector<std::pair<std::string, std::string>>{
             {"shceduler", "scheduler"},
             {"explian", "explain"},
             {"resrve", "reserve"},
             {"versoin", "version"},
             {"sched", "scheduler"},
             {"", ""},
             {"banana", ""},
             {"re", "reserve"},
             {"s", ""},
         }) {
        EXPECT_EQ(near_word(given, words), meant) << given;
    }
    EXPECT_EQ(near_word("--nodez", {"--nodes", "--node-cpu"}), "--nodes");
    EXPECT_EQ(near_word(std::string(10'000, 'x'), words), "");
}

}  // namespace
}  // namespace berth::cli
