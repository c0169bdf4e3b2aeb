#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/labels.h"

namespace berth::model {

class Reader;

struct OwnerRef {
    std::string api_version;
    std::string kind;
    std::string name;
    std::string uid;
    bool controller = false;
    bool operator==(const OwnerRef&) const = default;
};

// What every object carries.
struct Meta {
    std::string ns;
    std::string name;
    std::string uid;
    uint64_t revision = 0;
    base::Time created;
    std::optional<base::Time> deleted;  // deletionTimestamp: it is going, but still here
    Labels labels;
    Labels annotations;
    std::vector<OwnerRef> owners;

    // "namespace/name", or "name" where there is no namespace.
    std::string full_name() const { return ns.empty() ? name : ns + "/" + name; }
    const OwnerRef* controller() const;
};

Meta read_meta(const Reader& object);
Labels read_labels(const Reader& field);
std::optional<base::Time> read_time(const Reader& field);

}  // namespace berth::model
