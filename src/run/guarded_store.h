#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "run/bind_guard.h"
#include "store/store.h"

namespace berth::run {

// A store in memory that asks the guard, and one node n1.
class GuardedStoreTest : public testing::Test {
protected:
    explicit GuardedStoreTest(const std::string& allocatable, const base::Clock& clock = base::system_clock())
        : store_(*store::Store::open(store::memory_log())), guard_(*store_, BindRules(), clock) {
        store_->set_guard(&guard_);
        EXPECT_TRUE(put(store::Op::Create, {"nodes", "", "n1"},
                        R"({"metadata":{"name":"n1","uid":"n1"},"status":{"allocatable":)" + allocatable + "}}"));
    }
    ~GuardedStoreTest() override { store_->set_guard(nullptr); }

    Status put(store::Op op, store::Key key, const std::string& uid, const std::string& text) {
        auto commit = store_->commit(
            {{store::Write{op, std::move(key), std::make_shared<const std::string>(text), uid, {}, {}}}});
        if (commit) return {};
        return commit.error();
    }
    // Of the uid that is its name.
    Status put(store::Op op, const store::Key& key, const std::string& text) { return put(op, key, key.name, text); }

    std::unique_ptr<store::Store> store_;
    BindGuard guard_;
};

}  // namespace berth::run
