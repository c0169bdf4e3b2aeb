#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/call.h"
#include "model/field_selector.h"
#include "model/selector.h"

namespace berth::api {

// What selectors look at in one object: its labels and the fields its kind offers, in the kind's order.
struct Facets {
    Labels labels;
    std::vector<std::string> fields;
};
Facets facets_of(const model::Kind& kind, const store::Record& record);

// The facets of the newest records, so that a thousand watches with selectors read an event once. Any thread.
class FacetCache {
public:
    std::shared_ptr<const Facets> of(const model::Kind& kind, const store::RecordPtr& record);

private:
    struct Slot {
        store::RecordPtr record;  // keeps the address from being used again
        const model::Kind* kind;
        std::shared_ptr<const Facets> facets;
    };
    std::mutex mutex_;
    std::unordered_map<const store::Record*, Slot> slots_;
    std::deque<const store::Record*> order_;
    size_t bytes_ = 0;  // of the records held
};

// The label and field selectors of a request.
class Filter {
public:
    // 400 for a selector that cannot be read or a field the kind does not offer.
    static Result<Filter> parse(const model::Kind& kind, const CallOptions& options);

    bool matches(const store::Record& record) const;
    bool matches(const store::RecordPtr& record, FacetCache& cache) const;
    bool everything() const { return labels_.matches_everything() && fields_.matches_everything(); }
    // The name or namespace that the field selector demands, if it does.
    std::optional<std::string> exact(std::string_view field) const;

private:
    bool matches_key(const store::Key& key) const;
    bool may_match(const store::Record& record) const;
    bool needs_facets() const;
    bool matches(const Facets& facets, const store::Key& key) const;
    std::string_view value_of(const std::string& field, const Facets& facets, const store::Key& key) const;

    const model::Kind* kind_ = nullptr;
    Selector labels_;
    FieldSelector fields_;
    std::vector<std::string> needles_;  // the text of every object that matches has them
};

}  // namespace berth::api
