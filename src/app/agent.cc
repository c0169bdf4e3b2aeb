#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <optional>
#include <utility>

#include "app/attached.h"
#include "app/commands.h"
#include "app/driver_thread.h"
#include "cli/agent_plan.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/dump.h"
#include "node/confine.h"
#include "node/writer.h"
#include "run/agent_driver.h"

namespace berth::app {
namespace {

constexpr const char* kKubeletConfig = "/var/lib/kubelet/config.yaml";
constexpr const char* kCpuManagerState = "/var/lib/kubelet/cpu_manager_state";

// The kubelet's files, read again when they have changed; they may be root's alone, so whoever has the right opens
// them. One that is not there, and that nobody named, says nothing.
class KubeletFiles {
    struct File {
        std::string path;
        const char* usual;
        Status (*read)(const Json& document, node::Kubelet& out);
        std::optional<struct stat> seen = {};  // nullopt: it is not there
    };

public:
    using Open = std::function<Result<node::Descriptor>(size_t)>;

    KubeletFiles(std::string config, std::string state)
        : files_{File{std::move(config), kKubeletConfig, node::read_kubelet_config},
                 File{std::move(state), kCpuManagerState, node::read_cpu_manager_state}},
          open_([this](size_t which) { return node::open_plain_file(files_.at(which).path); }) {}

    std::vector<std::string> paths() const { return {files_[0].path, files_[1].path}; }
    void open_by(Open open) { open_ = std::move(open); }

    Result<node::Kubelet> read() {
        std::array<Result<node::Descriptor>, 2> opened{open_(0), open_(1)};
        bool changed = !known_;
        for (size_t i = 0; i < files_.size(); ++i) changed = has_changed(files_[i], opened[i]) || changed;
        if (!changed) return *known_;
        known_.reset();
        node::Kubelet out;
        for (size_t i = 0; i < files_.size(); ++i) TRY(read_one(files_[i], opened[i], out));
        known_ = out;
        return out;
    }

private:
    static bool has_changed(File& file, const Result<node::Descriptor>& opened) {
        struct stat now{};
        if (!opened || ::fstat(opened->get(), &now) != 0) return std::exchange(file.seen, std::nullopt).has_value();
        const auto before = std::exchange(file.seen, now);
        return !before || before->st_ino != now.st_ino || before->st_size != now.st_size ||
               before->st_mtim.tv_sec != now.st_mtim.tv_sec || before->st_mtim.tv_nsec != now.st_mtim.tv_nsec;
    }
    static Status read_one(const File& file, const Result<node::Descriptor>& opened, node::Kubelet& out) {
        if (!opened && opened.error().reason == Reason::NotFound && file.path == file.usual) return {};
        if (!opened) return opened.error();
        const auto documents = cli::read_objects(TRY(text_of(file, *opened)));
        if (!documents) return base::bad_request(fmt::format("{}: {}", file.path, documents.error().message));
        if (documents->size() != 1)
            return base::bad_request(fmt::format("{} has {} documents, not one", file.path, documents->size()));
        if (const Status done = file.read(documents->front(), out); !done)
            return base::bad_request(fmt::format("{}: {}", file.path, done.error().message));
        return {};
    }
    static Result<std::string> text_of(const File& file, const node::Descriptor& fd) {
        constexpr size_t kMost = size_t{4} << 20;
        std::string out;
        std::array<char, 16384> part{};
        ssize_t got = 0;
        while (out.size() <= kMost &&
               (got = ::pread(fd.get(), part.data(), part.size(), static_cast<off_t>(out.size()))) > 0)
            out.append(part.data(), static_cast<size_t>(got));
        if (got < 0) return base::bad_request(fmt::format("cannot read {}: {}", file.path, std::strerror(errno)));
        if (out.size() > kMost) return base::bad_request(fmt::format("cannot read {}: it is too large", file.path));
        return out;
    }

