#include "ledger/spec_pool.h"

#include <algorithm>

namespace berth::ledger {

SpecPool::Spec SpecPool::intern(const Spec& spec) {
    if (owns(spec.get())) return spec;
    if (by_value_.size() >= next_sweep_) drop_unused();
    const auto [found, fresh] = by_value_.insert({spec, spec->hash()});
    if (fresh) known_.insert(spec.get());
    last_ = found->spec.get();
    return found->spec;
}

// Specs that only the pool holds. Sweeping when the pool has doubled costs a constant share of the insertions.
void SpecPool::drop_unused() {
    absl::erase_if(by_value_, [&](const Pooled& pooled) {
        if (pooled.spec.use_count() > 1) return false;
        known_.erase(pooled.spec.get());
        return true;
    });
    last_ = nullptr;
    next_sweep_ = std::max<size_t>(1024, by_value_.size() * 2);
}

}  // namespace berth::ledger
