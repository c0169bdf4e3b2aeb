#include "api/bootstrap.h"

#include <algorithm>
#include <future>

#include "api/audit.h"
#include "api/handlers.h"
#include "api/wire.h"
#include "model/times.h"

namespace berth::api {
namespace {

constexpr base::Duration kEventLife = std::chrono::hours(1);

struct First {
    std::string group, version, plural, ns;
    Json object;
};

Json named(const std::string& name) {
    return JsonObject{{"metadata", JsonObject{{"name", name}}}};
}

First priority_class(const std::string& name, int64_t value, const std::string& says) {
    Json object = named(name);
    object.as_object()["value"] = value;
    object.as_object()["description"] = says;
    return {"scheduling.k8s.io", "v1", "priorityclasses", "", std::move(object)};
}

First api_service(uint16_t port) {
    Json object = named("kubernetes");
    base::object_at(object, {"metadata"})["labels"] =
        JsonObject{{"component", "apiserver"}, {"provider", "kubernetes"}};
    object.as_object()["spec"] = JsonObject{
        {"clusterIP", "10.96.0.1"},
        {"ports", JsonArray{JsonObject{{"name", "https"}, {"port", 443}, {"protocol", "TCP"}, {"targetPort", port}}}}};
    return {"", "v1", "services", "default", std::move(object)};
}

First authentication_map(const std::string& client_ca) {
    Json object = named("extension-apiserver-authentication");
    object.as_object()["data"] = JsonObject{{"client-ca-file", client_ca}};
    return {"", "v1", "configmaps", "kube-system", std::move(object)};
}

std::vector<First> first_objects(const BootstrapFacts& facts) {
    std::vector<First> out;
    for (const auto* name : {"default", "kube-system", "kube-public", "kube-node-lease"}) {
        out.push_back({"", "v1", "namespaces", "", named(name)});
    }
    out.push_back(priority_class("system-cluster-critical", 2'000'000'000,
                                 "For pods the cluster needs; they may move to another node."));
    out.push_back(priority_class("system-node-critical", 2'000'001'000, "For pods their node needs."));
    out.push_back(api_service(facts.port));
    if (!facts.client_ca.empty()) out.push_back(authentication_map(facts.client_ca));
    return out;
}

Identity own_identity() {
    return {"system:apiserver", {std::string(kMasters)}};
}

Call create_call(const ApiContext& context, const First& first) {
    return make_call(context, own_identity(), Verb::Create, {first.group, first.version, first.plural}, first.ns, "",
                     {base::to_text(first.object), ""});
}

// The newest of the times an event carries.
std::optional<base::Time> last_seen(const Json& event) {
    std::optional<base::Time> out;
    for (const auto text : {base::find_string(event, {"lastTimestamp"}), base::find_string(event, {"eventTime"}),
                            base::find_string(event, {"series", "lastObservedTime"}),
                            base::find_string(event, {"metadata", "creationTimestamp"})}) {
        if (text.empty()) continue;
        if (auto time = model::parse_time(text); time && (!out || *time > *out)) out = *time;
    }
    return out;
}

bool unseen_since(base::Time then, const store::Record& record) {
    const auto event = stored_object(record);
    if (!event) return false;
    const auto seen = last_seen(*event);
    return !seen || *seen <= then;
}

// What another changed in between is left to the next round.
void expire(ApiContext& context, const store::Record& record) {
    Call call = make_call(context, own_identity(), Verb::Delete, {"", "v1", "events"}, record.key.ns, record.key.name);
    call.options.if_version = std::to_string(record.revision);
    Done done = audited(context, call, [](const Result<Served>&) {});
    perform(context, std::make_shared<const Call>(std::move(call)), std::move(done));
}

}  // namespace

Status make_first_objects(ApiContext& context, const BootstrapFacts& facts) {
    std::vector<std::future<Result<Served>>> answers;
    for (const auto& first : first_objects(facts)) {
        const store::Key key{store_kind(first.group, first.plural), first.ns,
                             std::string(base::find_string(first.object, {"metadata", "name"}))};
        if (context.store.head(key) != nullptr) continue;
        auto promise = std::make_shared<std::promise<Result<Served>>>();
        answers.push_back(promise->get_future());
        Call call = create_call(context, first);
        Done done = audited(context, call, [promise](Result<Served> result) { promise->set_value(std::move(result)); });
        perform(context, std::make_shared<const Call>(std::move(call)), std::move(done));
    }
    for (auto& answer : answers) {
        auto result = answer.get();
        if (!result) return result.error();
    }
    return {};
}

void expire_events(ApiContext& context) {
    auto page = context.store.list({"events"});
    if (!page) return;
    const auto before = context.clock.wall() + -kEventLife;
    auto& events = page->records;
    std::sort(events.begin(), events.end(), [](const auto& a, const auto& b) { return a->revision < b->revision; });
    const size_t too_many = events.size() - std::min(events.size(), kMostEvents);
    for (size_t i = 0; i < events.size(); ++i) {
        if (i >= too_many && !unseen_since(before, *events[i])) continue;
        expire(context, *events[i]);
    }
}

}  // namespace berth::api
