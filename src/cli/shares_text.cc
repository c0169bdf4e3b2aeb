#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/shares.h"
#include "cli/text_table.h"

namespace berth::cli {
namespace {

using share::Account;

// Sorted by name.
std::map<std::string, std::string> texts(const model::Resources& amounts) {
    std::map<std::string, std::string> out;
    amounts.for_each([&](model::ResourceId id, int64_t amount) {
        out.emplace(model::resource_name(id), model::quota_text(id, amount));
    });
    return out;
}

Json document(const model::Resources& amounts) {
    JsonObject out;
    for (const auto& [name, text] : texts(amounts)) out[name] = text;
    return out;
}

model::Resources without_zeros(const model::Resources& amounts) {
    model::Resources out;
    amounts.for_each([&](model::ResourceId id, int64_t amount) {
        if (amount != 0) out.set(id, amount);
    });
    return out;
}

// In base units: cores, bytes.
Json number(model::ResourceId id, double amount) {
    if (model::quota_amount(id, Quantity::from_value(1)) == 1000) amount /= 1000;
    const double whole = std::round(amount);
    const bool is_whole = std::abs(amount - whole) <= 1e-12 * std::max(1.0, std::abs(whole)) && std::abs(whole) < 9e15;
    return is_whole ? Json(static_cast<int64_t>(whole)) : Json(amount);
}

Json fair_of(const share::Share& share) {
    std::map<std::string, Json> sorted;
    for (const auto& [id, amount] : share.fair) sorted.emplace(model::resource_name(id), number(id, amount));
    JsonObject out;
    for (auto& [name, value] : sorted) out[name] = std::move(value);
    return out;
}

Json conditions_of(const Account& account) {
    JsonArray out;
    for (const auto& condition : account.conditions)
        out.push_back(JsonObject{
            {"type", condition.type}, {"status", "True"}, {"reason", condition.type}, {"message", condition.message}});
    return out;
}

Json consumer_document(const Account& account) {
    return JsonObject{
        {"name", account.name},
        {"parent", account.parent.empty() ? Json(nullptr) : Json(account.parent)},
        {"weight", account.weight},
        {"infinite", account.infinite},
        {"reserved", document(account.reserved)},
        {"hard", document(account.hard)},
        {"demand", document(without_zeros(account.demand))},
        {"used", document(without_zeros(account.used))},
        {"fair", fair_of(account.share)},
        {"deserved", document(account.share.deserved)},
        {"borrowed", document(account.borrowed)},
        {"lent", document(account.lent)},
        {"overused", account.overused},
        {"reclaim", document(account.reclaim)},
        {"boundBy", account.share.bound_by},
        {"conditions", conditions_of(account)},
    };
}

std::string line_of(const model::Resources& amounts) {
    std::string out;
    for (const auto& [name, text] : texts(without_zeros(amounts)))
        out += fmt::format("{}{}={}", out.empty() ? "" : " ", name, text);
    return out.empty() ? "-" : out;
}

// The resource in which it deserves, or uses, most of the cluster. # is used, . deserved and free, ! beyond it.
std::string bar(const Account& account, const model::Resources& capacity) {
    constexpr double kWidth = 20;
    double deserved = 0, used = 0, most = -1;
    capacity.for_each([&](model::ResourceId id, int64_t amount) {
        if (amount <= 0) return;
        const double whole = static_cast<double>(amount);
        const double has = static_cast<double>(account.used.get(id)) / whole;
        const double may = static_cast<double>(account.share.deserved.get(id)) / whole;
        if (std::max(has, may) <= most) return;
        most = std::max(has, may);
        deserved = may;
        used = has;
    });
    const auto cells = [&](double part) {
        return static_cast<size_t>(std::lround(std::clamp(part, 0.0, 1.0) * kWidth));
    };
    std::string out(static_cast<size_t>(kWidth), ' ');
    for (size_t i = 0; i < cells(deserved); ++i) out[i] = '.';
    for (size_t i = 0; i < cells(used); ++i) out[i] = i < cells(deserved) ? '#' : '!';
    return "[" + out + "]";
}

std::string loan_text(const share::Loan& loan) {
    return fmt::format("{} borrows {} {} {}\n", loan.to, model::quota_text(loan.resource, loan.amount),
                       model::resource_name(loan.resource),
                       loan.from.empty() ? "that nobody is guaranteed" : "from " + loan.from);
}

class Drawing {
public:
    Drawing(const share::Answer& answer, TextTable& table) : answer_(answer), table_(table) {}

