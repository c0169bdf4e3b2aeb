// Random tables and asks: the counters must answer as a plain walk over all pods does.
#include <cmath>
#include <set>

#include "base/random.h"
#include "sched/plugins/test_near.h"

namespace berth::sched::plugins {
namespace {

using model::PodSpec;
using model::PodTerm;

struct PlacedPod {
    PodSpec spec;
    std::string node;
    bool terminating = false;
    std::string reservation;  // the one it is charged to
};

// The same facts as the ledger's, kept in the plainest way.
struct Plain {
    std::map<std::string, model::Node> nodes;
    std::map<std::string, PlacedPod> pods;                                   // by name
    std::map<std::string, std::shared_ptr<const model::Reservation>> holds;  // by name
    std::map<std::string, Labels> namespaces;
    std::map<std::string, Selector> services;  // in "default"
    std::set<std::string> invisible;           // reservations, to the pod that asks now

    // Calls f(spec, node, terminating) for everything that counts as a pod on a known node.
    template <class F>
    void each(F f) const {
        for (const auto& [name, pod] : pods) {
            if (nodes.contains(pod.node)) f(pod.spec, nodes.at(pod.node), pod.terminating);
        }
        for (const auto& [name, hold] : holds) {
            if (invisible.contains(name) || !nodes.contains(hold->node)) continue;
            const bool owned = std::any_of(pods.begin(), pods.end(),
                                           [&, n = name](const auto& p) { return p.second.reservation == n; });
            if (!owned) f(*hold->spec, nodes.at(hold->node), false);
        }
    }

