#include "ledger/images.h"

namespace berth::ledger {

void Images::add(const model::Node& node) {
    for (const auto& image : node.images) {
        for (const auto& name : image.names) {
            Entry& entry = entries_[name];
            if (entry.nodes++ == 0) entry.size = image.size;
        }
    }
}

void Images::remove(const model::Node& node) {
    for (const auto& image : node.images) {
        for (const auto& name : image.names) {
            const auto found = entries_.find(name);
            if (found != entries_.end() && --found->second.nodes == 0) entries_.erase(found);
        }
    }
}

const Images::Entry* Images::find(const std::string& name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second;
}

}  // namespace berth::ledger
