// Who follows the kinds that decisions read may read them all: a role that lacks one keeps its holder waiting for ever.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "texts.h"

namespace tidy {
namespace {

// The plural names in the table of kinds.
std::set<std::string> followed() {
    const std::string source = text_of("src/ledger/intake.cc");
    const size_t begin = source.find("kKinds[] = {"), end = source.find("\n};", begin);
    const std::string table = source.substr(begin, end - begin);
    std::set<std::string> out;
    const std::regex name("\"([a-z]{3,}s)\"");
    for (std::sregex_iterator at(table.begin(), table.end(), name), none; at != none; ++at) out.insert((*at)[1]);
    out.erase("apps");
    return out;
}

TEST(Roles, WhoFollowsAKindMayReadIt) {
    const auto kinds = followed();
    ASSERT_GE(kinds.size(), 18U);
    for (const auto* role : {"deploy/base/scheduler_rbac.yaml", "deploy/arbitrator/rbac.yaml"}) {
        const std::string text = text_of(role);
        for (const auto& kind : kinds)
            EXPECT_TRUE(std::regex_search(text, std::regex("[\\[ ]" + kind + "[,\\]]"))) << role << ": " << kind;
    }
}

}  // namespace
}  // namespace tidy