    void children_of(std::string_view parent, size_t depth) {
        for (const auto& account : answer_.accounts) {
            const bool here = account.parent == parent ||
                              (parent.empty() && share::account_named(answer_.accounts, account.parent) == nullptr);
            if (!here || depth > answer_.accounts.size()) continue;
            draw(account, depth);
            children_of(account.name, depth + 1);
        }
    }

private:
    void draw(const Account& account, size_t depth) {
        std::string notes = account.overused ? "overused" : "";
        for (const auto& condition : account.conditions) notes += (notes.empty() ? "" : ", ") + condition.type;
        table_.add({std::string(depth * 2, ' ') + account.name,
                    account.infinite ? "infinite" : std::to_string(account.weight), bar(account, answer_.capacity),
                    line_of(account.reserved), line_of(account.share.deserved), line_of(account.used),
                    account.share.bound_by, notes.empty() ? "-" : notes});
    }

    const share::Answer& answer_;
    TextTable& table_;
};

}  // namespace

Json shares_document(const share::Scene& scene, const share::Answer& answer) {
    JsonArray consumers, loans, pods, victims;
    for (const auto& account : answer.accounts) consumers.push_back(consumer_document(account));
    for (const auto& loan : answer.loans) {
        loans.push_back(JsonObject{{"from", loan.from},
                                   {"to", loan.to},
                                   {"resource", model::resource_name(loan.resource)},
                                   {"amount", model::quota_text(loan.resource, loan.amount)}});
    }
    for (const auto& admission : answer.admissions) {
        const auto& pod = scene.pods[admission.pod];
        pods.push_back(JsonObject{
            {"namespace", pod.ns}, {"name", pod.name}, {"admitted", admission.admitted}, {"why", admission.why}});
    }
    for (const auto& victim : answer.victims) {
        const auto& pod = scene.pods[victim.pod];
        victims.push_back(JsonObject{{"namespace", pod.ns},
                                     {"name", pod.name},
                                     {"node", scene.nodes[pod.node].name},
                                     {"for", scene.pods[victim.claim].full_name()}});
    }
    return JsonObject{{"capacity", document(answer.capacity)},
                      {"consumers", consumers},
                      {"loans", loans},
                      {"pods", pods},
                      {"victims", victims}};
}

Result<std::string> consumer_text(const share::Scene& scene, const share::Settings& settings,
                                  const share::Answer& answer, std::string_view name) {
    const Account* account = share::account_named(answer.accounts, name);
    if (account == nullptr) return base::not_found(fmt::format("there is no consumer or namespace \"{}\"", name));
    std::string out = fmt::format("{} deserves {} and uses {}; it asks for {} and is bound by {}.\n", name,
                                  line_of(account->share.deserved), line_of(account->used), line_of(account->demand),
                                  account->share.bound_by);
    out += fmt::format("It is guaranteed {} and may have {} at most, at weight {}{}.\n", line_of(account->reserved),
                       account->hard.empty() ? "without end" : line_of(account->hard), account->weight,
                       account->parent.empty() ? "" : fmt::format(" in {}", account->parent));
    for (const auto& loan : answer.loans) {
        if (loan.to == name || loan.from == name) out += loan_text(loan);
    }
    for (const auto& condition : account->conditions)
        out += fmt::format("{}: {}.\n", condition.type, condition.message);
    const share::ScenePod* next = nullptr;
    for (const auto& victim : answer.victims) {
        const auto& pod = scene.pods[victim.pod];
        if (pod.ns == name)
            out += fmt::format("{} would go for {}.\n", pod.full_name(), scene.pods[victim.claim].full_name());
    }
    for (const uint32_t i : account->placed) {
        const auto& pod = scene.pods[i];
        if (pod.kept || pod.terminating) continue;
        if (next == nullptr || share::goes_before(pod, *next, settings)) next = &pod;
    }
    if (next != nullptr)
        out += fmt::format("If one of its pods had to go, {} would be the first.\n", next->full_name());
    return out;
}

std::string shares_text(const share::Scene& scene, const share::Answer& answer) {
    std::string out = fmt::format("CAPACITY   {}\n\n", line_of(answer.capacity));
    TextTable table({"CONSUMER", "WEIGHT", "SHARE", "RESERVED", "DESERVED", "USED", "BOUND BY", "NOTES"});
    Drawing(answer, table).children_of("", 0);
    out += table.text();
    if (!answer.loans.empty()) out += "\n";
    for (const auto& loan : answer.loans) {
        out += loan_text(loan);
    }
    size_t admitted = 0;
    for (const auto& admission : answer.admissions) admitted += admission.admitted ? 1 : 0;
    if (!answer.admissions.empty()) {
        out += fmt::format("\n{} of {} pods that wait may start.\n", admitted, answer.admissions.size());
        for (const auto& admission : answer.admissions) {
            if (!admission.admitted)
                out += fmt::format("{}: {}\n", scene.pods[admission.pod].full_name(), admission.why);
        }
    }
    if (!answer.victims.empty()) out += "\n";
    for (const auto& victim : answer.victims) {
        const auto& pod = scene.pods[victim.pod];
        out += fmt::format("{} on {} would go for {}\n", pod.full_name(), scene.nodes[pod.node].name,
                           scene.pods[victim.claim].full_name());
    }
    return out;
}

}  // namespace berth::cli
