#include "model/consumer.h"

#include "base/int128.h"
#include "model/quota.h"
#include "model/reader.h"
#include "model/times.h"

namespace berth::model {
namespace {

constexpr int64_t kHundred = 100'000;  // percent, in thousandths

Portion read_portion(const Reader& list, bool with_counts) {
    Portion out;
    list.entries([&](std::string_view key, const Reader& value) {
        const auto id = quota_resource(key);
        if (!id) return value.wrong(id.error().message);
        if (!with_counts && is_count(resource_name(*id))) return value.wrong("counts are for hard only");
        const std::string text = value.text_or_number();
        const bool part = text.ends_with('%');
        const auto quantity = Quantity::parse(part ? std::string_view(text).substr(0, text.size() - 1) : text);
        if (!quantity) return value.wrong(quantity.error().message);
        if (quantity->is_negative()) return value.wrong("must be greater than or equal to 0");
        if (!part) return out.amounts.set(*id, quota_amount(*id, *quantity));
        if (quantity->milli() > kHundred) return value.wrong("must be at most 100%");
        out.percents.set(*id, quantity->milli());
    });
    return out;
}

}  // namespace

Resources Portion::of(const Resources& whole) const {
    Resources out = amounts;
    percents.for_each([&](ResourceId id, int64_t part) {
        if (!whole.has(id)) return;
        out.set(id, static_cast<int64_t>(static_cast<int128>(whole.get(id)) * part / kHundred));
    });
    return out;
}

Result<Consumer> read_consumer(JsonView object) {
    std::string trouble;
    const Reader root(object, trouble);
    Consumer out;
    out.meta = read_meta(root);
    const Reader spec = root["spec"];
    out.hard = read_portion(spec["hard"], true);
    out.reserved = read_portion(spec["reserved"], false);
    const Reader weight = spec["weight"];
    out.weight = weight.integer(1);
    if (out.weight < 0 || out.weight > 1'000'000) weight.wrong("must be from 0 to 1000000");
    out.parent = spec["parent"].text();
    out.lending_limit = read_quota_amounts(spec["lendingLimit"]);
    out.borrowing_limit = read_quota_amounts(spec["borrowingLimit"]);
    out.request = read_quota_amounts(spec["request"]);
    const Reader grace = spec["gracePeriod"];
    if (!grace.text().empty()) {
        const auto duration = parse_duration(grace.text());
        if (!duration || duration->count() < 0) grace.wrong("is no duration such as 30s");
        if (duration) out.grace = *duration;
    }
    out.reclaimable = spec["reclaimable"].flag(true);
    if (!trouble.empty()) return base::bad_request("Consumer \"" + out.meta.name + "\": " + trouble);
    return out;
}

}  // namespace berth::model
