#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "tests/crash/small_server.h"

namespace berth::fleet_test {

// One resource of a server for those who follow it with a selector, as a server across the network tells it: "a.b=c" of
// fields, "x", "!x" or "x=y" of labels; what ceases to match is Gone. Each event is read once, whoever listens.
class SelectedFeeds {
public:
    SelectedFeeds(crash::SmallServer& server, const link::Resource& resource)
        : all_(server.follow({resource.group, resource.version, resource.plural}, [this] { rung_ = true; })) {}

    std::unique_ptr<link::Feed> follow(const link::Resource& resource, std::function<void()> notify) {
        CHECK(resource.only.empty() != resource.labels.empty());
        auto ear = std::make_shared<Ear>();
        ear->notify = std::move(notify);
        ear->term = resource.only.empty() ? resource.labels : "." + resource.only;
        pump();
        by_term_[ear->term].push_back(ear);
        if (ear->term.starts_with('!')) absent_.insert(ear->term.substr(1));
        if (ear->term.starts_with('.')) paths_.insert(ear->term.substr(1, ear->term.find('=') - 1));
        for (const auto& [name, object] : objects_) {
            if (object.terms.contains(ear->term) || matches(object.document(), ear->term))
                ear->waiting.push_back(object.event);
        }
        ear->waiting.push_back({link::FeedEvent::Type::Synced, nullptr, 0});
        return std::make_unique<Feed>(ear);
    }
    // Hands on what has come. True: there was something.
    void pump() {
        while (std::exchange(rung_, false)) {
            for (auto events = all_->poll(1000); !events.empty(); events = all_->poll(1000)) {
                for (const auto& event : events) {
                    if (event.type != link::FeedEvent::Type::Synced) take(event);
                }
            }
        }
    }

private:
    struct Ear {
        std::string term;
        std::function<void()> notify;
        std::deque<link::FeedEvent> waiting;
        bool gone = false;
    };
    class Feed final : public link::Feed {
    public:
        explicit Feed(std::shared_ptr<Ear> ear) : ear_(std::move(ear)) {}
        ~Feed() override { ear_->gone = true; }
        std::vector<link::FeedEvent> poll(size_t) override {
            std::vector<link::FeedEvent> out(ear_->waiting.begin(), ear_->waiting.end());
            ear_->waiting.clear();
            return out;
        }

    private:
        const std::shared_ptr<Ear> ear_;
    };
    struct Object {
        link::FeedEvent event;
        std::set<std::string> terms;  // that it matches, of those that somebody has
        Json document() const { return *base::parse_json(*event.text); }
    };

    void take(const link::FeedEvent& event) {
        const Json document = *base::parse_json(*event.text);
        const std::string name(base::find_string(document, {"metadata", "name"}));
        const bool put = event.type == link::FeedEvent::Type::Put;
        const auto now = put ? terms_of(document) : std::set<std::string>();
        Object& object = objects_[name];
        for (const auto& term : object.terms) {
            if (!now.contains(term)) tell(term, {link::FeedEvent::Type::Gone, event.text, event.revision});
        }
        for (const auto& term : now) tell(term, event);
        if (!put) {
            objects_.erase(name);
            return;
        }
        object = {event, now};
    }
    std::set<std::string> terms_of(const Json& document) const {
        std::set<std::string> out;
        const auto add = [&](const std::string& term) {
            if (by_term_.contains(term)) out.insert(term);
        };
        if (const Json* labels = base::find(document, {"metadata", "labels"})) {
            for (const auto& label : labels->get_object()) {
                add(label.key());
                add(std::string(label.key()) + "=" + std::string(label.value().get_string()));
            }
        }
        for (const auto& label : absent_) {
            if (base::find(document, {"metadata", "labels", label}) == nullptr) add("!" + label);
        }
        for (const auto& path : paths_) add("." + path + "=" + field(document, path));
        return out;
    }
    bool matches(const Json& document, const std::string& term) const { return terms_of(document).contains(term); }
    static std::string field(const Json& document, const std::string& path) {
        const Json* at = &document;
        for (size_t from = 0; from < path.size() && at != nullptr;) {
            const auto dot = std::min(path.find('.', from), path.size());
            at = base::find(*at, {std::string_view(path).substr(from, dot - from)});
            from = dot + 1;
        }
        return at != nullptr && at->is_string() ? std::string(at->get_string()) : "";
    }
    void tell(const std::string& term, const link::FeedEvent& event) {
        auto& ears = by_term_.at(term);
        std::erase_if(ears, [](const auto& ear) { return ear->gone; });
        for (const auto& ear : ears) {
            ear->waiting.push_back(event);
            ear->notify();
        }
    }

    bool rung_ = true;
    std::map<std::string, Object> objects_;
    std::map<std::string, std::vector<std::shared_ptr<Ear>>> by_term_;
    std::set<std::string> absent_;
    std::set<std::string> paths_;
    const std::unique_ptr<link::Feed> all_;
};

}  // namespace berth::fleet_test
