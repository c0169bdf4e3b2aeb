#include "node/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>

#include "model/cpu_list.h"
#include "node/descriptor.h"

namespace berth::node {
namespace {

constexpr size_t kLongestGroup = 480;
constexpr size_t kLongestRead = size_t{64} << 10;

struct Known {
    File file;
    const char* controller;  // of v1
    const char* v1;
    const char* v2;
};
constexpr std::array<Known, kFiles> kKnown{
    Known{File::Cpuset, "cpuset", "cpuset.cpus", "cpuset.cpus"},
    Known{File::Quota, "cpu", "cpu.cfs_quota_us", "cpu.max"},
    Known{File::CpuUsage, "cpuacct", "cpuacct.usage", "cpu.stat"},
    Known{File::MemoryUsage, "memory", "memory.usage_in_bytes", "memory.current"},
    Known{File::MemoryStat, "memory", "memory.stat", "memory.stat"}};

const Known& known(File file) {
    return kKnown.at(static_cast<size_t>(file));
}

bool is_part(std::string_view part) {
    return !part.empty() && part != "." && part != ".." && std::all_of(part.begin(), part.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
               c == '.' || c == ':';
    });
}

int open_beneath(int root, const std::string& path, uint64_t flags) {
    open_how how{};
    how.flags = flags | O_CLOEXEC | O_NOFOLLOW;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
    return static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof(how)));
}

Error trouble(std::string_view what, const std::string& path, int error) {
    const auto reason = error == ENOENT || error == ENODEV ? Reason::NotFound : Reason::InternalError;
    return {reason, fmt::format("cgroup {}: cannot {}: {}", path, what, std::strerror(error))};
}

std::string first_line(std::string text) {
    text.resize(std::min(text.find('\n'), text.size()));
    return text;
}

Result<std::string> read_all(int fd, const std::string& path) {
    std::string out(kLongestRead, '\0');
    size_t size = 0;
    while (size < out.size()) {
        const auto got = ::read(fd, out.data() + size, out.size() - size);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return trouble("read it", path, errno);
        if (got == 0) break;
        size += static_cast<size_t>(got);
    }
    out.resize(size);
    return out;
}

class Files final : public Tree {
public:
    explicit Files(Hierarchy tree) : tree_(tree) {}

    Status open_root(const std::string& controller, const TreeOptions& options) {
        std::string path = controller.empty() ? options.root : options.root + "/" + controller;
        Descriptor fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        if (fd.get() < 0) return trouble("open it", path, errno);
        struct statfs kind{};
        if (::fstatfs(fd.get(), &kind) != 0) return trouble("ask what it is", path, errno);
        const bool ours = kind.f_type == CGROUP_SUPER_MAGIC || kind.f_type == CGROUP2_SUPER_MAGIC;
        if (!ours && !options.any_files)
            return base::bad_request(fmt::format("cgroup {}: it is no file system of cgroups", path));
        if (const auto below = trimmed(options.below); !below.empty()) {
            path += "/" + below;
            Descriptor inner(open_beneath(fd.get(), below, O_PATH | O_DIRECTORY));
            if (inner.get() < 0) return trouble("open it", path, errno);
            fd = std::move(inner);
        }
        roots_[controller] = {std::move(fd), path};
        return {};
    }

    const Hierarchy& hierarchy() const override { return tree_; }

    Result<std::string> read(const std::string& group, File file) override {
        std::string path;
        const Descriptor fd = TRY(open(group, file, O_RDONLY, path));
        auto text = TRY(read_all(fd.get(), path));
        return file == File::MemoryStat || (tree_.v2 && file == File::CpuUsage) ? text : first_line(std::move(text));
    }

    Status write(const std::string& group, File file, const std::string& value) override {
        std::string path;
        if (!is_writable(file)) return base::bad_request(fmt::format("cgroup {}: not a file to write", known(file).v1));
        const Descriptor fd = TRY(open(group, file, O_RDWR, path));
        const std::string line = value + "\n";  // in one piece: whoever is killed here leaves the old or the new
        if (::pwrite(fd.get(), line.data(), line.size(), 0) != static_cast<ssize_t>(line.size()))
            return trouble(fmt::format("write \"{}\"", value), path, errno);
        if (::lseek(fd.get(), 0, SEEK_SET) < 0) return trouble("read it back", path, errno);
        const auto back = first_line(TRY(read_all(fd.get(), path)));
        if (same(file, value, back)) return {};
        return base::internal(fmt::format("cgroup {}: wrote \"{}\" and read back \"{}\"", path, value, back));
    }

