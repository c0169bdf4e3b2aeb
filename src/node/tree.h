#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/groups.h"

namespace berth::node {

// The files of a cgroup that the agent knows. There are no others: a name that is not in the list in tree.cc is never
// opened.
enum class File : uint8_t { Cpuset, Quota, CpuUsage, MemoryUsage, MemoryStat };
inline constexpr size_t kFiles = 5;

bool is_writable(File file);

// The door to a machine's cgroup tree. A group is named as groups.h does; one whose name is none is refused, and so is
// every group that is not the kubelet's. NotFound: the group has gone, or never was.
class Tree {
public:
    virtual ~Tree() = default;
    virtual const Hierarchy& hierarchy() const = 0;
    virtual Result<std::string> read(const std::string& group, File file) = 0;
    // Writes, and reads back.
    virtual Status write(const std::string& group, File file, const std::string& value) = 0;
    // Names of the groups right below, sorted.
    virtual Result<std::vector<std::string>> children(const std::string& group) = 0;
};

// "kubepods", or below it; each part of letters, digits, "-", "_", "." and ":", not "." or "..".
Status check_group(std::string_view group);

struct TreeOptions {
    std::string root = "/sys/fs/cgroup";
    std::string below = {};  // the kubelet's cgroupRoot
    bool systemd = false;
    bool any_files = false;  // also on a file system that is none of cgroups, for a rehearsal
};

// Through openat2 beneath the root of each controller: no "..", no link, no other mount is followed; nothing is made.
Result<std::unique_ptr<Tree>> open_tree(const TreeOptions& options);

}  // namespace berth::node
