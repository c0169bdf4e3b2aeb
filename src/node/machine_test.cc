#include "node/machine.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace berth::node {
namespace {

std::string file(const std::string& name, const std::string& text) {
    const auto path = std::filesystem::temp_directory_path() / name;
    std::ofstream(path) << text;
    return path;
}

TEST(Machine, SyntheticNumbersSiblingsTogether) {
    const auto machine = read_machine("synthetic:socket:2 numa:2 core:10 pu:2");
    ASSERT_TRUE(machine) << machine.error().message;
    ASSERT_EQ(machine->cpus.size(), 80u);
    EXPECT_EQ(machine->cpus[0], (model::Cpu{0, 0, 0, 0}));
    EXPECT_EQ(machine->cpus[1], (model::Cpu{1, 0, 0, 0}));
    EXPECT_EQ(machine->cpus[20], (model::Cpu{20, 10, 1, 0}));
    EXPECT_EQ(machine->cpus[79], (model::Cpu{79, 39, 3, 1}));
    ASSERT_EQ(machine->numas.size(), 4u);
    EXPECT_GT(machine->numas[0].memory, 0);
}

TEST(Machine, SyntheticTakesIndexes) {
    // Siblings i and i+12, as the seed's machine has them.
    const auto machine = read_machine("synthetic:socket:2 core:6 pu:2(indexes=2*12:12*1)");
    ASSERT_TRUE(machine) << machine.error().message;
    ASSERT_EQ(machine->cpus.size(), 24u);
    EXPECT_EQ(machine->cpus[0].core, machine->cpus[12].core);
    EXPECT_EQ(machine->cpus[5].socket, 0);
    EXPECT_EQ(machine->cpus[6].socket, 1);
}

TEST(Machine, LiveHasWhatTheKernelHas) {
    const auto machine = read_machine("live");
    ASSERT_TRUE(machine) << machine.error().message;
    EXPECT_GE(machine->numas.size(), 1u);
    EXPECT_EQ(static_cast<long>(machine->cpus.size()), ::sysconf(_SC_NPROCESSORS_ONLN));
}

TEST(Machine, FilesInBothForms) {
    const auto detail = read_machine(
        file("berth-detail.json",
             R"({"detail":[{"id":1,"core":0,"socket":0,"node":1},{"id":0,"core":1,"socket":0,"node":0}]})"));
    ASSERT_TRUE(detail) << detail.error().message;
    EXPECT_EQ(detail->ids(), (model::CpuIds{0, 1}));
    EXPECT_EQ(detail->numas, (std::vector<NumaNode>{{0, 0, {}}, {1, 0, {}}}));
    const std::string xml = R"(<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
 <object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x3" allowed_cpuset="0x3" nodeset="0x1"
         complete_nodeset="0x1" allowed_nodeset="0x1" gp_index="1">
  <object type="NUMANode" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1" complete_nodeset="0x1"
          gp_index="9" local_memory="1000"><page_type size="4096" count="10"/><page_type size="2097152" count="3"/></object>
  <object type="Package" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1" complete_nodeset="0x1" gp_index="2">
   <object type="Core" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1" complete_nodeset="0x1" gp_index="3">
    <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="4"/>
    <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x1" complete_nodeset="0x1" gp_index="5"/>
   </object></object></object></topology>)";
    const auto machine = read_machine(file("berth-machine.xml", xml));
    ASSERT_TRUE(machine) << machine.error().message;
    EXPECT_EQ(machine->cpus, (model::CpuTopology{{0, 0, 0, 0}, {1, 0, 0, 0}}));
    EXPECT_EQ(machine->numas, (std::vector<NumaNode>{{0, 1000, {{2097152, 3}}}}));
}

TEST(Machine, WhatCannotBeIsASentence) {
    for (const char* bad : {"", "lively", "synthetic:", "synthetic:banana", "/nowhere/m.xml", "/nowhere/m.json"}) {
        const auto machine = read_machine(bad);
        ASSERT_FALSE(machine) << bad;
        EXPECT_NE(machine.error().message.find(fmt::format("\"{}\"", bad)), std::string::npos)
            << machine.error().message;
    }
    EXPECT_FALSE(read_machine(file("berth-none.json", R"({"detail":[]})")));
    EXPECT_FALSE(read_machine(file("berth-broken.xml", "<topology")));
}

}  // namespace
}  // namespace berth::node