    Result<std::vector<std::string>> children(const std::string& group) override {
        TRY(check_group(group));
        const auto& [root, path] = roots_.at(tree_.v2 ? "" : "cpuset");
        const int fd = open_beneath(root.get(), group, O_RDONLY | O_DIRECTORY);
        if (fd < 0) return trouble("open it", path + "/" + group, errno);
        const std::unique_ptr<DIR, int (*)(DIR*)> folder(::fdopendir(fd), ::closedir);
        if (!folder) return trouble("list it", path + "/" + group, errno);
        std::vector<std::string> out;
        while (const dirent* entry = ::readdir(folder.get())) {
            if (entry->d_type == DT_DIR && is_part(entry->d_name)) out.emplace_back(entry->d_name);
        }
        std::sort(out.begin(), out.end());
        return out;
    }

private:
    static std::string trimmed(std::string path) {
        while (!path.empty() && path.front() == '/') path.erase(0, 1);
        while (!path.empty() && path.back() == '/') path.pop_back();
        return path;
    }
    Result<Descriptor> open(const std::string& group, File file, uint64_t flags, std::string& path) {
        TRY(check_group(group));
        const auto& how = known(file);
        const auto root = roots_.find(tree_.v2 ? "" : how.controller);
        if (root == roots_.end()) return trouble("open it", fmt::format("{}/{}", how.controller, group), ENOENT);
        const std::string name = fmt::format("{}/{}", group, tree_.v2 ? how.v2 : how.v1);
        path = root->second.path + "/" + name;
        Descriptor fd(open_beneath(root->second.fd.get(), name, flags));
        if (fd.get() < 0) return trouble("open it", path, errno);
        struct stat kind{};
        if (::fstat(fd.get(), &kind) != 0 || !S_ISREG(kind.st_mode)) return trouble("use it as a file", path, EINVAL);
        return fd;
    }
    // The kernel writes lists of CPUs in its own way.
    bool same(File file, const std::string& wrote, const std::string& back) const {
        if (file != File::Cpuset) return wrote == back;
        std::string fault;
        return model::read_cpu_list(wrote, fault) == model::read_cpu_list(back, fault);
    }

    struct Root {
        Descriptor fd;
        std::string path;
    };
    const Hierarchy tree_;
    std::map<std::string, Root, std::less<>> roots_;  // by controller; "" is v2's
};

}  // namespace

bool is_writable(File file) {
    return file == File::Cpuset || file == File::Quota;
}

Status check_group(std::string_view group) {
    const auto refused = [&] {
        std::string quoted;
        base::append_quoted(group.substr(0, kLongestGroup), quoted);
        return base::bad_request(fmt::format("cgroup {}: not a name of the kubelet's groups", quoted));
    };
    const auto top = group.substr(0, group.find('/'));
    if (group.size() > kLongestGroup || (top != "kubepods" && top != "kubepods.slice")) return refused();
    for (size_t at = 0; at <= group.size();) {
        const auto slash = std::min(group.find('/', at), group.size());
        if (!is_part(group.substr(at, slash - at))) return refused();
        at = slash + 1;
    }
    return {};
}

Result<std::unique_ptr<Tree>> open_tree(const TreeOptions& options) {
    struct stat seen{};
    const bool v2 = ::stat((options.root + "/cgroup.controllers").c_str(), &seen) == 0;
    auto files = std::make_unique<Files>(Hierarchy{v2, options.systemd});
    if (v2) {
        TRY(files->open_root("", options));
        return std::unique_ptr<Tree>(std::move(files));
    }
    for (const char* needed : {"cpuset", "cpu"}) TRY(files->open_root(needed, options));
    // Without these nothing is known of what is in use.
    for (const char* wanted : {"cpuacct", "memory"}) TRY(files->open_root(wanted, options));
    return std::unique_ptr<Tree>(std::move(files));
}

}  // namespace berth::node
