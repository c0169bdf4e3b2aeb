#include "run/extenders.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "base/json.h"
#include "base/private_file.h"
#include "link/http_wire.h"
#include "link/url.h"

namespace berth::run {
namespace {

Result<std::string> read_file(const std::string& path) {
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in) return base::bad_request(fmt::format("extender: cannot read {}", path));
    return text.str();
}

// "https://host:1234/path" taken apart.
Result<link::Access> access_of(const sched::Extender& extender) {
    link::Access access;
    const auto behind = extender.url.substr(extender.url.find("://"));
    const auto url = link::parse_url((extender.https ? "https" : "http") + behind);
    if (!url) return base::bad_request("extender: " + url.error().message);
    access.tls = url->tls;
    access.host = url->host;
    access.port = url->port;
    access.path = url->path;
    access.proxy = TRY(link::proxy_from_environment(access.tls, access.host, access.port));
    access.server_name = extender.tls.server_name.empty() ? access.host : extender.tls.server_name;
    access.skip_verify = extender.tls.insecure;
    access.ca_pem = extender.tls.ca_file.empty() ? extender.tls.ca_pem : TRY(read_file(extender.tls.ca_file));
    access.certificate_pem = extender.tls.certificate_file.empty() ? extender.tls.certificate_pem
                                                                   : TRY(read_file(extender.tls.certificate_file));
    if (!extender.tls.key_file.empty()) TRY(base::check_private(extender.tls.key_file));
    access.key_pem = extender.tls.key_file.empty() ? extender.tls.key_pem : TRY(read_file(extender.tls.key_file));
    return access;
}

std::string names(const std::vector<std::string>& all) {
    return base::to_text(Json(JsonArray(all.begin(), all.end())));
}

// A list of documents; those that are not known are left out.
std::string documents(const std::vector<std::string>& keys, const base::StringMap<Extenders::Text>& texts) {
    std::string out = "[";
    for (const auto& key : keys) {
        const auto found = texts.find(key);
        if (found == texts.end()) continue;
        if (out.size() > 1) out += ',';
        out += *found->second;
    }
    return out + "]";
}

std::string with_verb(const sched::Extender& extender, sched::AskExtender::Verb verb) {
    switch (verb) {
        case sched::AskExtender::Verb::Filter:
            return extender.filter_verb;
        case sched::AskExtender::Verb::Prioritize:
            return extender.prioritize_verb;
        case sched::AskExtender::Verb::Preempt:
            return extender.preempt_verb;
    }
    return "";
}

}  // namespace

Result<Extenders> Extenders::open(std::vector<sched::Extender> extenders) {
    Extenders out;
    for (const auto& extender : extenders) {
        const link::Access access = TRY(access_of(extender));
        out.wires_.push_back(TRY(link::http_wire(access)));
    }
    out.extenders_ = std::move(extenders);
    return out;
}

void Extenders::stop() {
    for (const auto& wire : wires_) wire->stop();
}

void Extenders::put_pod(const std::string& uid, Text text) {
    if (!empty()) pods_.insert_or_assign(uid, std::move(text));
}

void Extenders::put_node(const std::string& name, Text text) {
    if (!empty()) nodes_.insert_or_assign(name, std::move(text));
}

// ExtenderArgs, or ExtenderPreemptionArgs.
std::string Extenders::body_of(const sched::AskExtender& question) const {
    const sched::Extender& extender = extenders_[question.extender];
    const auto pod = pods_.find(question.pod);
    std::string out = "{\"Pod\":" + (pod == pods_.end() ? std::string("null") : *pod->second);
    if (question.verb != sched::AskExtender::Verb::Preempt) {
        if (extender.node_cache_capable) return out + ",\"NodeNames\":" + names(question.nodes) + "}";
        return out + ",\"Nodes\":{\"kind\":\"NodeList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":" +
               documents(question.nodes, nodes_) + "}}";
    }
    std::string victims;
    if (extender.node_cache_capable) {
        JsonArray pods;
        for (const auto& uid : question.victims) pods.push_back(JsonObject{{"UID", uid}});
        victims = base::to_text(Json(std::move(pods)));
    } else {
        victims = documents(question.victims, pods_);
    }
    std::string node;
    base::append_quoted(question.nodes.front(), node);
    return fmt::format("{},\"{}\":{{{}:{{\"Pods\":{},\"NumPDBViolations\":{}}}}}}}", out,
                       extender.node_cache_capable ? "NodeNameToMetaVictims" : "NodeNameToVictims", node, victims,
                       question.violations);
}

void Extenders::ask(const sched::AskExtender& question, Done done) {
    send(question.extender, with_verb(extenders_[question.extender], question.verb), body_of(question),
         std::move(done));
}

void Extenders::bind(const sched::BindPod& bind, Done done) {
    const Json body(
        JsonObject{{"PodName", bind.name}, {"PodNamespace", bind.ns}, {"PodUID", bind.uid}, {"Node", bind.node}});
    send(*bind.extender, extenders_[*bind.extender].bind_verb, base::to_text(body), std::move(done));
}

void Extenders::send(size_t extender, const std::string& verb, std::string body, Done done) {
    link::Wire& wire = *wires_[extender];
    link::WireRequest request{"POST", "/" + verb, std::move(body), "application/json", sched::kMostExtenderReply};
    wire.loop().post(
        [&wire, most = extenders_[extender].timeout, request = std::move(request), done = std::move(done)]() mutable {
            wire.call(std::move(request), most, [done = std::move(done)](link::WireResult result) {
                if (const auto* trouble = std::get_if<link::WireTrouble>(&result)) {
                    return done(base::internal(trouble->what));
                }
                auto& answer = std::get<link::WireAnswer>(result);
                done(link::Reply{answer.code, std::move(answer.body)});
            });
        });
}

}  // namespace berth::run
