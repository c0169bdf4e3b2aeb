#include "sched/attempt.h"

namespace berth::sched {

void Sources::take_back(std::string_view pod) {
    const auto index = ledger.find_pod(pod);
    if (index != ledger::kNone) {
        leaves(index);
        freed = true;
    }
    ledger.remove_pod(pod);  // it may be known as one that has ended
}

void Sources::leaves(ledger::PodIndex pod) {
    ledger.pod(pod).each_charge(
        [&](ReservationIndex to, const model::Resources&) { claims.insert(ledger.reservation(to).object->meta.uid); });
}

Attempt::Attempt(Attempt&& other) noexcept
    : pod(std::move(other.pod)),
      refusal(std::move(other.refusal)),
      telling(other.telling),
      turned(other.turned),
      roomless_since(other.roomless_since),
      from_(std::exchange(other.from_, nullptr)),
      stage_(std::exchange(other.stage_, {})),
      demand_(std::exchange(other.demand_, {})),
      nomination_(std::move(other.nomination_)),
      placed_(other.placed_),
      nominated_(other.nominated_),
      evicts_(other.evicts_) {}

Attempt::~Attempt() {
    if (!from_) return;
    give_back();
    from_->freed = end_nomination() || from_->freed;
    if (evicts_) from_->evictions.forget(pod.meta.uid);
}

std::vector<EvictPod> Attempt::take_evictions() {
    std::vector<EvictPod> evictions;
    if (auto* asked = demands<HoldAsked>()) evictions = std::move(asked->evictions);
    if (auto* asked = demands<NominationAsked>()) evictions = std::move(asked->evictions);
    if (demands<HoldAsked>() || demands<NominationAsked>()) demand_ = {};
    return evictions;
}

void Attempt::place(Row row, const ledger::Charges& charges, ledger::WhichPtr which) {
    from_->ledger.assume(pod, row, charges, std::move(which));
    placed_ = true;
    if (!std::exchange(nominated_, false)) return;
    from_->nominated.remove(pod.meta.uid);
    from_->freed = true;
}

// What of the volumes' steps took effect shows in the feed, and serves the next try.
void Attempt::give_back() {
    if (const auto* volumes = at<VolumesFirst>()) from_->ledger.volumes().give_back(volumes->steps);
    stage_ = {};
    if (std::exchange(placed_, false)) from_->take_back(pod.meta.uid);
}

std::shared_ptr<const model::Pod> Attempt::nominate(std::string_view node, std::vector<std::string> victims,
                                                    PromisedPtr promised) {
    nomination_.reset(new Nomination{std::string(node), std::move(victims), std::move(promised)});
    auto kept = std::make_shared<const model::Pod>(pod);
    from_->nominated.put(kept, node, nomination_->victims, nomination_->promised);
    nominated_ = true;
    return kept;
}

bool Attempt::nominate(std::string_view node) {
    const bool known = nomination_ && nomination_->node == node;
    if (known) {
        nominate(node, nomination_->victims, nomination_->promised);
    } else {
        forget_nomination();
        nominate(node, {}, nullptr);
    }
    return known;
}

void Attempt::forget_nomination() {
    nomination_.reset();
    if (demands<NominationAsked>()) demand_ = {};
}

bool Attempt::end_nomination() {
    forget_nomination();
    if (!std::exchange(nominated_, false)) return false;
    from_->nominated.remove(pod.meta.uid);
    return true;
}

void Attempt::evict(const std::string& victim) {
    from_->evictions.begin(pod.meta.uid, victim);
    evicts_ = true;
}

}  // namespace berth::sched