    bool lists(const PodTerm& term, const std::string& ns) const {
        return std::find(term.namespaces.begin(), term.namespaces.end(), ns) != term.namespaces.end();
    }
    bool asked(const PodTerm& term, const PodSpec& pod) const {
        if (!term.selector || !term.selector->matches(pod.labels)) return false;
        if (lists(term, pod.ns)) return true;
        if (!term.ns_selector) return false;
        if (term.ns_selector->matches(Labels())) return true;
        return namespaces.contains(pod.ns) && term.ns_selector->matches(namespaces.at(pod.ns));
    }
    bool held(const PodTerm& term, const PodSpec& asking) const {
        if (!term.selector || !term.selector->matches(asking.labels)) return false;
        if (lists(term, asking.ns)) return true;
        const Labels labels = namespaces.contains(asking.ns) ? namespaces.at(asking.ns) : Labels();
        return term.ns_selector && term.ns_selector->matches(labels);
    }
};

using Pair = std::pair<std::string, std::string>;  // key and value of a label

// ---- the slow answers

bool takes_part(const model::SpreadConstraint& c, const PodSpec& spec, const model::Node& node) {
    if (c.honor_affinity) {
        for (const auto& [key, value] : spec.node_selector) {
            if (!node.meta.labels.has(key) || node.meta.labels.get(key) != value) return false;
        }
        if (spec.required_nodes &&
            !model::NodeSelector(*spec.required_nodes).matches(node.meta.name, node.meta.labels)) {
            return false;
        }
    }
    for (const auto& taint : node.taints) {
        if (!c.honor_taints) break;
        if (taint.effect != "PreferNoSchedule" && !model::tolerates(spec.tolerations, taint)) return false;
    }
    return true;
}

bool has_keys(const model::Node& node, const std::vector<model::SpreadConstraint>& constraints) {
    return std::all_of(constraints.begin(), constraints.end(),
                       [&](const auto& c) { return node.meta.labels.has(c.topology_key); });
}

int64_t matching_on(const Plain& plain, const std::string& node, const model::SpreadConstraint& c,
                    const PodSpec& spec) {
    if (!c.selector || c.selector->matches_everything()) return 0;
    int64_t count = 0;
    plain.each([&](const PodSpec& pod, const model::Node& on, bool terminating) {
        count += on.meta.name == node && !terminating && pod.ns == spec.ns && c.selector->matches(pod.labels);
    });
    return count;
}

Reasons slow_spread_strikes(const Plain& plain, const PodSpec& spec) {
    std::vector<model::SpreadConstraint> hard;
    for (const auto& c : spec.spread) {
        if (c.hard) hard.push_back(c);
    }
    std::vector<std::map<std::string, int64_t>> counts(hard.size());
    for (const auto& [name, node] : plain.nodes) {
        if (!has_keys(node, hard)) continue;
        for (size_t i = 0; i < hard.size(); ++i) {
            if (!takes_part(hard[i], spec, node)) continue;
            counts[i][std::string(node.meta.labels.get(hard[i].topology_key))] +=
                matching_on(plain, name, hard[i], spec);
        }
    }
    Reasons out;
    for (const auto& [name, node] : plain.nodes) {
        std::string& reason = out[name];
        for (size_t i = 0; i < hard.size() && reason.empty(); ++i) {
            if (!node.meta.labels.has(hard[i].topology_key)) {
                reason = kUnlabelled;
                continue;
            }
            int64_t least = INT32_MAX;
            for (const auto& [value, count] : counts[i]) least = std::min(least, count);
            if (static_cast<int64_t>(counts[i].size()) < hard[i].min_domains.value_or(1)) least = 0;
            const int64_t self = hard[i].selector && hard[i].selector->matches(spec.labels);
            const auto found = counts[i].find(std::string(node.meta.labels.get(hard[i].topology_key)));
            const int64_t count = found == counts[i].end() ? 0 : found->second;
            if (count + self - least > hard[i].max_skew) reason = kSkewed;
        }
    }
    return out;
}

std::vector<model::SpreadConstraint> soft_of(const Plain& plain, const PodSpec& spec) {
    std::vector<model::SpreadConstraint> soft;
    for (const auto& c : spec.spread) {
        if (!c.hard) soft.push_back(c);
    }
    if (!spec.spread.empty() || spec.ns != "default") return soft;
    std::string selector;
    for (const auto& [name, service] : plain.services) {
        if (service.matches(spec.labels)) selector += (selector.empty() ? "" : ",") + service.text();
    }
    if (selector.empty()) return {};
    return {spread(3, kHost, selector, false), spread(5, kZone, selector, false)};
}

Scores slow_spread_scores(const Plain& plain, const PodSpec& spec, const std::set<std::string>& feasible) {
    const auto soft = soft_of(plain, spec);
    const bool all_keys = !spec.spread.empty();
    Scores raw;
    std::set<std::string> taking;
    for (const auto& name : feasible) {
        raw[name] = 0;
        if (!all_keys || has_keys(plain.nodes.at(name), soft)) taking.insert(name);
    }
    if (soft.empty()) return raw;
    std::map<std::string, double> cost;
    for (const auto& c : soft) {
        std::map<std::string, int64_t> counts;
        for (const auto& name : taking) counts[std::string(plain.nodes.at(name).meta.labels.get(c.topology_key))];
        const size_t size = c.topology_key == kHost ? taking.size() : counts.size();
        for (const auto& [name, node] : plain.nodes) {
            if ((all_keys && !has_keys(node, soft)) || !takes_part(c, spec, node)) continue;
            const auto found = counts.find(std::string(node.meta.labels.get(c.topology_key)));
            if (found != counts.end()) found->second += matching_on(plain, name, c, spec);
        }
        for (const auto& name : taking) {
            const Labels& labels = plain.nodes.at(name).meta.labels;
            if (!labels.has(c.topology_key)) continue;
            const int64_t count = c.topology_key == kHost ? matching_on(plain, name, c, spec)
                                                          : counts[std::string(labels.get(c.topology_key))];
            cost[name] += static_cast<double>(count) * std::log(static_cast<double>(size + 2)) + (c.max_skew - 1);
        }
    }
    int64_t least = INT64_MAX;
    int64_t most = 0;
    for (const auto& name : taking) {
        raw[name] = static_cast<int64_t>(std::round(cost[name]));
        least = std::min(least, raw[name]);
        most = std::max(most, raw[name]);
    }
    for (const auto& name : taking) raw[name] = most == 0 ? 100 : 100 * (most + least - raw[name]) / most;
    return raw;
}

Reasons slow_affinity_strikes(const Plain& plain, const PodSpec& spec) {
    std::map<Pair, int64_t> wanted, shunned, shunning;
    const auto add = [](std::map<Pair, int64_t>& to, const PodTerm& term, const model::Node& node) {
        if (const auto* value = node.meta.labels.find(term.topology_key)) ++to[{term.topology_key, *value}];
    };
    const auto all = [&](const PodSpec& pod) {
        return std::all_of(spec.affinity.begin(), spec.affinity.end(),
                           [&](const auto& term) { return plain.asked(term, pod); });
    };
    plain.each([&](const PodSpec& pod, const model::Node& node, bool) {
        if (!spec.affinity.empty() && all(pod)) {
            for (const auto& term : spec.affinity) add(wanted, term, node);
        }
        for (const auto& term : spec.anti_affinity) {
            if (plain.asked(term, pod)) add(shunned, term, node);
        }
        for (const auto& term : pod.anti_affinity) {
            if (plain.held(term, spec)) add(shunning, term, node);
        }
    });
    Reasons out;
    for (const auto& [name, node] : plain.nodes) {
        const Labels& labels = node.meta.labels;
        bool missing = false;
        bool met = true;
        for (const auto& term : spec.affinity) {
            const auto* value = labels.find(term.topology_key);
            missing = missing || !value;
            met = met && value && wanted.contains({term.topology_key, *value});
        }
        if (!met && !missing && wanted.empty() && all(spec)) met = true;
        bool close = false;
        for (const auto& term : spec.anti_affinity) {
            const auto* value = labels.find(term.topology_key);
            close = close || (value && shunned.contains({term.topology_key, *value}));
        }
        bool refused = false;
        for (const auto& label : labels) refused = refused || shunning.contains(label);
        out[name] = missing || !met ? kFar : close ? kNear : refused ? kShunned : "";
    }
    return out;
}

Scores slow_affinity_scores(const Plain& plain, const PodSpec& spec, const std::set<std::string>& feasible) {
    std::map<Pair, int64_t> sums;
    const auto add = [&](const PodTerm& term, const model::Node& node, int64_t weight) {
        if (const auto* value = node.meta.labels.find(term.topology_key)) sums[{term.topology_key, *value}] += weight;
    };
    plain.each([&](const PodSpec& pod, const model::Node& node, bool) {
        for (const auto& [weight, term] : spec.preferred_affinity) {
            if (plain.asked(term, pod)) add(term, node, weight);
        }
        for (const auto& [weight, term] : spec.preferred_anti_affinity) {
            if (plain.asked(term, pod)) add(term, node, -weight);
        }
        for (const auto& term : pod.affinity) {
            if (plain.held(term, spec)) add(term, node, 1);
        }
        for (const auto& [weight, term] : pod.preferred_affinity) {
            if (plain.held(term, spec)) add(term, node, weight);
        }
        for (const auto& [weight, term] : pod.preferred_anti_affinity) {
            if (plain.held(term, spec)) add(term, node, -weight);
        }
    });
    Scores out;
    int64_t least = INT64_MAX;
    int64_t most = INT64_MIN;
    for (const auto& name : feasible) {
        out[name] = 0;
        for (const auto& label : plain.nodes.at(name).meta.labels) {
            if (sums.contains(label)) out[name] += sums.at(label);
        }
        least = std::min(least, out[name]);
        most = std::max(most, out[name]);
    }
    for (auto& [name, score] : out) {
        if (most == least) score = 0;
        if (most != least) {
            score =
                static_cast<int64_t>(100 * (static_cast<double>(score - least) / static_cast<double>(most - least)));
        }
    }
    return out;
}

// ---- the random world, told to both

class World {
public:
    explicit World(uint64_t seed) : random_(seed) {
        const auto nodes = random_.between(2, 9);
        for (int64_t i = 0; i < nodes; ++i) change_node();
    }

