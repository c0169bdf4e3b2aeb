#include "store/record.h"

namespace berth::store {

std::string to_text(const Key& key) {
    return key.ns.empty() ? key.kind + " " + key.name : key.kind + " " + key.ns + "/" + key.name;
}

}  // namespace berth::store
