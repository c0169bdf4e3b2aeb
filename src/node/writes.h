#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/cpu_list.h"
#include "node/groups.h"

namespace berth::node {

// What a group of the tree shall have; absent: it is left as it is.
struct Goal {
    std::string group;
    std::optional<model::CpuIds> cpus;  // never none
    std::optional<int64_t> quota;       // microseconds in a period; -1 is none
    bool operator==(const Goal&) const = default;
};
using Goals = std::vector<Goal>;  // parents before what is in them

// What a group has now; absent: nobody knows, or it is not there.
struct GroupNow {
    std::optional<model::CpuIds> cpus;
    std::optional<int64_t> quota;
};
using Now = std::function<GroupNow(const std::string& group)>;

struct CgroupWrite {
    std::string group;
    std::string file;
    std::string value;
    bool operator==(const CgroupWrite&) const = default;
};

// The files of a tree.
std::string_view cpuset_file();
std::string_view quota_file(const Hierarchy& tree);
std::string quota_text(const Hierarchy& tree, int64_t quota);
std::optional<int64_t> read_quota(const Hierarchy& tree, std::string_view text);

// The writes that lead from what is to the goals, so that no group ever has a CPU that its parent lacks: what grows is
// written from the top, then what shrinks from the bottom; where cores are changed for others, parents have both
// meanwhile. What is so already is not written.
std::vector<CgroupWrite> writes_for(const Hierarchy& tree, const Goals& goals, const Now& now);

}  // namespace berth::node
