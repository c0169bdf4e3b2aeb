#include "share/answer.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::share {
namespace {

uint64_t drawn(uint64_t seed, std::string_view uid) {
    uint64_t hash = seed ^ 0xcbf29ce484222325ULL;
    for (const char c : uid) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9ULL;
    return hash ^ (hash >> 31);
}

// What an area has and asks for is what those below it have and ask for.
void add_up_areas(std::vector<Account>& accounts) {
    const Above ways = above(names_of(accounts));
    for (const uint32_t i : ways.upwards) {
        Account& account = accounts[i];
        account.used.add(account.below_used);
        account.demand.add(account.below_demand);
        if (ways.parent[i] == kNobody) continue;
        Account& area = accounts[ways.parent[i]];
        area.below_used.add(account.used);
        area.below_demand.add(account.demand);
    }
}

void judge(Account& account) {
    account.used.for_each([&](ResourceId id, int64_t amount) {
        if (model::is_storage(model::resource_name(id))) return;  // never taken back
        if (!account.infinite && amount > account.share.deserved.get(id)) account.overused = true;
    });
    if (account.share.scaled)
        account.conditions.push_back({"ReservationScaled", "the cluster cannot hold all guarantees; each was shrunk"});
    if (account.cut_by_hard && account.share.bound_by == "demand") account.share.bound_by = "hard";
}

void tell_unplaceable(const Scene& scene, Account& account) {
    if (account.unplaceable.empty()) return;
    account.conditions.push_back(
        {"DemandUnschedulable", fmt::format("{} of its pods fit no node, {} the first", account.unplaceable.size(),
                                            scene.pods[account.unplaceable.front()].full_name())});
}

}  // namespace

bool goes_before(const ScenePod& a, const ScenePod& b, const Settings& settings) {
    if (a.started != b.started) return !a.started;
    if (a.priority != b.priority) return a.priority < b.priority;
    if (settings.random_victims) {
        const uint64_t first = drawn(*settings.random_victims, a.uid), second = drawn(*settings.random_victims, b.uid);
        if (first != second) return first < second;
    }
    if (a.deletion_cost != b.deletion_cost) return a.deletion_cost < b.deletion_cost;
    if (a.created != b.created) return a.created > b.created;
    return a.uid < b.uid;
}

Answer answer(const Scene& scene, const Settings& settings) {
    Answer out;
    out.capacity = capacity_of(scene, settings);
    out.accounts = accounts_of(scene, settings, out.capacity);
    out.problem = problem_of(scene, settings, out.capacity, out.accounts);
    auto shares = solve(out.problem);
    for (size_t i = 0; i < shares.size(); ++i) out.accounts[i].share = std::move(shares[i]);
    add_up_areas(out.accounts);
    for (auto& account : out.accounts) {
        judge(account);
        tell_unplaceable(scene, account);
    }
    out.loans = lend(out.accounts);
    out.admissions = admit(scene, out.accounts);
    auto reclaimed = reclaim(scene, settings, out.capacity, out.admissions, out.accounts);
    out.victims = std::move(reclaimed.victims);
    out.rooms = std::move(reclaimed.rooms);
    return out;
}

}  // namespace berth::share
