#include "app/fleet_capacity.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/base64.h"
#include "base/json.h"
#include "base/log.h"
#include "base/private_file.h"
#include "fleet/objects.h"

namespace berth::app {
namespace {

std::string text_in(const std::string& path) {
    std::ifstream in(path);
    std::ostringstream out;
    out << in.rdbuf();
    return in ? out.str() : "";
}

// Whole or not at all, also for a provider that reads it meanwhile.
Status replace_file(const std::string& path, const std::string& text) {
    const std::string fresh = path + ".new";
    std::ofstream out(fresh);
    out << text;
    out.close();
    std::error_code trouble;
    if (out) std::filesystem::rename(fresh, path, trouble);
    if (out && !trouble) return {};
    return base::internal(fmt::format("{} cannot be written", path));
}

std::pair<uint64_t, int64_t> seen_of(const struct stat& file) {
    return {file.st_ino, file.st_mtim.tv_sec * 1'000'000'000 + file.st_mtim.tv_nsec};
}

// What a hook is told about a machine.
Json machine_document(const model::IriMachine& machine) {
    const auto object = [](const Labels& labels) {
        JsonObject out;
        for (const auto& [key, value] : labels) out[key] = value;
        return out;
    };
    JsonArray volumes;
    for (const auto& volume : machine.volumes) {
        JsonObject one{{"name", volume.name},
                       {"device", volume.device},
                       {"driver", volume.driver},
                       {"handle", volume.handle},
                       {"attributes", object(volume.attributes)}};
        if (volume.local_disk_bytes >= 0)
            one["localDisk"] = JsonObject{{"sizeBytes", volume.local_disk_bytes}, {"image", volume.local_disk_image}};
        volumes.push_back(std::move(one));
    }
    JsonArray nics;
    for (const auto& nic : machine.network_interfaces) {
        JsonArray ips;
        for (const auto& ip : nic.ips) ips.emplace_back(ip);
        nics.push_back(JsonObject{{"name", nic.name},
                                  {"network", nic.network_id},
                                  {"ips", std::move(ips)},
                                  {"attributes", object(nic.attributes)}});
    }
    return JsonObject{{"id", machine.meta.id},
                      {"class", machine.machine_class},
                      {"power", machine.on ? "On" : "Off"},
                      {"hostname", machine.hostname},
                      {"ignition", base::to_base64(machine.ignition)},
                      {"volumes", std::move(volumes)},
                      {"networkInterfaces", std::move(nics)},
                      {"labels", object(machine.meta.labels)},
                      {"annotations", object(machine.meta.annotations)}};
}

using Deadline = std::chrono::steady_clock::time_point;

// True: that can be done with it before the deadline.
bool wait_until(int file, short what, Deadline end) {
    pollfd wanted{file, what, 0};
    while (true) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
        const int ready = ::poll(&wanted, 1, static_cast<int>(std::max<int64_t>(0, left)));
        if (ready >= 0 || errno != EINTR) return ready == 1;
    }
}

// As far as it is read: a program need not read what it is told, or all of it.
void tell_child(int to, std::string_view text, Deadline end) {
    while (!text.empty() && wait_until(to, POLLOUT, end)) {
        const auto taken = ::send(to, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (taken < 0 && errno != EAGAIN && errno != EINTR) return;
        text.remove_prefix(static_cast<size_t>(std::max<ssize_t>(0, taken)));
    }
}

// How a child ended; absent: it did not in time, and is killed, with whatever it has started.
std::optional<int> end_of(pid_t child, Deadline end) {
    const int handle = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
    const bool in_time = handle >= 0 && wait_until(handle, POLLIN, end);
    if (handle >= 0) ::close(handle);
    if (!in_time) ::kill(-child, SIGKILL);
    if (!in_time) ::kill(child, SIGKILL);
    int status = 0;
    const bool waited = ::waitpid(child, &status, 0) == child;
    return in_time && waited ? std::optional<int>(status) : std::nullopt;
}

}  // namespace

Result<model::Amounts> read_capacity(const std::vector<std::string>& words, const std::string& flag) {
    model::Amounts out;
    for (const auto& word : words) {
        const auto equals = word.find('=');
        const auto amount = Quantity::parse(equals == std::string::npos ? "" : word.substr(equals + 1));
        if (equals == 0 || !amount || amount->is_negative())
            return base::bad_request(fmt::format("{}: \"{}\" is not RESOURCE=AMOUNT", flag, word));
        if (!out.emplace(word.substr(0, equals), *amount).second)
            return base::bad_request(fmt::format("{}: {} is named twice", flag, word.substr(0, equals)));
    }
    return out;
}

// E.g. 4 cpu, overcommitted by 1.5: 6.
Result<model::Amounts> CapacityFile::given(const model::Amounts& amounts) const {
    model::Amounts out = amounts;
    for (const auto& [name, factor] : overcommit_) {
        const auto found = out.find(name);
        if (found == out.end()) return base::bad_request(fmt::format("--overcommit: --capacity has no {}", name));
        const auto product = static_cast<int128>(found->second.value()) * factor.milli() / 1000;
        if (product > std::numeric_limits<int64_t>::max())
            return base::bad_request(
                fmt::format("--overcommit: {} x {} is too much", found->second.text(), factor.text()));
        found->second = Quantity::from_value(static_cast<int64_t>(product), found->second.format());
    }
    return out;
}

Result<model::Amounts> CapacityFile::at_start() {
    const auto file = text_in(path());
    const std::string flags = model::text_of(flags_);
    const auto known = base::parse_json(file);
    if (known && base::find_string(*known, {"flags"}) == flags) {
        last_ = file;
        const auto amounts = TRY(fleet::read_amounts(base::find(*known, {"capacity"})));
        return given(amounts);
    }
    if (flags_.empty()) return base::bad_request("--capacity: name what there is, such as cpu=4,memory=16Gi");
    const Json capacity = TRY(base::parse_json(flags));
    last_ = base::to_text(Json(JsonObject{{"flags", flags}, {"capacity", capacity}}));
    TRY(replace_file(path(), last_));
    return given(flags_);
}

std::optional<model::Amounts> CapacityFile::changed() {
    struct stat now{};
    if (::stat(path().c_str(), &now) != 0 || std::exchange(seen_, seen_of(now)) == seen_of(now)) return std::nullopt;
    const auto file = text_in(path());
    if (file.empty() || file == last_) return std::nullopt;
    last_ = file;
    const auto known = base::parse_json(file);
    if (!known) return std::nullopt;
    const auto amounts = fleet::read_amounts(base::find(*known, {"capacity"}));
    auto out = amounts ? given(*amounts) : amounts;
    if (out) return std::move(*out);
    base::log_warning("A new capacity cannot be taken", {{"error", out.error()}});
    return std::nullopt;
}

Status ask_for_capacity(const std::string& dir, const std::vector<std::string>& words) {
    const auto amounts = TRY(read_capacity(words, "--capacity"));
    if (amounts.empty()) return base::bad_request("--capacity: name what there is, such as cpu=8");
    const std::string path = dir + "/capacity.json";
    auto known = base::parse_json(text_in(path));
    if (!known) return base::not_found(fmt::format("--data-dir {}: there is no provider's ledger", dir));
    known->get_object()["capacity"] = TRY(base::parse_json(model::text_of(amounts)));
    return replace_file(path, base::to_text(*known));
}

run::FleetProvider::Hook exec_hook(std::string program, base::Duration most) {
    return [program = std::move(program), most](const std::string& verb, const model::IriMachine& machine) -> Status {
        int ends[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
            return base::internal("--exec-hook: no pipe can be made");
        const pid_t child = ::fork();
        if (child == 0) {
            ::dup2(ends[0], 0);
            ::setpgid(0, 0);
            sigset_t none;
            ::sigemptyset(&none);
            ::sigprocmask(SIG_SETMASK, &none, nullptr);
            ::execlp(program.c_str(), program.c_str(), verb.c_str(), machine.meta.id.c_str(), nullptr);
            ::_exit(127);
        }
        ::close(ends[0]);
        const auto end = std::chrono::steady_clock::now() + most;
        if (child > 0) tell_child(ends[1], base::to_text(machine_document(machine)), end);
        ::close(ends[1]);
        const auto status = child > 0 ? end_of(child, end) : std::nullopt;
        if (status && WIFEXITED(*status) && WEXITSTATUS(*status) == 0) return {};
        return base::internal(fmt::format("--exec-hook {} {} {}: it {}", program, verb, machine.meta.id,
                                          status ? "failed" : "did not end in time, and was killed"));
    };
}

}  // namespace berth::app
