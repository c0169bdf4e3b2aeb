#include "app/reservations_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/carry_out.h"
#include "base/json.h"
#include "base/json_view.h"
#include "base/log.h"
#include "control/reservations.h"
#include "model/node.h"
#include "model/pod.h"
#include "model/reader.h"

namespace berth::app {
namespace {

constexpr size_t kEventsPerPoll = 2048;
// Ends and waiting rooms are looked at this often when nothing happens, and changes are gathered for so long.
constexpr base::Duration kIdle = std::chrono::seconds(1);
constexpr base::Duration kGather = std::chrono::milliseconds(20);
constexpr std::string_view kReservations = "/apis/scheduling.koordinator.sh/v1alpha1/reservations";

}  // namespace

ReservationsRun::ReservationsRun(std::unique_ptr<link::Server> server, base::Duration gc, const base::Clock& clock)
    : server_(std::move(server)), gc_(gc), clock_(clock), recorder_(*server_, "berth-reservations") {
    const auto follow = [&](const char* kind, const link::Resource& resource) {
        followed_.push_back({kind, server_->follow(resource, [this] { bell_.ring(); })});
    };
    follow("Node", {"", "v1", "nodes"});
    follow("Pod", {"", "v1", "pods"});
    follow("Reservation", {"scheduling.koordinator.sh", "v1alpha1", "reservations"});
    thread_ = std::thread([this] { run(); });
}

ReservationsRun::~ReservationsRun() {
    stop_ = true;
    bell_.ring();
    thread_.join();
}

void ReservationsRun::run() {
    while (true) {
        const bool any = poll_feeds();
        take_answers();
        if (stop_ && under_way_ == 0) return;
        const bool synced =
            std::all_of(followed_.begin(), followed_.end(), [](const Followed& followed) { return followed.synced; });
        if (synced && !stop_) reconcile();
        bell_.wait(any ? kGather : kIdle);
    }
}

bool ReservationsRun::poll_feeds() {
    bool any = false;
    for (auto& followed : followed_) {
        for (const auto& event : followed.feed->poll(kEventsPerPoll)) {
            any = true;
            followed.seen = std::max(followed.seen, event.revision);
            if (event.type == link::FeedEvent::Type::Synced) {
                followed.synced = true;
            } else {
                apply(followed.kind, event);
            }
        }
    }
    return any;
}

void ReservationsRun::apply(const std::string& kind, const link::FeedEvent& event) {
    const bool gone = event.type == link::FeedEvent::Type::Gone;
    base::JsonParser parser;
    const auto view = parser.parse(*event.text);
    if (!view) return base::log_error("Unreadable object", {{"error", view.error()}});
    const auto use = [&](auto read, auto put, auto remove) {
        std::string trouble;
        if (gone) return remove(model::read_meta(model::Reader(*view, trouble)));
        auto object = read(*view);
        if (!object) return base::log_error("Unreadable object", {{"error", object.error()}});
        object->meta.revision = event.revision;
        put(std::move(*object));
    };
    if (kind == "Node") {
        use(
            model::read_node,
            [&](model::Node node) { ledger_.put(std::make_shared<const model::Node>(std::move(node))); },
            [&](const model::Meta& meta) { ledger_.remove_node(meta.name); });
    } else if (kind == "Pod") {
        use(
            model::read_pod, [&](const model::Pod& pod) { ledger_.put(pod); },
            [&](const model::Meta& meta) { ledger_.remove_pod(meta.uid); });
    } else {
        use(
            model::read_reservation,
            [&](model::Reservation object) {
                ledger_.put(std::make_shared<const model::Reservation>(std::move(object)));
            },
            [&](const model::Meta& meta) { ledger_.remove_reservation(meta.uid); });
    }
}

void ReservationsRun::reconcile() {
    const uint64_t seen = followed_.back().seen;
    absl::erase_if(awaited_, [&](const auto& entry) { return entry.second != 0 && entry.second <= seen; });
    carry_out(control::reconcile_reservations({ledger_, clock_.wall(), clock_.now(), gc_}, ages_));
}

void ReservationsRun::carry_out(const control::Writes& writes) {
    for (const auto& write : writes.statuses) {
        if (awaited_.contains(write.target.uid)) continue;
        send(write.target.uid,
             status_request(write.target.name, write.target.uid, write.target.revision, write.status));
        for (const auto& event : writes.events) {
            if (event.uid != write.target.uid) continue;
            const link::Subject subject{"scheduling.koordinator.sh/v1alpha1", event.kind, event.ns, event.name,
                                        event.uid};
            if (event.warning) {
                recorder_.warning(subject, event.reason, event.message, clock_.wall());
            } else {
                recorder_.normal(subject, event.reason, event.message, clock_.wall());
            }
        }
    }
    for (const auto& target : writes.deletions) {
        if (awaited_.contains(target.uid)) continue;
        const Json options(JsonObject{
            {"kind", "DeleteOptions"}, {"apiVersion", "v1"}, {"preconditions", JsonObject{{"uid", target.uid}}}});
        send(target.uid, {"DELETE", fmt::format("{}/{}", kReservations, target.name), base::to_text(options)});
    }
}

void ReservationsRun::send(const std::string& uid, link::Request request) {
    awaited_[uid] = 0;
    ++under_way_;
    server_->send(std::move(request), [this, uid](Result<link::Reply> reply) {
        {
            const std::lock_guard lock(answers_mutex_);
            answers_.push_back({uid, std::move(reply)});
        }
        bell_.ring();
    });
}

// A refused write is decided anew from what is stored by then.
void ReservationsRun::take_answers() {
    std::vector<Answer> answers;
    {
        const std::lock_guard lock(answers_mutex_);
        answers.swap(answers_);
    }
    for (const auto& [uid, reply] : answers) {
        --under_way_;
        if (reply && reply->ok() && reply->revision != 0) {
            awaited_[uid] = reply->revision;
        } else {
            awaited_.erase(uid);
        }
    }
}

}  // namespace berth::app
