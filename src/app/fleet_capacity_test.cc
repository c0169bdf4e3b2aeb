#include "app/fleet_capacity.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

namespace berth::app {
namespace {

TEST(FleetCapacity, EachResourceIsNamedOnceWithAnAmount) {
    EXPECT_TRUE(read_capacity({"cpu=4", "memory=16Gi", "tpu=0"}, "--capacity"));
    for (const char* word : {"cpu", "=4", "cpu=", "cpu=-1", "cpu=many"})
        EXPECT_FALSE(read_capacity({word}, "--capacity")) << word;
    const auto twice = read_capacity({"cpu=4", "memory=1Gi", "cpu=8"}, "--capacity");
    ASSERT_FALSE(twice);
    EXPECT_EQ(twice.error().message, "--capacity: cpu is named twice");
}

class ExecHook : public testing::Test {
protected:
    run::FleetProvider::Hook program(const std::string& lines, base::Duration most = std::chrono::minutes(1)) {
        std::ofstream(path_) << "#!/bin/sh\n" << lines;
        ::chmod(path_.c_str(), 0700);
        return exec_hook(path_, most);
    }
    // More than fits between two processes at a time.
    static model::IriMachine large() {
        model::IriMachine out;
        out.meta.id = "m";
        out.ignition.assign(size_t{2} << 20, 'x');
        return out;
    }
    const std::string path_ = testing::TempDir() + "hook";
};

TEST_F(ExecHook, HearsAllOfAMachine) {
    EXPECT_TRUE(program("[ \"$1 $2\" = 'create m' ] && [ $(wc -c) -gt 2700000 ]")("create", large()));
}

TEST_F(ExecHook, AnyEndBut0IsARefusal) {
    const auto said = program("exit 3")("update", {});
    ASSERT_FALSE(said);
    EXPECT_TRUE(said.error().message.ends_with("it failed")) << said.error().message;
    EXPECT_FALSE(exec_hook("/nowhere/at/all")("create", {}));
}

TEST_F(ExecHook, NeedNotReadWhatItIsTold) {
    EXPECT_TRUE(program("exit 0")("create", large()));
}

// Its provider waits for it, and so do all who ask: not for ever, also when it does not even read.
TEST_F(ExecHook, WhoDoesNotEndInTimeIsKilled) {
    const auto said = program("exec sleep 1000", std::chrono::milliseconds(100))("create", large());
    ASSERT_FALSE(said);
    EXPECT_TRUE(said.error().message.ends_with("was killed")) << said.error().message;
}

}  // namespace
}  // namespace berth::app