    void step() {
        switch (random_.below(12)) {
            case 0:
                return change_node();
            case 1:
                return random_.chance(1, 3) ? remove_node() : change_node();
            case 2:
                return change_namespace();
            case 3:
                return change_service();
            case 4:
                return reserve();
            case 5:
            case 6:
                return remove_pod();
            case 7:
                return terminate();
            case 8:
                return lift_and_settle();
            default:
                return place();
        }
    }

    void compare() {
        const PodSpec spec = random_spec();
        Ask ask = table_.ask(spec);
        plain_.invisible.clear();
        for (const auto& [name, hold] : plain_.holds) {
            if (!plain_.nodes.contains(hold->node) || random_.chance(2, 3)) continue;
            const auto index = table_.ledger.find_reservation(hold->meta.uid);
            ask.credits[table_.ledger.row_of(hold->node)].matched.push_back(index);
            plain_.invisible.insert(name);
        }
        std::vector<Row> rows;
        std::set<std::string> feasible;
        for (Row row = 0; row < table_.ledger.rows(); ++row) {
            if (!table_.ledger.alive(row) || random_.chance(1, 5)) continue;
            rows.push_back(row);
            feasible.emplace(table_.ledger.name(row));
        }
        ASSERT_EQ(table_.strikes(ask, *table_.spread_filter_), slow_spread_strikes(plain_, spec));
        ASSERT_EQ(table_.scores(ask, *table_.spread_scorer_, rows), slow_spread_scores(plain_, spec, feasible));
        ASSERT_EQ(table_.strikes(ask, *table_.affinity_filter_), slow_affinity_strikes(plain_, spec));
        ASSERT_EQ(table_.scores(ask, *table_.affinity_scorer_, rows), slow_affinity_scores(plain_, spec, feasible));
    }

private:
    std::string one_of(std::initializer_list<const char*> words) { return words.begin()[random_.below(words.size())]; }
    std::string key() { return one_of({"topology.kubernetes.io/zone", "kubernetes.io/hostname", "rack"}); }
    std::string ns() { return one_of({"default", "default", "prod", "test"}); }
    Labels pod_labels() {
        Labels labels{{"app", one_of({"a", "b", "c"})}};
        if (random_.chance(1, 2)) labels.set("tier", one_of({"x", "y"}));
        return labels;
    }
    std::optional<Selector> selector() {
        const std::string text = one_of({"app=a", "app=b", "app in (a,c)", "app!=a", "tier=x", "tier", "!tier", "",
                                         "app=a,tier=x", "app=none", "absent"});
        if (text == "absent") return std::nullopt;
        return chosen(text);
    }
    PodTerm random_term(const std::string& own) {
        PodTerm term;
        term.selector = selector();
        term.topology_key = key();
        if (random_.chance(1, 3)) term.namespaces = {"default", "prod"};
        if (random_.chance(1, 3)) term.ns_selector = chosen(one_of({"", "env=x", "env!=x", "env", "!env"}));
        if (term.namespaces.empty() && !term.ns_selector) term.namespaces = {own};
        return term;
    }
    model::SpreadConstraint random_constraint() {
        auto out = spread(static_cast<int32_t>(random_.between(1, 3)), key(), "", random_.chance(1, 2));
        out.selector = selector();
        if (random_.chance(1, 4)) out.min_domains = static_cast<int32_t>(random_.between(1, 4));
        out.honor_affinity = random_.chance(2, 3);
        out.honor_taints = random_.chance(1, 3);
        return out;
    }
    PodSpec random_spec() {
        PodSpec spec = spec_of(pod_labels(), ns());
        const auto few = [&] { return random_.chance(1, 3) ? random_.between(1, 2) : 0; };
        for (auto i = few(); i > 0; --i) spec.affinity.push_back(random_term(spec.ns));
        for (auto i = few(); i > 0; --i) spec.anti_affinity.push_back(random_term(spec.ns));
        const auto weight = [&] { return static_cast<int32_t>(random_.between(1, 100)); };
        for (auto i = few(); i > 0; --i) spec.preferred_affinity.push_back({weight(), random_term(spec.ns)});
        for (auto i = few(); i > 0; --i) spec.preferred_anti_affinity.push_back({weight(), random_term(spec.ns)});
        for (auto i = random_.between(0, 3); i > 0; --i) spec.spread.push_back(random_constraint());
        if (random_.chance(1, 4)) spec.node_selector = {{"disk", "ssd"}};
        if (random_.chance(1, 5)) spec.required_nodes = {{{{"disk", one_of({"Exists", "DoesNotExist"}), {}}}, {}}};
        if (random_.chance(1, 3)) spec.tolerations = {{"gpu", "Exists", "", "", std::nullopt}};
        return spec;
    }

