#include "cli/until.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "cli/interrupt.h"
#include "link/wake_event.h"

namespace berth::cli {
namespace {

// The wake that an interrupt rings, while it is there.
class Waking {
public:
    Waking(Interrupt* interrupt, link::WakeEvent& wake) : interrupt_(interrupt) {
        if (interrupt_ != nullptr) interrupt_->wake(&wake);
    }
    ~Waking() {
        if (interrupt_ != nullptr) interrupt_->wake(nullptr);
    }
    Waking(const Waking&) = delete;
    Waking& operator=(const Waking&) = delete;
    bool interrupted() const { return interrupt_ != nullptr && interrupt_->came(); }

private:
    Interrupt* interrupt_;
};

}  // namespace

bool until(link::ApiClient& server, const link::Resource& resource, int seconds,
           const std::function<bool(const Json& object, bool gone)>& enough, const std::function<bool()>& enough_listed,
           Interrupt* interrupt) {
    const auto& clock = base::system_clock();
    const auto end = clock.now() + std::chrono::seconds(seconds);
    link::WakeEvent wake;
    const Waking waking(interrupt, wake);
    const auto feed = server.follow(resource, [&wake] { wake.notify(); });
    while (clock.now() < end && !waking.interrupted()) {
        const auto events = feed->poll(1000);
        for (const auto& event : events) {
            if (event.type == link::FeedEvent::Type::Synced) {
                if (enough_listed && enough_listed()) return true;
                continue;
            }
            const auto object = base::parse_json(*event.text);
            if (object && enough(*object, event.type == link::FeedEvent::Type::Gone)) return true;
        }
        if (events.empty()) wake.wait(end - clock.now());
    }
    return false;
}

std::string condition_message(const Json& object, std::string_view type) {
    const Json* conditions = base::find(object, {"status", "conditions"});
    if (conditions == nullptr || !conditions->is_array()) return {};
    for (const auto& condition : conditions->as_array()) {
        if (base::find_string(condition, {"type"}) == type)
            return std::string(base::find_string(condition, {"message"}));
    }
    return {};
}

std::string percent_encoded(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                           c == '.' || c == '_' || c == '~';
        out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return out;
}

}  // namespace berth::cli
