#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/string_map.h"
#include "link/api_client.h"
#include "link/wire.h"
#include "sched/extender.h"
#include "sched/plan.h"

namespace berth::run {

// The way to extenders: one HTTP client each, with the objects they are told about as their documents. Replies are
// bounded in size and time.
class Extenders {
public:
    using Text = std::shared_ptr<const std::string>;
    using Done = std::function<void(Result<link::Reply>)>;

    // An error when an address or a certificate cannot be used.
    static Result<Extenders> open(std::vector<sched::Extender> extenders);
    Extenders() = default;
    Extenders(Extenders&&) = default;
    Extenders& operator=(Extenders&&) = default;
    ~Extenders() { stop(); }

    bool empty() const { return wires_.empty(); }
    // Documents as the feeds bring them. Nothing is kept where nobody is asked.
    void put_pod(const std::string& uid, Text text);
    void remove_pod(const std::string& uid) { pods_.erase(uid); }
    void put_node(const std::string& name, Text text);
    void remove_node(const std::string& name) { nodes_.erase(name); }

    // `done` is called once, on any thread. An Error means that there was no answer, or none that may be used.
    void ask(const sched::AskExtender& question, Done done);
    void bind(const sched::BindPod& bind, Done done);
    // Nothing is called back after that.
    void stop();

private:
    std::string body_of(const sched::AskExtender& question) const;
    void send(size_t extender, const std::string& verb, std::string body, Done done);

    std::vector<sched::Extender> extenders_;
    std::vector<std::unique_ptr<link::Wire>> wires_;
    base::StringMap<Text> pods_;   // by uid
    base::StringMap<Text> nodes_;  // by name
};

}  // namespace berth::run