    std::string node_name() { return "n" + std::to_string(random_.below(12)); }
    void change_node() {
        model::Node node;
        node.meta.name = node_name();
        Labels& labels = node.meta.labels;
        if (random_.chance(5, 6)) labels.set(kHost, random_.chance(9, 10) ? node.meta.name : "shared");
        if (random_.chance(5, 6)) labels.set(kZone, one_of({"a", "b", "c", ""}));
        if (random_.chance(1, 2)) labels.set("rack", one_of({"r1", "r2"}));
        if (random_.chance(1, 2)) labels.set("disk", one_of({"ssd", "hdd"}));
        if (random_.chance(1, 4)) node.taints.push_back({"gpu", "", one_of({"NoSchedule", "PreferNoSchedule"})});
        table_.node(node.meta.name, node.meta.labels, node.taints);
        plain_.nodes[node.meta.name] = node;
    }
    void remove_node() {
        const std::string name = node_name();
        table_.ledger.remove_node(name);
        plain_.nodes.erase(name);
        std::erase_if(plain_.holds, [&](const auto& hold) {  // the controllers end them
            if (hold.second->node != name) return false;
            table_.ledger.remove_reservation(hold.second->meta.uid);
            return true;
        });
    }
    void change_namespace() {
        const std::string name = ns();
        if (random_.chance(1, 4)) {
            table_.ledger.remove_namespace(name);
            plain_.namespaces.erase(name);
            return;
        }
        const Labels labels = random_.chance(1, 3) ? Labels() : Labels{{"env", one_of({"x", "y"})}};
        table_.ledger.put(model::Namespace{name, labels});
        plain_.namespaces[name] = labels;
    }
    void change_service() {
        const std::string name = one_of({"s1", "s2", "s3"});
        if (random_.chance(1, 3)) {
            table_.ledger.remove_workload(model::WorkloadKind::Service, "default", name);
            plain_.services.erase(name);
            return;
        }
        const Selector selector = chosen(one_of({"app=a", "app=b", "tier=x", "app=a,tier=y"}));
        table_.ledger.put(model::Workload{model::WorkloadKind::Service, "default", name, selector});
        plain_.services.insert_or_assign(name, selector);
    }
    void place() {
        const std::string name = "p" + std::to_string(next_++);
        const PodSpec spec = random_spec();
        if (!plain_.holds.empty() && random_.chance(1, 4)) {
            const auto& hold = pick(plain_.holds);
            table_.place_owner(name, *hold.second, spec);
            PlacedPod placed{spec, hold.second->node, false, hold.first};
            placed.spec.labels.set("for", hold.first);
            plain_.pods.emplace(name, placed);
            return;
        }
        const std::string node = node_name();  // perhaps one that is not there yet
        table_.place(name, node, spec);
        plain_.pods.emplace(name, PlacedPod{spec, node, false, ""});
    }
    void remove_pod() {
        if (plain_.pods.empty()) return;
        const std::string name = pick(plain_.pods).first;
        table_.ledger.remove_pod("uid-" + name);
        plain_.pods.erase(name);
    }
    void terminate() {
        if (plain_.pods.empty()) return;
        const auto& [name, pod] = pick(plain_.pods);
        if (!pod.reservation.empty()) return;
        table_.place(name, pod.node, pod.spec, true);
        plain_.pods.at(name).terminating = true;
    }
    void lift_and_settle() {
        if (plain_.pods.empty()) return;
        const auto index = table_.ledger.find_pod("uid-" + pick(plain_.pods).first);
        if (table_.ledger.pod(index).row == ledger::kNoRow) return;
        table_.ledger.lift(index);
        table_.ledger.put_back(index);
    }
    void reserve() {
        if (!plain_.holds.empty() && random_.chance(1, 2)) {
            const std::string name = pick(plain_.holds).first;
            table_.ledger.remove_reservation("uid-" + name);
            plain_.holds.erase(name);
            return;
        }
        const std::string node = node_name();
        if (!plain_.nodes.contains(node)) return;
        const std::string name = "r" + std::to_string(next_++);
        plain_.holds[name] = table_.reservation(name, node, random_spec());
    }
    template <class Map>
    const typename Map::value_type& pick(const Map& map) {
        return *std::next(map.begin(), static_cast<ptrdiff_t>(random_.below(map.size())));
    }

    base::Random random_;
    NearTable table_;
    Plain plain_;
    uint64_t next_ = 0;
};

TEST(NearProperty, CountersAnswerAsAWalkOverAllPodsDoes) {
    for (uint64_t seed = 1; seed <= 60; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        World world(seed);
        for (int step = 0; step < 120; ++step) {
            world.step();
            for (int i = 0; i < 4; ++i) {
                world.compare();
                if (testing::Test::HasFatalFailure()) return;
            }
        }
    }
}

}  // namespace
}  // namespace berth::sched::plugins