    std::array<File, 2> files_;
    Open open_;
    std::optional<node::Kubelet> known_;
};

struct AgentFlags {
    AttachedOptions attached;
    std::string node, topology = "live";
    node::TreeOptions tree;
    std::string kubelet_config = kKubeletConfig, cpu_manager_state = kCpuManagerState;
    int64_t user = 65532;
    bool once = false, restore = false;
};

void add_flags(cli::CommandLine& line, AgentFlags& flags) {
    flags.attached.lease_name = "berth-agent";
    flags.attached.bind_address = "127.0.0.1:10261";
    line.option("--node", flags.node, "the name of this machine's Node").required();
    line.option("--topology", flags.topology, "the machine: live, FILE.xml, FILE.json or synthetic:DESCRIPTION")
        .show_default();
    line.option("--cgroup-root", flags.tree.root, "where cgroups are mounted").show_default();
    line.flag("--any-files", flags.tree.any_files, "take a folder of plain files for it: a rehearsal");
    line.option("--kubelet-config", flags.kubelet_config, "the kubelet's configuration file").show_default();
    line.option("--cpu-manager-state", flags.cpu_manager_state, "the kubelet's cpu_manager_state").show_default();
    line.option("--user", flags.user,
                "whom root becomes to talk to the server, once it has read who it is; 0: it stays root")
        .show_default()
        .within(0, 65533);
    line.flag("--once", flags.once, "end when everything is as it should be");
    line.flag("--restore", flags.restore, "give back on the way out what was taken: all CPUs, no quotas");
    add_attached_flags(line, flags.attached);
    line.example("berth agent --node n1 --kubeconfig F --restore", "on the machine n1");
    line.command_aside("plan", "computes the same from files, and touches nothing");
    line.example("berth agent plan --topology live -f node.yaml", "what it would do, without touching anything");
}

// Most code that has run until now was needed to begin. What is needed again comes back from the file, page by page.
void give_back_code() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        uintptr_t begin = 0, end = 0;
        std::array<char, 5> may{};
        if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, may.data()) != 3) continue;
        const bool is_code = std::string_view(may.data()) == "r-xp" && line.find(" /") != std::string::npos;
        if (is_code) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    }
}

class Agent final : public Component {
public:
    Agent(std::unique_ptr<link::ApiClient> server, std::unique_ptr<node::Tree> tree, KubeletFiles& kubelet,
          run::AgentDriver::Options options)
        : thread_("agent", base::system_clock(), [&](link::Wake wake) {
              return std::make_unique<run::AgentDriver>(
                  run::AgentDriver::Doors{std::move(server), std::move(wake), std::move(tree),
                                          [&kubelet] { return kubelet.read(); }},
                  std::move(options));
          }) {}
    bool synced() const override { return thread_.synced(); }

private:
    DriverThread thread_;
};

// Before there are threads: the process that writes, and opens what only root may read, is forked here. This one, which
// talks to the network, writes no file from then on, and if it is not root has no capability.
Result<std::unique_ptr<node::Tree>> open_split_tree(AgentFlags& flags, KubeletFiles& kubelet) {
    const auto told = TRY(kubelet.read());
    flags.tree.below = told.cgroup_root;
    flags.tree.systemd = told.cgroup_driver == "systemd";
    auto whole = TRY(node::open_tree(flags.tree));
    auto tree = TRY(node::split_tree(std::move(whole), kubelet.paths()));
    kubelet.open_by([split = tree.get()](size_t which) { return split->open_file(which); });
    node::give_up_writing_files();
    if (::geteuid() != 0) node::give_up_capabilities();
    return std::unique_ptr<node::Tree>(std::move(tree));
}

}  // namespace

int agent(std::vector<std::string> words) {
    // Behind the word with which shells ask what may follow, too; what is still being typed is no command yet.
    const size_t first = !words.empty() && words.front() == cli::kComplete ? 1 : 0;
    if (words.size() > 2 * first && words[first] == "plan") {
        words.erase(words.begin() + static_cast<std::ptrdiff_t>(first));
        return cli::agent_plan(std::move(words));
    }
    cli::CommandLine line(
        "On a node: says what its machine is and what is in use, keeps reserved cores free of pods, and holds "
        "best-effort pods back while others are busy. `berth agent plan` computes the same offline.",
        "berth agent");
    AgentFlags flags;
    add_flags(line, flags);
    if (const auto code = line.parse(std::move(words))) return *code;
    auto machine = node::read_machine(flags.topology);
    if (!machine) return line.fail(machine.error());
    KubeletFiles kubelet(flags.kubelet_config, flags.cpu_manager_state);
    auto tree = open_split_tree(flags, kubelet);
    if (!tree) return line.fail(tree.error());
    // A rehearsal's files may be its owner's alone.
    const uid_t user = flags.tree.any_files ? 0 : static_cast<uid_t>(flags.user);
    flags.attached.connected = [user] { return node::become_user(user); };
    run::AgentDriver::Options options;
    options.node = flags.node;
    options.machine = std::move(*machine);
    options.restore = flags.restore;
    options.on_done = [once = flags.once] {
        give_back_code();
        if (once) ::kill(::getpid(), SIGTERM);
    };
    return run_attached("berth agent", flags.attached, [&](std::unique_ptr<link::ApiClient> server, base::Metrics&) {
        return std::make_unique<Agent>(std::move(server), std::move(*tree), kubelet, std::move(options));
    });
}

}  // namespace berth::app
