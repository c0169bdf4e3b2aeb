#include "app/fleet_flags.h"

#include <gtest/gtest.h>

#include <fstream>

namespace berth::app {
namespace {

std::string refusal_of(const std::string& text) {
    const std::string file = testing::TempDir() + "classes.yaml";
    std::ofstream(file) << text;
    const auto read = read_classes(file);
    if (read) return "";
    return read.error().message.substr(std::string("--classes: ").size() + file.size() + 2);
}

TEST(FleetFlags, ClassesAreMachineClassesWithAmounts) {
    const std::string head = "apiVersion: compute.ironcore.dev/v1alpha1\nkind: MachineClass\n";
    EXPECT_EQ(refusal_of(head + "metadata: {name: c}\ncapabilities: {cpu: 1}\n"), "");
    EXPECT_EQ(refusal_of(head + "metadata: {name: c}\ncapabilities: {cpu: -1}\n"),
              "MachineClass \"c\": cpu: -1 is no amount");
    EXPECT_EQ(refusal_of(head + "capabilities: {cpu: 1}\n"), "a MachineClass has no name");
    EXPECT_EQ(refusal_of("apiVersion: v1\nkind: Pod\nmetadata: {name: c}\n"), "a \"Pod\" is no MachineClass");
    const std::string one = head + "metadata: {name: c}\ncapabilities: {cpu: 1}\n";
    EXPECT_EQ(refusal_of(one + "---\n" + one), "MachineClass c is there twice");
}

TEST(FleetFlags, LabelsAreLabels) {
    EXPECT_EQ(read_label_words({"zone=1", "a.b/c="}, "--pool-labels")->get("zone"), "1");
    for (const char* word : {"zone", "=1", "a b=1", "a=b c"})
        EXPECT_FALSE(read_label_words({word}, "--pool-labels")) << word;
    EXPECT_EQ(read_label_words({"a=1", "a=2"}, "--pool-labels").error().message, "--pool-labels: a is there twice");
}

TEST(FleetFlags, APoolIsCalledAsAnObjectMayBe) {
    EXPECT_TRUE(check_pool_name("z1.a"));
    for (const char* name : {"", "A_B", "-a"}) EXPECT_FALSE(check_pool_name(name)) << name;
}

}  // namespace
}  // namespace berth::app
