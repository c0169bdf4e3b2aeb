#include "cli/migrate.h"

#include <fmt/format.h>

#include <set>

#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/explanation.h"
#include "cli/interrupt.h"
#include "cli/live.h"
#include "cli/until.h"

namespace berth::cli {
namespace {

constexpr std::string_view kReservations = "/apis/scheduling.koordinator.sh/v1alpha1/reservations";
constexpr int kMomentS = 5;
using control::controller_of;
const link::Resource kFollowed{"scheduling.koordinator.sh", "v1alpha1", "reservations"};

struct Flags {
    std::string kind;
    std::string name;
    ServerFlags server;
    int timeout_s = 180;
    bool pre_allocate = false;
    bool dry_run = false;
};

std::string text_at(const Json& object, std::initializer_list<std::string_view> path) {
    return std::string(base::find_string(object, path));
}

Status remove(link::ApiClient& server, const std::string& name) {
    TRY(ask_object(server, {"DELETE", fmt::format("{}/{}", kReservations, name)}));
    return {};
}

Status evict(link::ApiClient& server, const Json& pod, bool only_ask) {
    const std::string ns = text_at(pod, {"metadata", "namespace"}), name = text_at(pod, {"metadata", "name"});
    const auto answer = ask_object(
        server,
        {"POST", fmt::format("/api/v1/namespaces/{}/pods/{}/eviction{}", ns, name, only_ask ? "?dryRun=All" : ""),
         base::to_text(control::eviction_of(pod))});
    if (!answer)
        return base::bad_request(fmt::format("pod \"{}\" may not be evicted: {}", name, answer.error().message));
    return {};
}

// The node that was found, or why there is none.
Result<std::string> wait_for_place(link::ApiClient& server, const std::string& name, int timeout_s,
                                   Interrupt& interrupt) {
    std::string node, trouble, waits;
    const auto placed = [&](const Json& object, bool gone) {
        if (text_at(object, {"metadata", "name"}) != name) return false;
        const auto phase = text_at(object, {"status", "phase"});
        if (phase == "Waiting") waits = condition_message(object, "Ready");
        if (phase.empty() || phase == "Pending") trouble = condition_message(object, "Scheduled");
        if (phase == "Failed") trouble = condition_message(object, "Ready");
        if (gone) trouble = "the reservation was deleted";
        // Succeeded: somebody took it as soon as it was there.
        if (phase == "Available" || phase == "Succeeded") node = text_at(object, {"status", "nodeName"});
        return !node.empty() || !trouble.empty();
    };
    until(server, kFollowed, timeout_s, placed, {}, &interrupt);
    if (!node.empty()) return node;
    if (interrupt.came()) return base::bad_request("interrupted; nothing was moved");
    if (trouble.empty()) trouble = waits.empty() ? "nobody placed the reservation" : waits;
    return base::bad_request(fmt::format("there is no room elsewhere: {}", trouble));
}

struct Taker {
    std::string name, uid;
};

Taker taker_of(const Json& reservation) {
    const Json* owners = base::find(reservation, {"status", "currentOwners"});
    if (owners == nullptr || !owners->is_array() || owners->as_array().empty()) return {};
    const Json& first = owners->as_array().front();
    return {text_at(first, {"name"}), text_at(first, {"uid"})};
}

// The pod that took the room.
Result<Taker> wait_for_taker(link::ApiClient& server, const std::string& name, int timeout_s, Interrupt& interrupt) {
    Taker taker;
    std::string trouble;
    const auto taken = [&](const Json& object, bool gone) {
        if (text_at(object, {"metadata", "name"}) != name) return false;
        const auto phase = text_at(object, {"status", "phase"});
        if (gone || phase == "Failed")
            trouble = condition_message(object, "Ready") + " the reservation ended before anyone used it";
        taker = taker_of(object);
        return !taker.uid.empty() || !trouble.empty();
    };
    until(server, kFollowed, timeout_s, taken, {}, &interrupt);
    if (!taker.uid.empty()) return taker;
    if (trouble.empty()) {
        trouble = interrupt.came() ? "interrupted before a replacement came"
                                   : fmt::format("no replacement came within {} s", timeout_s);
        trouble += fmt::format("; reservation \"{}\" still holds its room", name);
    }
    return Error{Reason::Timeout, trouble};
}

// Flushed, since the next step may take its time.
template <class... T>
void say(fmt::format_string<T...> words, T&&... values) {
    fmt::print("{}\n", fmt::format(words, std::forward<T>(values)...));
    std::fflush(stdout);
}

// One pod on its way. A pod of the same controller that was pending may take the room as soon as it is there; then
// there is another round, with another reservation.
class Migration {
public:
    Migration(link::ApiClient& server, Interrupt& interrupt, const Flags& flags, Json pod, Json reservation)
        : server_(server),
          interrupt_(interrupt),
          flags_(flags),
          pod_(std::move(pod)),
          from_(text_at(pod_, {"spec", "nodeName"})),
          reservation_(std::move(reservation)) {}

