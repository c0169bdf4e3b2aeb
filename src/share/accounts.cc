#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "share/answer.h"
#include "share/leaves.h"
#include "share/portions.h"

// Capacity, and what every consumer has, asks for and may have.
namespace berth::share {
namespace {

// Allocatable of nodes that are there; a cordoned one counts what is used on it.
Resources node_capacity(const Scene& scene) {
    std::vector<Resources> used(scene.nodes.size());
    for (const auto& pod : scene.pods) {
        if (pod.placed && pod.node != kNowhere) used[pod.node].add(pod.size);
    }
    Resources total;
    for (size_t i = 0; i < scene.nodes.size(); ++i) {
        const SceneNode& node = scene.nodes[i];
        node.allocatable.for_each([&](ResourceId id, int64_t amount) {
            if (id == model::kPods) return;
            const int64_t counts = node.cordoned ? std::min(amount, used[i].get(id)) : amount;
            total.add(id, node.lost ? 0 : std::max<int64_t>(0, counts));
        });
    }
    return total;
}

// The smallest unscoped quota of each namespace and key.
std::map<std::string_view, Resources> smallest_quotas(const Scene& scene) {
    std::map<std::string_view, Resources> out;
    for (const auto& quota : scene.quotas) {
        if (!quota.scoped) heed(quota, out[quota.meta.ns]);
    }
    return out;
}

std::vector<const model::Consumer*> consumers_of(const Scene& scene) {
    std::vector<const model::Consumer*> out;
    for (const auto& consumer : scene.consumers) out.push_back(&consumer);
    return out;
}

void heed_quota(Account& account, const Resources& quota) {
    quota.for_each([&](ResourceId id, int64_t amount) {
        const int64_t hard = account.hard.get(id, INT64_MAX);
        if (account.hard.has(id) && hard > amount) {
            account.conditions.push_back(
                {"HardExceedsQuota", fmt::format("hard {} {} is more than the quota's {}", model::resource_name(id),
                                                 model::quota_text(id, hard), model::quota_text(id, amount))});
        }
        account.hard.set(id, std::min(hard, amount));
    });
}

void say_what_is_odd(Account& account, const model::Consumer& consumer, const Portions& portions, bool has_namespace,
                     bool has_children) {
    if (!consumer.parent.empty() && portions.find(consumer.parent) == nullptr) {
        account.conditions.push_back(
            {"ParentNotFound",
             fmt::format("parent \"{}\" does not exist; it counts as one of the cluster", consumer.parent)});
    } else if (portions.circular(consumer.meta.name)) {
        account.conditions.push_back({"ParentCycle", "its parents form a circle; it counts as one of the cluster"});
    }
    if (!has_namespace && !has_children)
        account.conditions.push_back(
            {"NamespaceNotFound", "there is no namespace of this name, so it asks for nothing"});
    account.reserved.for_each([&](ResourceId id, int64_t amount) {
        if (!account.hard.has(id) || amount <= account.hard.get(id)) return;
        account.conditions.push_back(
            {"ReservedExceedsHard",
             fmt::format("reserved {} {} is more than hard {}", model::resource_name(id), model::quota_text(id, amount),
                         model::quota_text(id, account.hard.get(id)))});
    });
}

void add_used(const Scene& scene, std::vector<Account>& accounts) {
    for (uint32_t i = 0; i < scene.pods.size(); ++i) {
        const ScenePod& pod = scene.pods[i];
        if (!pod.placed) continue;
        Account& account = *account_named(accounts, pod.ns);
        account.used.add(pod.size);
        if (pod.terminating) account.releasing.add(pod.size);
        account.placed.push_back(i);
        ++account.pods;
    }
    for (const auto& hold : scene.holds) {
        if (Account* account = hold.ns.empty() ? nullptr : account_named(accounts, hold.ns))
            account->used.add(hold.amount);
    }
    for (const auto& claim : scene.claims) {
        if (claim.bound) account_named(accounts, claim.ns)->used.add(claim.size);
    }
    for (auto& account : accounts) account.demand = account.used;
}

bool breaks_hard(const Account& account, const Resources& demand, const Resources& more, int64_t pods) {
    bool breaks = false;
    more.for_each([&](ResourceId id, int64_t amount) {
        breaks = breaks || (account.hard.has(id) && amount > 0 &&
                            base::saturating_add(demand.get(id), amount) > account.hard.get(id));
    });
    for (const auto* name : {"pods", "count/pods"}) {
        const ResourceId id = *model::intern_resource(name);
        breaks = breaks || (account.hard.has(id) && pods > account.hard.get(id));
    }
    return breaks;
}

// Those that wait, in the order of the queue, as far as they do not break hard and fit some node.
void add_waiting(const Scene& scene, std::vector<Account>& accounts) {
    std::map<std::string_view, int64_t> pods;
    for (uint32_t i = 0; i < scene.pods.size(); ++i) {
        const ScenePod& pod = scene.pods[i];
        if (pod.placed || pod.gated) continue;
        Account& account = *account_named(accounts, pod.ns);
        if (pod.may_stand.empty()) {
            account.unplaceable.push_back(i);
            continue;
        }
        int64_t& waiting = pods[account.name];
        if (breaks_hard(account, account.demand, pod.size, account.pods + waiting + 1)) {
            account.cut_by_hard = true;
            continue;
        }
        ++waiting;
        account.demand.add(pod.size);
        account.waiting.push_back(i);
    }
    for (uint32_t i = 0; i < scene.claims.size(); ++i) {
        const SceneClaim& claim = scene.claims[i];
        if (claim.bound) continue;
        Account& account = *account_named(accounts, claim.ns);
        if (breaks_hard(account, account.demand, claim.size, 0)) {
            account.cut_by_hard = true;
            continue;
        }
        account.demand.add(claim.size);
        account.claims.push_back(i);
    }
}

// Those that hold come first, who would go last before all.
std::vector<Leaf> leaves_of(const Scene& scene, const Settings& settings, Account& account, const Resources& request) {
    std::vector<uint32_t> kept = account.placed;
    std::sort(kept.begin(), kept.end(), [&](uint32_t a, uint32_t b) {
        const ScenePod &first = scene.pods[a], &second = scene.pods[b];
        if (first.terminating != second.terminating) return second.terminating;
        if (first.kept != second.kept) return first.kept;
        return goes_before(second, first, settings);
    });
    Leaves leaves;
    for (const auto& hold : scene.holds) {
        if (hold.ns == account.name) leaves.add(hold.amount, 1, true);
    }
    for (const uint32_t i : kept) leaves.add(scene.pods[i].size, 1, true);
    for (const uint32_t i : account.waiting) leaves.add(scene.pods[i].size, 1, false);
    for (const auto& claim : scene.claims) {
        if (claim.bound && claim.ns == account.name) leaves.add(claim.size, 1, true);
    }
    for (const uint32_t i : account.claims) leaves.add(scene.claims[i].size, 1, false);
    Resources beyond;
    request.for_each([&](ResourceId id, int64_t amount) {
        if (amount > account.demand.get(id)) beyond.set(id, amount - account.demand.get(id));
    });
    account.demand.max(request);
    leaves.ask(beyond);
    return leaves.take();
}

}  // namespace

void add_demand(Consumer& consumer, const Resources& size) {
    const auto set_of = [](const Resources& amounts) {
        std::vector<ResourceId> out;
        amounts.for_each([&](ResourceId id, int64_t amount) {
            if (amount > 0) out.push_back(id);
        });
        return out;
    };
    const auto set = set_of(size);
    if (set.empty()) return;
    auto leaf = std::find_if(consumer.leaves.begin(), consumer.leaves.end(),
                             [&](const Leaf& one) { return set_of(one.demand) == set; });
    if (leaf == consumer.leaves.end()) leaf = consumer.leaves.insert(leaf, Leaf{});
    leaf->demand.add(size);
    leaf->pods.push_back({size, 1, false});
}

Resources capacity_of(const Scene& scene, const Settings& settings) {
    Resources capacity = node_capacity(scene);
    for (const auto& pod : scene.pods) {
        pod.size.for_each([&](ResourceId id, int64_t) {
            if (!model::is_limit(model::resource_name(id)) && !capacity.has(id)) capacity.set(id, 0);
        });
    }
    for (const auto& hold : scene.holds) {
        if (!hold.ns.empty()) continue;
        hold.amount.for_each([&](ResourceId id, int64_t amount) {
            if (capacity.has(id)) capacity.set(id, std::max<int64_t>(0, capacity.get(id) - amount));
        });
    }
    if (settings.limits_factor) add_limits(capacity, *settings.limits_factor);
    settings.storage.for_each([&](ResourceId id, int64_t amount) { capacity.set(id, amount); });
    return capacity;
}

std::vector<Account> accounts_of(const Scene& scene, const Settings& settings, const Resources& capacity) {
    std::set<std::string, std::less<>> namespaces(scene.namespaces.begin(), scene.namespaces.end());
    for (const auto& pod : scene.pods) namespaces.insert(pod.ns);
    for (const auto& claim : scene.claims) namespaces.insert(claim.ns);
    const Portions portions(consumers_of(scene), capacity);
    const auto quotas = smallest_quotas(scene);
    std::set<std::string, std::less<>> names = namespaces, parents;
    for (const auto& consumer : scene.consumers) {
        names.insert(consumer.meta.name);
        parents.insert(consumer.parent);
    }
    std::vector<Account> accounts;
    for (const auto& name : names) {
        Account& account = accounts.emplace_back();
        account.name = name;
        account.infinite = settings.infinite.contains(name);
        account.owns_pods = namespaces.contains(name) && !parents.contains(name);
        const auto* consumer = portions.find(name);
        if (consumer != nullptr) {
            account.parent = consumer->parent;
            account.weight = consumer->weight;
            account.reclaimable = consumer->reclaimable;
            account.reserved = portions.reserved_of(name);
            account.hard = portions.hard_of(name);
            account.lending_limit = consumer->lending_limit;
        }
        if (const auto quota = quotas.find(name); quota != quotas.end()) heed_quota(account, quota->second);
        if (consumer != nullptr)
            say_what_is_odd(account, *consumer, portions, namespaces.contains(name), parents.contains(name));
    }
    add_used(scene, accounts);
    add_waiting(scene, accounts);
    return accounts;
}

Problem problem_of(const Scene& scene, const Settings& settings, const Resources& capacity,
                   std::vector<Account>& accounts) {
    Problem problem;
    problem.capacity = capacity;
    problem.policy = settings.policy;
    problem.spread = settings.spread;
    const Portions portions(consumers_of(scene), capacity);
    for (auto& account : accounts) {
        Consumer out;
        out.name = account.name;
        out.parent = account.parent;
        out.weight = account.weight;
        out.infinite = account.infinite;
        out.reserved = account.reserved;
        account.hard.for_each([&](ResourceId id, int64_t amount) {
            if (!model::is_count(model::resource_name(id))) out.hard.set(id, amount);
        });
        Resources request;
        if (const auto* consumer = portions.find(account.name)) {
            out.lending_limit = consumer->lending_limit;
            out.borrowing_limit = consumer->borrowing_limit;
            if (account.owns_pods) request = consumer->request;
        }
        out.leaves = leaves_of(scene, settings, account, request);
        problem.consumers.push_back(std::move(out));
    }
    return problem;
}

Account* account_named(std::vector<Account>& accounts, std::string_view name) {
    return const_cast<Account*>(account_named(std::as_const(accounts), name));
}

const Account* account_named(const std::vector<Account>& accounts, std::string_view name) {
    const auto found =
        std::lower_bound(accounts.begin(), accounts.end(), name,
                         [](const Account& account, std::string_view other) { return account.name < other; });
    return found == accounts.end() || found->name != name ? nullptr : &*found;
}

std::vector<Named> names_of(const std::vector<Account>& accounts) {
    std::vector<Named> names;
    for (const auto& account : accounts) names.push_back({account.name, account.parent});
    return names;
}

}  // namespace berth::share
