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

// Ends and waiting rooms are looked at this often when nothing happens, and changes are gathered for so long.
constexpr base::Duration kIdle = std::chrono::seconds(1);
constexpr base::Duration kGather = std::chrono::milliseconds(20);
constexpr std::string_view kReservations = "/apis/scheduling.koordinator.sh/v1alpha1/reservations";

}  // namespace

ReservationsRun::ReservationsRun(std::unique_ptr<link::Server> server, base::Duration gc, const base::Clock& clock)
    : traffic_(std::move(server)), gc_(gc), clock_(clock), recorder_(traffic_.server(), "berth-reservations") {
    traffic_.follow("Node", {"", "v1", "nodes"});
    traffic_.follow("Pod", {"", "v1", "pods"});
    traffic_.follow("Reservation", {"scheduling.koordinator.sh", "v1alpha1", "reservations"});
    thread_ = std::thread([this] { run(); });
}

ReservationsRun::~ReservationsRun() {
    traffic_.stop();
    thread_.join();
}

void ReservationsRun::run() {
    while (true) {
        const bool any = traffic_.poll([this](const auto& kind, const auto& event) { apply(kind, event); });
        take_answers();
        if (traffic_.stopping() && traffic_.under_way() == 0) return;
        if (traffic_.synced() && !traffic_.stopping()) reconcile();
        traffic_.wait(any ? kGather : kIdle);
    }
}

void ReservationsRun::apply(const std::string& kind, const link::FeedEvent& event) {
    const bool gone = event.type == link::FeedEvent::Type::Gone;
    // A pod that is not bound is nobody's owner, and need not be read.
    if (kind == "Pod" && !gone && event.text->find("\"nodeName\"") == std::string::npos) return;
    thread_local base::JsonParser parser;  // its buffers are large
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
    const uint64_t seen = traffic_.seen("Reservation");
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
    traffic_.send(std::move(request), uid);
}

// A refused write is decided anew from what is stored by then.
void ReservationsRun::take_answers() {
    traffic_.answers([this](const std::string& uid, const Result<link::Reply>& reply) {
        if (reply && reply->ok() && reply->revision != 0) {
            awaited_[uid] = reply->revision;
        } else {
            awaited_.erase(uid);
        }
    });
}

}  // namespace berth::app
