// The half of the scheduler that asks extenders. A question is a plan, its answer an event: while it is under way the
// cluster may change, so the filters run again before anything is decided.
#include <fmt/format.h>

#include <algorithm>

#include "sched/scheduler.h"

namespace berth::sched {
namespace {

// An extender's ten points are as much as a scorer's hundred.
constexpr int64_t kPerPoint = kMaxScore / 10;

}  // namespace

bool Scheduler::consults(const model::PodSpec& spec) const {
    return std::any_of(options_.extenders.begin(), options_.extenders.end(), [&](const Extender& extender) {
        return (!extender.filter_verb.empty() || !extender.prioritize_verb.empty()) && extender.cares_for(spec);
    });
}

// Begins with every node that the filters leave.
void Scheduler::consult(Attempt& attempt, const Ask& ask, const Profile& profile, base::Instant now,
                        std::vector<Plan>& plans) {
    const Strikes strikes = filter(ask, ledger_, profile, nominated_, 0, static_cast<Row>(ledger_.rows()));
    const std::vector<Row> open = strikes.open_rows();
    if (open.empty()) return refuse(attempt, ask, strikes, now, plans);
    Consultation begun;
    begun.serial = ++serials_;
    for (const Row row : open) begun.nodes.emplace_back(ledger_.name(row));
    std::sort(begun.nodes.begin(), begun.nodes.end());
    attempt.enter(std::move(begun));
    ask_next(attempt, now, plans);
}

// Filters are asked one after the other, each about what the one before left; then all who prioritize at once.
void Scheduler::ask_next(Attempt& attempt, base::Instant now, std::vector<Plan>& plans) {
    const model::Pod& pod = attempt.pod;
    Consultation& open = *attempt.at<Consultation>();
    const auto question = [&](size_t extender, AskExtender::Verb verb) {
        plans.emplace_back(
            AskExtender{pod.meta.uid, pod.meta.ns, pod.meta.name, open.serial, extender, verb, open.nodes, {}, 0});
    };
    const auto& extenders = options_.extenders;
    while (open.filtered < extenders.size() && !open.nodes.empty()) {
        const size_t index = open.filtered++;
        if (extenders[index].filter_verb.empty() || !extenders[index].cares_for(*pod.spec)) continue;
        return question(index, AskExtender::Verb::Filter);
    }
    if (!open.prioritized && open.nodes.size() > 1) {
        for (size_t i = 0; i < extenders.size(); ++i) {
            if (extenders[i].prioritize_verb.empty() || !extenders[i].cares_for(*pod.spec)) continue;
            question(i, AskExtender::Verb::Prioritize);
            ++open.unanswered;
        }
    }
    open.prioritized = true;
    if (open.unanswered == 0) conclude(attempt, now, plans);
}

std::vector<Plan> Scheduler::answered(const AskExtender& question, const Result<std::string>& body, base::Instant now) {
    if (question.verb == AskExtender::Verb::Preempt) return preemption_answered(question, body, now);
    std::vector<Plan> plans;
    Attempt* attempt = find(question.pod);
    Consultation* open = attempt ? attempt->at<Consultation>() : nullptr;
    if (!open || open->serial != question.serial) return plans;
    const Extender& extender = options_.extenders[question.extender];
    if (question.verb == AskExtender::Verb::Filter) {
        const auto narrowed = narrow(*open, body);
        if (narrowed || extender.ignorable) {
            ask_next(*attempt, now, plans);
        } else {
            fail(*attempt, question, narrowed.error(), now, plans);
        }
        return plans;
    }
    // Without its points the others decide.
    if (const auto points = body ? read_prioritize_reply(*body) : body.error(); points) {
        const int64_t weight = extender.weight * kPerPoint;
        for (const auto& [node, score] : *points) open->scores[node] += score * weight;
    }
    if (--open->unanswered == 0) conclude(*attempt, now, plans);
    return plans;
}

Status Scheduler::narrow(Consultation& open, const Result<std::string>& body) {
    if (!body) return body.error();
    const FilterReply reply = TRY(read_filter_reply(*body));
    std::erase_if(open.nodes, [&](const std::string& node) {
        return std::find(reply.nodes.begin(), reply.nodes.end(), node) == reply.nodes.end();
    });
    for (const auto& [node, refusal] : reply.refused) open.refused[node] = refusal;
    return {};
}

void Scheduler::fail(Attempt& attempt, const AskExtender& question, const Error& error, base::Instant now,
                     std::vector<Plan>& plans) {
    if (attempt.at<Consultation>()) attempt.leave<Consultation>();
    fail(attempt, fmt::format("extender {}: {}", options_.extenders[question.extender].url, error.message), now, plans);
}

// The filters run again over the table as it is by now; rows that no extender passed are closed.
void Scheduler::conclude(Attempt& attempt, base::Instant now, std::vector<Plan>& plans) {
    const Consultation closed = attempt.leave<Consultation>();
    Ask ask = ask_for(attempt.pod, ledger_, &looks_);
    ask.shares = shares_for(attempt);
    const Profile& profile = profiles_.find(ask.spec->scheduler_name)->second;
    Strikes strikes = filter(ask, ledger_, profile, nominated_, 0, static_cast<Row>(ledger_.rows()));
    std::vector<int64_t> points(ledger_.rows());
    for (const Row row : strikes.open_rows()) {
        const std::string name(ledger_.name(row));
        if (std::binary_search(closed.nodes.begin(), closed.nodes.end(), name)) {
            const auto score = closed.scores.find(name);
            points[row] = score == closed.scores.end() ? 0 : score->second;
            continue;
        }
        const auto said = closed.refused.find(name);
        const bool given = said != closed.refused.end() && !said->second.reason.empty();
        const Refusal refusal{PluginId::Extenders,
                              {given ? said->second.reason : "node(s) were not passed by an extender"},
                              said != closed.refused.end() && said->second.unresolvable};
        strikes.overrule(row, &refusal);
    }
    Decision decision = decided(ask, ledger_, nominated_, weigh(ask, ledger_, profile, std::move(strikes), points));
    if (!decision.verdict.fault.empty()) return fail(attempt, std::move(decision.verdict.fault), now, plans);
    if (decision.verdict.chosen == ledger::kNoRow) return refuse(attempt, ask, decision.verdict.strikes, now, plans);
    bind(attempt, ask, decision, now, plans);
}

// The one that binds the pod in the scheduler's place. What a reservation pays for only the scheduler can bind, since
// the link is part of the Binding.
std::optional<size_t> Scheduler::binder_for(const model::PodSpec& spec, bool charged) const {
    for (size_t i = 0; i < options_.extenders.size() && !charged; ++i) {
        if (!options_.extenders[i].bind_verb.empty() && options_.extenders[i].cares_for(spec)) return i;
    }
    return std::nullopt;
}

// ---- preemption

// Asks the next extender that wants a say about victims; false when there is none left.
bool Scheduler::ask_about_victims(Attempt& attempt, VictimsAsked asked, std::vector<Plan>& plans) {
    const auto& extenders = options_.extenders;
    const model::Pod& pod = attempt.pod;
    for (; asked.next < extenders.size(); ++asked.next) {
        if (extenders[asked.next].preempt_verb.empty() || !extenders[asked.next].cares_for(*pod.spec)) continue;
        AskExtender question{pod.meta.uid, pod.meta.ns,  pod.meta.name,
                             ++serials_,   asked.next++, AskExtender::Verb::Preempt,
                             {asked.node}, {},           asked.violations};
        for (const auto& victim : asked.evictions) question.victims.push_back(victim.uid);
        asked.serial = question.serial;
        plans.emplace_back(std::move(question));
        attempt.demand(std::move(asked));
        return true;
    }
    return false;
}

// An extender may spare victims or rule the node out; it cannot add to them.
std::vector<Plan> Scheduler::preemption_answered(const AskExtender& question, const Result<std::string>& body,
                                                 base::Instant now) {
    std::vector<Plan> plans;
    Attempt* attempt = find(question.pod);
    VictimsAsked* open = attempt ? attempt->demands<VictimsAsked>() : nullptr;
    if (!open || open->serial != question.serial) return plans;
    VictimsAsked asked = std::move(*open);
    attempt->demand_nothing();
    if (attempt->placed()) return plans;
    const auto reply = body ? read_preempt_reply(*body) : body.error();
    if (!reply && !options_.extenders[question.extender].ignorable) {
        fail(*attempt, question, reply.error(), now, plans);
        return plans;
    }
    if (reply) {
        const auto node = reply->find(asked.node);
        if (node == reply->end()) return plans;
        std::erase_if(asked.evictions, [&](const EvictPod& victim) {
            return std::find(node->second.begin(), node->second.end(), victim.uid) == node->second.end();
        });
    }
    const Ask ask = ask_for(attempt->pod, ledger_, &looks_);
    if (ask_about_victims(*attempt, asked, plans) || ledger_.row_of(asked.node) == ledger::kNoRow) return plans;
    tell(*attempt, attempt->refusal, "Unschedulable", asked.node, plans);
    for (auto& plan : take_room(*attempt, ask, asked.node, std::move(asked.evictions), now)) {
        plans.push_back(std::move(plan));
    }
    return plans;
}

}  // namespace berth::sched