    Status run() {
        do TRY(hold_room());
        while (TRY(taken_before()));
        auto evicted = interrupt_.came() ? Status(base::bad_request("interrupted; nothing was moved"))
                                         : evict(server_, pod_, false);
        if (!evicted) {
            TRY(remove(server_, name_));
            return evicted;
        }
        say("pod/{} evicted from {}", flags_.name, from_);
        while (true) {
            const Taker taker = TRY(wait_for_taker(server_, name_, flags_.timeout_s, interrupt_));
            if (!siblings_.contains(taker.uid)) {
                say("pod/{} took its place on {}", taker.name, node_);
                return {};
            }
            TRY(replacement_waits(taker));
            TRY(hold_room());
        }
    }

private:
    Status hold_room() {
        while (!TRY(reserve()));
        say("reservation/{} created", name_);
        const auto node = wait_for_place(server_, name_, flags_.timeout_s, interrupt_);
        if (!node) {
            TRY(remove(server_, name_));
            return node.error();
        }
        node_ = *node;
        say("reservation/{} holds room on {}", name_, node_);
        return {};
    }

    // False: the name is that of an earlier migration, which is over.
    Result<bool> reserve() {
        const std::string first = text_at(reservation_, {"metadata", "name"});
        name_ = ++round_ == 1 ? first : fmt::format("{}-{}", first, round_);
        Json wanted = reservation_;
        base::object_at(wanted, {"metadata"})["name"] = name_;
        const auto made = ask_object(server_, {"POST", std::string(kReservations), base::to_text(wanted)});
        if (made) return true;
        if (made.error().reason != Reason::AlreadyExists) return made.error();
        const auto other = ask_object(server_, {"GET", fmt::format("{}/{}", kReservations, name_)});
        if (!other && other.error().reason != Reason::NotFound) return other.error();
        const auto phase = other ? text_at(*other, {"status", "phase"}) : "Failed";
        if (phase == "Succeeded" || phase == "Failed") return false;
        return base::conflict(
            fmt::format("pod \"{}\" is being moved already: reservation \"{}\" is {}; if nobody does, "
                        "delete it and try again",
                        flags_.name, name_, phase));
    }

    // Whether a sibling has the room already; those that are pending get a moment to take it.
    Result<bool> taken_before() {
        bool pending = false;
        for (const auto& sibling : TRY(pods_of_controller())) {
            siblings_.insert(text_at(sibling, {"metadata", "uid"}));
            pending = pending || text_at(sibling, {"spec", "nodeName"}).empty();
        }
        Taker taker;
        if (pending) {
            if (auto came = wait_for_taker(server_, name_, kMomentS, interrupt_)) taker = std::move(*came);
        } else {
            taker = taker_of(TRY(ask_object(server_, {"GET", fmt::format("{}/{}", kReservations, name_)})));
        }
        if (taker.uid.empty()) return false;
        say("pod/{} took the room on {}; reserving again", taker.name, node_);
        return true;
    }

