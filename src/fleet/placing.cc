#include "fleet/placing.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::fleet {
namespace {

using base::Duration;
using base::Instant;
using model::HoldAnswer;
using model::HoldReason;
using model::HoldState;
using Do = Step::Do;

const HoldAnswer* answer_of(const Reservation& reservation, const std::string& pool) {
    for (const auto& entry : reservation.asked.entries) {
        if (entry.name == pool) return &entry.answer;
    }
    return nullptr;
}

// Room came: after a moment that differs from machine to machine, so that those who wait do not all ask at once.
Duration wake_delay(const Machine& machine, uint64_t failures) {
    return backoff(1, machine.lineage + std::to_string(failures)) / 50;
}

Step wait_for(std::optional<Instant> at) {
    Step out;
    out.next = at;
    return out;
}

// Nobody has it: again later, at once when room came, never by itself when no pool could ever have it.
Step after_refusal(const Machine& machine, const Round& round, PlacingMemory& memory, Instant now) {
    const HoldReason why = round.answer.reason;
    if (why == HoldReason::Unsatisfiable && round.answer.state == HoldState::Rejected) return {};
    const Instant soon = now + wake_delay(machine, memory.failures);
    if (!memory.retry_at) memory.retry_at = now + backoff(++memory.failures, machine.lineage);
    if (why == HoldReason::Retry && *memory.retry_at > soon) memory.retry_at = soon;
    if (*memory.retry_at > now) return wait_for(memory.retry_at);
    memory.retry_at.reset();
    return {Do::NextAttempt, "", std::string(name_of(why))};
}

// The hold of its pool has said that it waits, and its lease has not passed since, by our own clock.
bool waits_for(const HoldAnswer* answer, PlacingMemory& memory, Instant now) {
    if (answer == nullptr || answer->state != HoldState::Accepted || !answer->committed) return false;
    if (!memory.committed_at) memory.committed_at = now;
    return !answer->lease || *answer->lease - (now - *memory.committed_at) > kHopMargin;
}

Step without_pool(const Machine& machine, const Reservation* reservation, const Round& round, PlacingMemory& memory,
                  Instant now) {
    // The pool of an earlier attempt is not done with it: until then it might be there.
    if (machine.finalized) return {};
    if (reservation == nullptr) return {Do::Reserve};
    const bool older = reservation->ask.attempt < machine.attempt;
    if (older && !reservation->brokered && !reservation->meta.deleted) return {Do::Release};
    if (older || reservation->meta.deleted || !round.decided) return wait_for(round.next);
    if (round.answer.state == HoldState::Accepted || round.answer.state == HoldState::Bound) {
        memory.retry_at.reset();
        const std::string& commit = reservation->asked.commit;
        if (commit.empty()) return {Do::Commit, round.pool};
        const HoldAnswer* answer = answer_of(*reservation, commit);
        const bool bound = answer != nullptr && answer->state == HoldState::Bound;
        if (bound || waits_for(answer, memory, now)) return {Do::SetPool, commit};
        const bool passed = memory.committed_at && !reservation->brokered;
        return passed ? after_refusal(machine, round, memory, now) : Step{};
    }
    if (reservation->brokered) return {};
    return after_refusal(machine, round, memory, now);
}

// What it was promised is gone before it came: it goes elsewhere, once nothing of it can arrive there any more.
Step after_loss(const Machine& machine, const Reservation& reservation, PlacingMemory& memory, Instant now) {
    if (!memory.lost_at) memory.lost_at = now;
    // Its pool has said so itself; or nobody says anything there any more.
    const HoldAnswer* answer = answer_of(reservation, machine.pool);
    const bool told = !memory.pool_gone_at && answer != nullptr && answer->state != HoldState::Accepted;
    const Instant end = *memory.lost_at + kHopMargin + (told ? Duration::zero() : kCommittedLease);
    if (now < end) return wait_for(end);
    if (!reservation.brokered && !machine.brokered) return {Do::ClearPool, machine.pool, "Lost"};
    if (memory.pool_silent && !told) return {Do::TellLost};
    return {};
}

Step with_pool(const Machine& machine, const Reservation* reservation, const Round& round, PlacingMemory& memory,
               Instant now) {
    if (reservation == nullptr || reservation->meta.deleted) return {};
    // A poollet marks a Machine before it brings it down: without that mark it was not brought.
    const bool stranded = memory.pool_silent && !machine.finalized;
    const bool brokered = reservation->brokered;  // the layer above decides, and hears what this one knows
    if (brokered && !stranded) {
        memory.lost_at.reset();
        return {};
    }
    const bool bound = round.answer.state == HoldState::Bound;
    const bool by_hand = reservation->asked.commit != machine.pool;
    // A layer below has an id for it at once; that it is somewhere, its state says.
    const bool there = !machine.state.empty() && machine.state != "Pending";
    if (bound || by_hand || there) return brokered ? Step{} : Step{Do::Release};
    const HoldAnswer* answer = answer_of(*reservation, machine.pool);
    const bool lost = answer == nullptr || memory.pool_gone_at || stranded ||
                      (answer->state != HoldState::Accepted && answer->state != HoldState::Bound);
    if (lost) return after_loss(machine, *reservation, memory, now);
    memory.lost_at.reset();
    return {};
}

}  // namespace

Step next_step(const Machine& machine, const Reservation* reservation, const Round& round, PlacingMemory& memory,
               Instant now) {
    if (machine.meta.deleted) {
        const bool ours = reservation != nullptr && !reservation->brokered && !reservation->meta.deleted;
        if (ours) return {Do::Release};
        if (!machine.finalized || !memory.pool_gone_at) return {};
        const Instant end = *memory.pool_gone_at + kCommittedLease + kHopMargin;
        return now < end ? wait_for(end) : Step{Do::LetGo};
    }
    return machine.pool.empty() ? without_pool(machine, reservation, round, memory, now)
                                : with_pool(machine, reservation, round, memory, now);
}

}  // namespace berth::fleet
