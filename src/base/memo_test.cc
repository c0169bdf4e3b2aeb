#include "base/memo.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace berth::base {
namespace {

TEST(Memo, IsMadeOnceForAll) {
    const Memo memo;
    std::atomic<int> made = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            const auto number = memo.get<int>([&] {
                ++made;
                return std::make_shared<const int>(7);
            });
            EXPECT_EQ(*number, 7);
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(made, 1);
}

TEST(Memo, NothingIsNotKept) {
    const Memo memo;
    EXPECT_EQ(memo.get<int>([] { return std::shared_ptr<const int>(); }), nullptr);
    EXPECT_EQ(*memo.get<int>([] { return std::make_shared<const int>(1); }), 1);
    memo.close();
    EXPECT_EQ(*memo.get<int>([] { return std::make_shared<const int>(3); }), 3);
    EXPECT_EQ(*memo.get<int>([] { return std::make_shared<const int>(4); }), 4);
    const Memo copy(memo);
    EXPECT_EQ(*copy.get<int>([] { return std::make_shared<const int>(2); }), 2);
}

}  // namespace
}  // namespace berth::base