    // Else it needs no room any more.
    Status replacement_waits(const Taker& sibling) {
        say("pod/{}, which was there before, took the room on {}; reserving again", sibling.name, node_);
        for (const auto& pod : TRY(pods_of_controller())) {
            const auto on = text_at(pod, {"spec", "nodeName"});
            if (on.empty() || siblings_.contains(text_at(pod, {"metadata", "uid"}))) continue;
            return base::conflict(fmt::format("the replacement \"{}\" went to {} meanwhile, where nothing was reserved",
                                              text_at(pod, {"metadata", "name"}), on));
        }
        return {};
    }

    Result<std::vector<Json>> pods_of_controller() {
        const std::string controller = text_at(*controller_of(pod_), {"uid"});
        const auto path = fmt::format("/api/v1/namespaces/{}/pods", text_at(pod_, {"metadata", "namespace"}));
        const Json list = TRY(ask_object(server_, {"GET", path}));
        std::vector<Json> out;
        for (const auto& pod : list.at("items").as_array()) {
            const Json* its = controller_of(pod);
            if (its != nullptr && text_at(*its, {"uid"}) == controller) out.push_back(pod);
        }
        return out;
    }

    link::ApiClient& server_;
    Interrupt& interrupt_;
    const Flags& flags_;
    const Json pod_;
    const std::string from_;
    const Json reservation_;
    int round_ = 0;
    std::string name_;                // of this round's reservation
    std::string node_;                // where it is
    std::set<std::string> siblings_;  // uids of what was there before the eviction, the pod among them
};

// Where the reservation would hold room now. The server checks it and says how it would be stored.
Status look_for_room(link::ApiClient& server, const Flags& flags, const Json& pod, const Json& reservation) {
    const Json checked =
        TRY(ask_object(server, {"POST", fmt::format("{}?dryRun=All", kReservations), base::to_text(reservation)}));
    run::World world(base::system_clock().wall());
    TRY(load_live(server, world));
    TRY(world.put(checked));
    const auto found = TRY(explain_reservation(world, text_at(checked, {"metadata", "name"})));
    if (found.node.empty()) return base::bad_request(fmt::format("there is no room elsewhere: {}", found.summary));
    const bool waits = found.nodes.contains(found.node) && !found.nodes.at(found.node).empty();
    fmt::print("pod/{} would move from {} to {}{} (dry run)\n", flags.name, text_at(pod, {"spec", "nodeName"}),
               found.node, waits ? ", once there is room" : "");
    return {};
}

Status run(const Flags& flags) {
    Interrupt interrupt;
    const auto connection = TRY(open_connection(flags.server));
    link::ApiClient& server = *connection.server;
    const Json pod =
        TRY(ask_object(server, {"GET", fmt::format("/api/v1/namespaces/{}/pods/{}", connection.ns, flags.name)}));
    // It must outlive the wait for room and the wait for the replacement.
    const Json reservation = TRY(migration_of(pod, {2 * flags.timeout_s + 60, flags.pre_allocate}));
    TRY(evict(server, pod, true));
    if (flags.dry_run) return look_for_room(server, flags, pod, reservation);
    return Migration(server, interrupt, flags, pod, reservation).run();
}

}  // namespace

int migrate(std::vector<std::string> words) {
    Flags flags;
    CommandLine line(
        "Moves a pod: holds room for its replacement on another node, evicts it, and sees the replacement land there.",
        "berth migrate");
    line.option("kind", flags.kind, "pod").required().one_of({"pod", "pods", "po"});
    line.option("name", flags.name, "its name").required();
    add_server_flags(line, flags.server);
    line.option("--timeout", flags.timeout_s, "seconds to wait for room, and then for the replacement")
        .within(1, 86400);
    line.flag("--pre-allocate", flags.pre_allocate, "wait on a full node for room instead of refusing");
    line.flag("--dry-run", flags.dry_run, "say whether the pod may be moved, and where to; change nothing");
    line.example("berth migrate pod web-7d4b9-x2x8q --dry-run", "where it would go");
    if (const auto code = line.parse(std::move(words))) return *code;
    if (const auto done = run(flags); !done) {
        fmt::print(stderr, "berth migrate: {}\n", done.error().message);
        return kFailed;
    }
    return kDone;
}

}  // namespace berth::cli
