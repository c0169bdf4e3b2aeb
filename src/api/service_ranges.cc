#include "api/service_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/wire.h"
#include "model/kinds/path.h"

namespace berth::api {
namespace {

constexpr std::string_view kKind = "services";
constexpr std::string_view kPrefix = "10.96.";
constexpr size_t kLately = 256;
constexpr size_t kBatch = 1000;

// 10.96.3.4 is 3 * 256 + 4.
std::optional<int64_t> number_of(std::string_view address) {
    if (!address.starts_with(kPrefix)) return std::nullopt;
    const char* const end = address.data() + address.size();
    int64_t high = 0, low = 0;
    const auto [dot, bad] = std::from_chars(address.data() + kPrefix.size(), end, high);
    if (bad != std::errc() || dot == end || *dot != '.') return std::nullopt;
    const auto [last, worse] = std::from_chars(dot + 1, end, low);
    if (worse != std::errc() || last != end || low > 255) return std::nullopt;
    return high * 256 + low;
}

}  // namespace

uint32_t* NumberRange::holders(int64_t number) {
    const int64_t at = number - first_;
    return at >= 0 && at < static_cast<int64_t>(holders_.size()) ? &holders_[static_cast<size_t>(at)] : nullptr;
}

void NumberRange::hold(int64_t number) {
    uint32_t* count = holders(number);
    if (count != nullptr && (*count)++ == 0) ++held_;
}

void NumberRange::let_go(int64_t number) {
    uint32_t* count = holders(number);
    if (count != nullptr && --*count == 0) --held_;
}

void NumberRange::clear() {
    std::fill(holders_.begin(), holders_.end(), 0);
    held_ = 0;
}

bool NumberRange::lately(int64_t number) const {
    return std::find(lately_.begin(), lately_.end(), number) != lately_.end();
}

std::optional<int64_t> NumberRange::give(Ids& ids) {
    if (held_ == holders_.size()) return std::nullopt;
    const size_t start = ids.below(holders_.size());
    std::optional<int64_t> found;
    for (size_t i = 0; i < holders_.size(); ++i) {
        const size_t at = (start + i) % holders_.size();
        if (holders_[at] != 0) continue;
        const int64_t number = first_ + static_cast<int64_t>(at);
        const bool again = lately(number);
        if (!found || !again) found = number;
        if (!again) break;
    }
    lately_.push_back(*found);
    if (lately_.size() > kLately) lately_.pop_front();
    return found;
}

template <class F>
Status ServiceRanges::each_number(const store::Record& record, F f) {
    const Json service = TRY(stored_object(record));
    if (const auto number = number_of(model::string_at(service, ".spec.clusterIP")))
        f(&ServiceRanges::addresses_, *number);
    for (const auto& port : model::list_at(service, ".spec.ports")) {
        f(&ServiceRanges::ports_, model::int_at(port, ".nodePort"));
    }
    return {};
}

Status ServiceRanges::begin() {
    addresses_.clear();
    ports_.clear();
    const auto page = TRY(store_.list({std::string(kKind)}));
    for (const auto& record : page.records) {
        TRY(each_number(*record, [&](auto range, int64_t number) { (this->*range).hold(number); }));
    }
    seen_ = page.revision;
    return {};
}

Status ServiceRanges::follow() {
    if (!seen_) return begin();
    const auto watch = store_.watch({std::string(kKind)}, *seen_);
    if (!watch) return begin();  // the store forgot what happened since
    while (true) {
        const auto events = (*watch)->poll(kBatch);
        if (!events) return begin();
        seen_ = (*watch)->progress();
        if (events->empty()) return {};
        for (const auto& event : *events) {
            if (event->type != store::Event::Type::Deleted) {
                TRY(each_number(*event->record, [&](auto range, int64_t number) { (this->*range).hold(number); }));
            }
            if (event->previous) {
                TRY(each_number(*event->previous, [&](auto range, int64_t number) { (this->*range).let_go(number); }));
            }
        }
    }
}

Result<int64_t> ServiceRanges::give(NumberRange& range, Ids& ids, std::string_view what) {
    const std::lock_guard lock(mutex_);
    TRY(follow());
    const auto number = range.give(ids);
    if (number) return *number;
    return base::internal(fmt::format("Internal error occurred: failed to allocate a {}: range is full", what));
}

Result<std::string> ServiceRanges::address(Ids& ids) {
    const int64_t number = TRY(give(addresses_, ids, "serviceIP"));
    return fmt::format("{}{}.{}", kPrefix, number / 256, number % 256);
}

Result<int64_t> ServiceRanges::node_port(Ids& ids) {
    return give(ports_, ids, "nodePort");
}

}  // namespace berth::api
