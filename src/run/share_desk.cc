#include "run/share_desk.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "run/decoded.h"
#include "run/shares_scene.h"
#include "share/admission.h"

namespace berth::run {
namespace {

constexpr base::Duration kInFlight = std::chrono::seconds(30);
// An answer repeats the reason for each.
constexpr size_t kMostNames = 100'000;

const ShareDesk::Reply kClosed{503, "another one leads, or not everything has been seen yet\n"};

bool absent(const simdjson::simdjson_result<JsonView>& value) {
    return value.error() != simdjson::SUCCESS || value.is_null();
}

std::vector<std::string_view> names_in(JsonView question) {
    std::vector<std::string_view> out;
    simdjson::dom::array names;
    if (question["NodeNames"].get(names) == simdjson::SUCCESS) {
        for (const auto name : names) {
            std::string_view text;
            if (name.get(text) == simdjson::SUCCESS) out.push_back(text);
        }
    }
    simdjson::dom::array nodes;
    if (question["Nodes"]["items"].get(nodes) == simdjson::SUCCESS) {
        for (const auto node : nodes) {
            std::string_view text;
            if (node["metadata"]["name"].get(text) == simdjson::SUCCESS) out.push_back(text);
        }
    }
    return out;
}

void append_names(const std::vector<std::string_view>& names, std::string& out) {
    out += '[';
    for (size_t i = 0; i < names.size(); ++i) {
        if (i > 0) out += ',';
        base::append_quoted(names[i], out);
    }
    out += ']';
}

using Names = std::set<std::string, std::less<>>;

void append_nodes(JsonView question, const Names& without, std::string& out) {
    simdjson::dom::array nodes;
    if (question["Nodes"]["items"].get(nodes) != simdjson::SUCCESS) {
        out += "null";
        return;
    }
    out += R"({"items":[)";
    bool any = false;
    for (const auto node : nodes) {
        std::string_view name;
        if (node["metadata"]["name"].get(name) == simdjson::SUCCESS && without.contains(name)) continue;
        if (std::exchange(any, true)) out += ',';
        out += simdjson::minify(node);
    }
    out += "]}";
}

// The nodes as they came, by name or as objects, but for those whose room is kept for somebody else.
std::string all_nodes(JsonView question, std::vector<std::string_view> names, const Names& kept) {
    std::string out = R"({"Nodes":)";
    append_nodes(question, kept, out);
    Names failed;
    for (const auto name : names) {
        if (kept.contains(name)) failed.emplace(name);
    }
    std::erase_if(names, [&](std::string_view name) { return failed.contains(name); });
    out += R"(,"NodeNames":)";
    if (absent(question["NodeNames"])) {
        out += "null";
    } else {
        append_names(names, out);
    }
    out += R"(,"FailedNodes":{)";
    bool any = false;
    for (const auto& name : failed) {
        if (std::exchange(any, true)) out += ',';
        base::append_quoted(name, out);
        out += R"(:"its room is kept for a pod for which others went")";
    }
    return out + R"(},"FailedAndUnresolvableNodes":{},"Error":""})";
}

std::string no_node(JsonView question, const std::vector<std::string_view>& names, const std::string& why) {
    std::string out = R"({"Nodes":)";
    out += absent(question["Nodes"]) ? "null" : R"({"items":[]})";
    out += absent(question["NodeNames"]) ? R"(,"NodeNames":null)" : R"(,"NodeNames":[])";
    out += R"(,"FailedNodes":{},"FailedAndUnresolvableNodes":{)";
    std::string reason;
    base::append_quoted(why, reason);
    for (size_t i = 0; i < names.size(); ++i) {
        if (i > 0) out += ',';
        base::append_quoted(names[i], out);
        out += ':';
        out += reason;
    }
    return out + R"(},"Error":""})";
}

// The pod alone: an empty Error, or the reason.
std::string verdict(const std::string& why) {
    std::string out = R"({"Nodes":null,"NodeNames":null,"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":)";
    base::append_quoted(why, out);
    return out + "}";
}

ShareDesk::Reply wrong(const std::string& why) {
    return {400, why + "\n"};
}

}  // namespace

Result<share::ScenePod> ShareDesk::pod_in(JsonView question) const {
    const auto object = question["Pod"];
    if (absent(object)) return base::bad_request("there is no Pod");
    std::string_view uid;
    share::ScenePod out;
    if (object["metadata"]["uid"].get(uid) == simdjson::SUCCESS) out.uid = uid;
    if (const auto known = waiting_.find(uid); !uid.empty() && known != waiting_.end()) {
        out.ns = known->second.ns;
        out.size = known->second.size;
        return out;
    }
    const auto pod = TRY(model::read_pod(object.value_unsafe()));
    if (pod.meta.name.empty() || pod.meta.uid.empty()) return base::bad_request("the Pod has no name or no uid");
    out.ns = pod.meta.ns.empty() ? "default" : pod.meta.ns;
    out.name = pod.meta.name;
    out.size = pod.spec->requests;
    out.size.erase(model::kPods);
    if (limits_) {
        const std::string text = simdjson::minify(object.value_unsafe());
        if (auto document = base::parse_json(text)) out.size.add(limits_of(std::move(*document)));
    }
    return out;
}

ShareDesk::Reply ShareDesk::filter(std::string_view body, base::Instant now) {
    const auto question = parse_here(std::string(body));
    if (!question) return wrong(question.error().message);
    const bool alone = absent((*question)["Nodes"]) && absent((*question)["NodeNames"]);
    const auto names = names_in(*question);
    if (names.size() > kMostNames)
        return wrong(fmt::format("{} nodes are named, at most {} may be", names.size(), kMostNames));
    std::string why;
    Names kept;
    {
        const std::lock_guard lock(mutex_);
        if (!open_) return kClosed;
        const auto pod = pod_in(*question);
        if (!pod && alone) return {200, verdict(pod.error().message)};
        if (!pod) return wrong(pod.error().message);
        why = judge(*pod, now, true);
        if (why.empty()) kept = kept_from(*pod);
    }
    if (alone) return {200, verdict(why)};
    return {200, why.empty() ? all_nodes(*question, names, kept) : no_node(*question, names, why)};
}

ShareDesk::Reply ShareDesk::preempt(std::string_view body, base::Instant now) {
    const auto question = parse_here(std::string(body));
    if (!question) return wrong(question.error().message);
    const std::lock_guard lock(mutex_);
    if (!open_) return kClosed;
    const auto pod = pod_in(*question);
    if (!pod) return wrong(pod.error().message);
    std::string out = R"({"NodeNameToMetaVictims":{)";
    if (!judge(*pod, now, false).empty()) return {200, out + "}}"};
    bool any = false;
    for (const auto* field : {"NodeNameToMetaVictims", "NodeNameToVictims"}) {
        simdjson::dom::object nodes;
        if ((*question)[field].get(nodes) != simdjson::SUCCESS) continue;
        for (const auto& [node, victims] : nodes) {
            if (!keeps_reserved(victims, *pod)) continue;
            if (std::exchange(any, true)) out += ',';
            base::append_quoted(node, out);
            out += R"(:{"Pods":[)";
            simdjson::dom::array pods;
            bool more = false;
            if (victims["Pods"].get(pods) == simdjson::SUCCESS) {
                for (const auto victim : pods) {
                    std::string_view uid;
                    if (victim["UID"].get(uid) != simdjson::SUCCESS &&
                        victim["metadata"]["uid"].get(uid) != simdjson::SUCCESS)
                        continue;
                    out += std::exchange(more, true) ? R"(,{"UID":)" : R"({"UID":)";
                    base::append_quoted(uid, out);
                    out += '}';
                }
            }
            int64_t violations = 0;
            if (victims["NumPDBViolations"].get(violations) != simdjson::SUCCESS) violations = 0;
            out += fmt::format(R"(],"NumPDBViolations":{}}})", violations);
        }
    }
    return {200, out + "}}"};
}

// ---- under the lock

std::string ShareDesk::judge(const share::ScenePod& pod, base::Instant now, bool grants) {
    expire(now);
    if (placed_.contains(pod.uid)) return {};  // it is counted: whoever asks is behind
    if (const auto known = grants_.find(pod.uid); known != grants_.end()) {
        if (grants) known->second.until = now + kInFlight;
        return {};
    }
    if (!infinite_.contains(pod.ns)) {
        if (!waiting_.contains(pod.uid)) add_demand(pod);
        const auto known = flights_.find(pod.ns);
        const Flight flight = known == flights_.end() ? Flight() : known->second;
        const auto& account = account_of(pod.ns);
        std::string why = share::refusal(
            {account.used, flight.amounts, account.share.deserved, account.hard, account.pods + flight.pods}, pod.size);
        if (!why.empty()) return fmt::format("its share of the cluster: {}", why);
    }
    if (!grants) return {};
    grants_[pod.uid] = {pod.ns, pod.size, now + kInFlight};
    auto& flight = flights_[pod.ns];
    flight.amounts.add(pod.size);
    ++flight.pods;
    return {};
}

std::set<std::string, std::less<>> ShareDesk::kept_from(const share::ScenePod& pod) const {
    std::set<std::string, std::less<>> out;
    if (keepers_.contains(pod.uid)) return out;
    for (const auto& [node, room] : kept_) {
        if (!share::fits(pod.size, room)) out.insert(node);
    }
    return out;
}

// A namespace that no cycle has seen has nothing of its own yet.
share::Account& ShareDesk::account_of(const std::string& ns) {
    auto found = std::lower_bound(accounts_.begin(), accounts_.end(), ns,
                                  [](const auto& account, const auto& name) { return account.name < name; });
    if (found != accounts_.end() && found->name == ns) return *found;
    const auto place = found - accounts_.begin();
    share::Account account;
    account.name = ns;
    share::Consumer consumer;
    consumer.name = ns;
    problem_.consumers.insert(problem_.consumers.begin() + place, std::move(consumer));
    return *accounts_.insert(found, std::move(account));
}

// Whoever asks must not wait for a cycle: it counts in the demand from now on.
void ShareDesk::add_demand(const share::ScenePod& pod) {
    unseen_.insert(pod.uid);
    waiting_[pod.uid] = {pod.ns, pod.size};
    const size_t index = static_cast<size_t>(&account_of(pod.ns) - accounts_.data());
    share::add_demand(problem_.consumers[index], pod.size);
    auto shares = share::solve(problem_);
    for (size_t i = 0; i < shares.size(); ++i) accounts_[i].share = std::move(shares[i]);
}

void ShareDesk::end_grant(const std::string& uid) {
    const auto found = grants_.find(uid);
    if (found == grants_.end()) return;
    const auto flight = flights_.find(found->second.ns);
    flight->second.amounts.subtract(found->second.size);
    if (--flight->second.pods == 0) flights_.erase(flight);
    grants_.erase(found);
}

void ShareDesk::expire(base::Instant now) {
    std::vector<std::string> over;
    for (const auto& [uid, grant] : grants_) {
        if (grant.until <= now) over.push_back(uid);
    }
    for (const auto& uid : over) end_grant(uid);
}

// No namespace has less than its guarantee when they are gone; the one that asks has its pod then. Of a pod that no
// cycle has seen we know only what it was granted; of one that nobody asked about nothing, so it stays for now.
bool ShareDesk::keeps_reserved(JsonView victims, const share::ScenePod& pod) const {
    std::map<std::string, Resources> gone;
    simdjson::dom::array pods;
    if (victims["Pods"].get(pods) != simdjson::SUCCESS) return true;
    for (const auto victim : pods) {
        std::string_view uid;
        if (victim["UID"].get(uid) != simdjson::SUCCESS && victim["metadata"]["uid"].get(uid) != simdjson::SUCCESS)
            continue;
        const auto placed = placed_.find(uid);
        const auto granted = grants_.find(std::string(uid));
        if (placed == placed_.end() && granted == grants_.end()) return false;
        const bool seen = placed != placed_.end();
        gone[seen ? placed->second.ns : granted->second.ns].add(seen ? placed->second.size : granted->second.size);
    }
    for (auto& [ns, amounts] : gone) {
        const auto* account = share::account_named(accounts_, ns);
        if (account == nullptr) continue;
        Resources has = account->used;
        if (const auto flight = flights_.find(ns); flight != flights_.end()) has.add(flight->second.amounts);
        bool keeps = true;
        amounts.for_each([&](ResourceId id, int64_t amount) {
            const int64_t after = has.get(id) - amount + (ns == pod.ns ? pod.size.get(id) : 0);
            if (amount > 0 && after < std::min(account->reserved.get(id), has.get(id))) keeps = false;
        });
        if (!keeps) return false;
    }
    return true;
}

// ---- the arbitrator's side

void ShareDesk::show(const share::Scene& scene, const share::Settings& settings, const share::Answer& answer,
                     base::Instant now) {
    base::StringMap<Placed> placed, waiting;
    bool limits = false;
    for (const auto& pod : scene.pods) {
        (pod.placed ? placed : waiting)[pod.uid] = {pod.ns, pod.size};
        pod.size.for_each(
            [&](ResourceId id, int64_t) { limits = limits || model::is_limit(model::resource_name(id)); });
    }
    base::StringMap<Resources> kept;
    std::set<std::string, std::less<>> keepers;
    for (const auto& [node, room] : share::rooms_for_others(scene)) kept[scene.nodes[node].name] = room;
    for (const auto& pod : scene.pods) {
        if (pod.earmark != share::kNowhere) keepers.insert(pod.uid);
    }
    const std::lock_guard lock(mutex_);
    kept_ = std::move(kept);
    keepers_ = std::move(keepers);
    std::vector<std::string> over;
    for (const auto& [uid, grant] : grants_) {
        // What no cycle has seen may still come; what one has seen and is not there any more is gone.
        const bool gone = waiting_.contains(uid) && !unseen_.contains(uid) && !waiting.contains(uid);
        if (placed.contains(uid) || gone) over.push_back(uid);
    }
    for (const auto& uid : over) end_grant(uid);
    expire(now);
    open_ = true;
    unseen_.clear();
    limits_ = limits || settings.limits_factor.has_value();
    problem_ = answer.problem;
    accounts_ = answer.accounts;
    infinite_ = settings.infinite;
    placed_ = std::move(placed);
    waiting_ = std::move(waiting);
}

std::set<std::string> ShareDesk::in_flight(base::Instant now) {
    const std::lock_guard lock(mutex_);
    expire(now);
    std::set<std::string> out;
    for (const auto& [uid, grant] : grants_) out.insert(uid);
    return out;
}

bool ShareDesk::asks_for_cycle() {
    const std::lock_guard lock(mutex_);
    return !unseen_.empty();
}

void ShareDesk::close() {
    const std::lock_guard lock(mutex_);
    open_ = false;
}

}  // namespace berth::run
