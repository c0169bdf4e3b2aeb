#include "cli/until.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "link/bell.h"

namespace berth::cli {

bool until(link::Server& server, const link::Resource& resource, int seconds,
           const std::function<bool(const Json& object, bool gone)>& enough,
           const std::function<bool()>& enough_listed) {
    const auto& clock = base::system_clock();
    const auto end = clock.now() + std::chrono::seconds(seconds);
    link::Bell bell;
    const auto feed = server.follow(resource, [&bell] { bell.ring(); });
    while (clock.now() < end) {
        const auto events = feed->poll(1000);
        for (const auto& event : events) {
            if (event.type == link::FeedEvent::Type::Synced) {
                if (enough_listed && enough_listed()) return true;
                continue;
            }
            const auto object = base::parse_json(*event.text);
            if (object && enough(*object, event.type == link::FeedEvent::Type::Gone)) return true;
        }
        if (events.empty()) bell.wait(end - clock.now());
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
