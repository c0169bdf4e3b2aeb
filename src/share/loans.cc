#include <algorithm>
#include <map>

#include "base/int128.h"
#include "base/saturating.h"
#include "share/answer.h"

// borrowed = max(0, deserved - reserved); lent = max(0, reserved - deserved), as far as others borrow it. What a
// borrower has comes from the lenders in proportion to what they lend, the rest from nobody's guarantee. E.g. A lends 4
// and B borrows 10: 4 from A, 6 from "". Nobody lends more than lendingLimit. What an area is guaranteed beyond its
// children's guarantees it lends itself.
namespace berth::share {
namespace {

struct Party {
    Account* account;
    int64_t amount;
};

// Parts of `total` in proportion to the parties' amounts: rounded down, then one unit each to the first.
std::vector<int64_t> split(const std::vector<Party>& parties, int64_t total) {
    int128 sum = 0;
    for (const auto& party : parties) sum += party.amount;
    std::vector<int64_t> parts;
    int64_t left = total;
    for (const auto& party : parties) {
        parts.push_back(sum == 0 ? 0 : static_cast<int64_t>(static_cast<int128>(total) * party.amount / sum));
        left -= parts.back();
    }
    for (size_t i = 0; i < parts.size() && left > 0; ++i) {
        if (parts[i] == parties[i].amount) continue;
        ++parts[i];
        --left;
    }
    return parts;
}

// Of an idle guarantee, what others may have.
int64_t idle_of(const Account& account, ResourceId id) {
    const int64_t idle = account.reserved.get(id) - account.share.deserved.get(id);
    return std::max<int64_t>(0, std::min(idle, account.lending_limit.get(id, INT64_MAX)));
}

int64_t total_of(const std::vector<Party>& parties) {
    int64_t total = 0;
    for (const auto& party : parties) total = base::saturating_add(total, party.amount);
    return total;
}

// What children do not lend of an area's idle guarantee, by its name.
using Areas = std::map<std::string_view, int64_t>;

void find_parties(std::vector<Account>& accounts, Areas& areas, ResourceId id, std::vector<Party>& lenders,
                  std::vector<Party>& borrowers) {
    for (auto& [name, own] : areas) {
        const Account* area = account_named(std::as_const(accounts), name);
        own = area == nullptr ? 0 : idle_of(*area, id);
    }
    for (const auto& account : accounts) {
        const auto area = areas.find(account.parent);
        if (area != areas.end()) area->second -= std::min(area->second, idle_of(account, id));
    }
    for (auto& account : accounts) {
        if (account.infinite) continue;
        const int64_t above = account.share.deserved.get(id) - account.reserved.get(id);
        if (above > 0) account.borrowed.set(id, above);
        const auto area = areas.find(account.name);
        const bool is_area = area != areas.end();  // its children's loans are told
        if (above > 0 && !is_area) borrowers.push_back({&account, above});
        const int64_t idle = is_area ? area->second : idle_of(account, id);
        if (idle > 0) lenders.push_back({&account, idle});
    }
}

// What an area's children lend to others is lent by the area too, as far as it has less than its guarantee.
void tell_lent(std::vector<Account>& accounts, const Above& ways, const std::vector<Party>& lenders, ResourceId id) {
    std::vector<int64_t> below(accounts.size(), 0);
    for (const auto& lender : lenders) {
        if (lender.amount > 0) lender.account->lent.set(id, lender.amount);
    }
    for (const uint32_t i : ways.upwards) {
        Account& account = accounts[i];
        int64_t all = base::saturating_add(below[i], account.lent.get(id));
        if (ways.parent[i] != kNobody) {
            int64_t& above = below[ways.parent[i]];
            above = base::saturating_add(above, all);
        }
        if (below[i] > 0) all = std::min(all, idle_of(account, id));
        if (all > 0) account.lent.set(id, all);
    }
}

void lend_one(std::vector<Account>& accounts, const Above& ways, Areas& areas, ResourceId id,
              std::vector<Loan>& loans) {
    std::vector<Party> lenders, borrowers;
    find_parties(accounts, areas, id, lenders, borrowers);
    const int64_t lent = std::min(total_of(lenders), total_of(borrowers));
    const auto by_lender = split(lenders, lent);
    for (size_t i = 0; i < lenders.size(); ++i) lenders[i].amount = by_lender[i];
    tell_lent(accounts, ways, lenders, id);
    const auto by_borrower = split(borrowers, lent);
    for (size_t i = 0; i < borrowers.size(); ++i) {
        const auto parts = split(lenders, by_borrower[i]);
        for (size_t k = 0; k < lenders.size(); ++k) {
            if (parts[k] > 0) loans.push_back({lenders[k].account->name, borrowers[i].account->name, id, parts[k]});
            lenders[k].amount -= parts[k];
        }
        const int64_t rest = borrowers[i].amount - by_borrower[i];
        if (rest > 0) loans.push_back({"", borrowers[i].account->name, id, rest});
    }
}

}  // namespace

std::vector<Loan> lend(std::vector<Account>& accounts) {
    Areas areas;
    std::map<std::string_view, ResourceId> resources;
    for (const auto& account : accounts) {
        if (!account.parent.empty()) areas.emplace(account.parent, 0);
        const auto meet = [&](ResourceId id, int64_t) { resources.emplace(model::resource_name(id), id); };
        account.share.deserved.for_each(meet);
        account.reserved.for_each(meet);
    }
    std::vector<Loan> loans;
    const Above ways = above(names_of(accounts));
    for (const auto& [name, id] : resources) lend_one(accounts, ways, areas, id, loans);
    std::sort(loans.begin(), loans.end(), [](const Loan& a, const Loan& b) {
        return std::tuple(std::string_view(a.to), model::resource_name(a.resource), std::string_view(a.from)) <
               std::tuple(std::string_view(b.to), model::resource_name(b.resource), std::string_view(b.from));
    });
    return loans;
}

}  // namespace berth::share
