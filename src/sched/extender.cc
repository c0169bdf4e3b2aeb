#include "sched/extender.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "model/reader.h"
#include "model/times.h"
#include "sched/profile_args.h"

namespace berth::sched {
namespace {

using model::Reader;

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same_key(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

// nullptr: absent or null.
const Json* member(const Json& object, std::string_view key) {
    if (!object.is_object()) return nullptr;
    for (const auto& entry : object.as_object()) {
        if (same_key(entry.key(), key)) return entry.value().is_null() ? nullptr : &entry.value();
    }
    return nullptr;
}

std::string text_of(const Json* value) {
    return value && value->is_string() ? std::string(value->as_string()) : "";
}

Result<Json> parse(std::string_view body) {
    auto parsed = base::parse_json(body);
    if (!parsed) return base::bad_request("the reply is no JSON: " + parsed.error().message);
    if (const std::string error = text_of(member(*parsed, "Error")); !error.empty()) return base::bad_request(error);
    return parsed;
}

void refusals(const Json* from, bool unresolvable, std::map<std::string, ExtenderRefusal>& out) {
    if (!from || !from->is_object()) return;
    for (const auto& entry : from->as_object()) {
        out[std::string(entry.key())] = {text_of(&entry.value()), unresolvable};
    }
}

std::string verb_at(const Reader& item, std::string_view key) {
    const Reader field = item[key];
    return std::string(field.text());
}

void read_tls(const Reader& from, Extender::Tls& out) {
    only_known(from, {"insecure", "serverName", "certFile", "keyFile", "caFile", "certData", "keyData", "caData"});
    out.insecure = from["insecure"].flag();
    out.server_name = from["serverName"].text();
    out.certificate_file = from["certFile"].text();
    out.key_file = from["keyFile"].text();
    out.ca_file = from["caFile"].text();
    out.certificate_pem = from["certData"].text();
    out.key_pem = from["keyData"].text();
    out.ca_pem = from["caData"].text();
}

void read_managed(const Reader& list, Extender& extender, std::vector<model::ResourceId>& ignored) {
    list.each([&](const Reader& item) {
        only_known(item, {"name", "ignoredByScheduler"});
        const Reader name = item["name"];
        const auto id = model::intern_resource(name.text());
        if (name.text().empty()) return name.wrong("is required");
        if (!id) return name.wrong(id.error().message);
        extender.managed.push_back(*id);
        if (item["ignoredByScheduler"].flag()) ignored.push_back(*id);
    });
}

void read_times(const Reader& item, Extender& out) {
    const Reader timeout = item["httpTimeout"];
    if (timeout.present()) {
        const auto read = model::parse_duration(timeout.text());
        if (!read) {
            timeout.wrong(read.error().message);
        } else if (*read <= base::Duration::zero()) {
            timeout.wrong(fmt::format("must be above 0, but is {}", timeout.text()));
        } else {
            out.timeout = std::min<base::Duration>(*read, kLongestExtenderTimeout);
        }
    }
    const Reader weight = item["weight"];
    out.weight = weight.integer(out.prioritize_verb.empty() ? 1 : 0);
    if (out.weight <= 0 || out.weight > 1'000'000) weight.wrong("must be between 1 and 1000000");
}

}  // namespace

bool Extender::cares_for(const model::PodSpec& spec) const {
    if (managed.empty()) return true;
    return std::any_of(managed.begin(), managed.end(), [&](model::ResourceId id) { return spec.requests.get(id) > 0; });
}

Result<FilterReply> read_filter_reply(std::string_view body) {
    const Json reply = TRY(parse(body));
    FilterReply out;
    if (const Json* names = member(reply, "NodeNames"); names && names->is_array()) {
        for (const auto& name : names->as_array()) out.nodes.push_back(text_of(&name));
    } else if (const Json* nodes = member(reply, "Nodes")) {
        const Json* items = member(*nodes, "items");
        if (items && items->is_array()) {
            for (const auto& node : items->as_array()) {
                out.nodes.emplace_back(base::find_string(node, {"metadata", "name"}));
            }
        }
    }
    refusals(member(reply, "FailedNodes"), false, out.refused);
    refusals(member(reply, "FailedAndUnresolvableNodes"), true, out.refused);
    return out;
}

Result<std::map<std::string, int64_t>> read_prioritize_reply(std::string_view body) {
    const Json reply = TRY(parse(body));
    if (!reply.is_array()) return base::bad_request("the reply is no list of hosts and scores");
    std::map<std::string, int64_t> out;
    for (const auto& item : reply.as_array()) {
        const Json* score = member(item, "Score");
        if (!score || !score->is_int64()) return base::bad_request("a score is missing or no integer");
        const int64_t points = score->as_int64();
        if (points < 0 || points > 10)
            return base::bad_request(fmt::format("a score is {}, not within 0 and 10", points));
        out[text_of(member(item, "Host"))] = points;
    }
    return out;
}

Result<std::map<std::string, std::vector<std::string>>> read_preempt_reply(std::string_view body) {
    const Json reply = TRY(parse(body));
    std::map<std::string, std::vector<std::string>> out;
    const Json* nodes = member(reply, "NodeNameToMetaVictims");
    if (!nodes || !nodes->is_object()) return out;
    for (const auto& entry : nodes->as_object()) {
        auto& victims = out[std::string(entry.key())];
        const Json* pods = member(entry.value(), "Pods");
        if (!pods || !pods->is_array()) continue;
        for (const auto& pod : pods->as_array()) victims.push_back(text_of(member(pod, "UID")));
    }
    return out;
}

Status read_bind_reply(std::string_view body) {
    TRY(parse(body));
    return {};
}

std::vector<Extender> read_extenders(const Reader& list, std::vector<model::ResourceId>& ignored) {
    std::vector<Extender> out;
    bool binder = false;
    list.each([&](const Reader& item) {
        only_known(item,
                   {"urlPrefix", "filterVerb", "preemptVerb", "prioritizeVerb", "weight", "bindVerb", "enableHTTPS",
                    "tlsConfig", "httpTimeout", "nodeCacheCapable", "managedResources", "ignorable"});
        Extender extender;
        const Reader url = item["urlPrefix"];
        extender.url = url.text();
        while (extender.url.ends_with('/')) extender.url.pop_back();
        if (!extender.url.starts_with("http://") && !extender.url.starts_with("https://")) {
            url.wrong(fmt::format("must begin with http:// or https://, but is \"{}\"", url.text()));
        }
        extender.filter_verb = verb_at(item, "filterVerb");
        extender.prioritize_verb = verb_at(item, "prioritizeVerb");
        extender.preempt_verb = verb_at(item, "preemptVerb");
        extender.bind_verb = verb_at(item, "bindVerb");
        const Reader bind = item["bindVerb"];
        if (binder && !extender.bind_verb.empty()) bind.wrong("only one extender may bind");
        binder = binder || !extender.bind_verb.empty();
        extender.https = item["enableHTTPS"].flag() || extender.url.starts_with("https://");
        extender.node_cache_capable = item["nodeCacheCapable"].flag();
        extender.ignorable = item["ignorable"].flag();
        read_times(item, extender);
        read_tls(item["tlsConfig"], extender.tls);
        read_managed(item["managedResources"], extender, ignored);
        out.push_back(std::move(extender));
    });
    return out;
}

}  // namespace berth::sched
