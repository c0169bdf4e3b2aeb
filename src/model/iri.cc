#include "model/iri.h"

namespace berth::model {

bool IriFilter::matches(const IriMeta& meta) const {
    if (!id.empty() && id != meta.id) return false;
    for (const auto& [key, value] : selector) {
        const std::string* has = meta.labels.find(key);
        if (has == nullptr || *has != value) return false;
    }
    return true;
}

}  // namespace berth::model
