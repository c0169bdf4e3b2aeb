#include "model/taints.h"

#include <algorithm>

namespace berth::model {

bool tolerates(const Toleration& toleration, const Taint& taint) {
    if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
    if (!toleration.key.empty() && toleration.key != taint.key) return false;
    if (toleration.op.empty() || toleration.op == "Equal") return toleration.value == taint.value;
    return toleration.op == "Exists";
}

bool tolerates(const std::vector<Toleration>& tolerations, const Taint& taint) {
    return std::any_of(tolerations.begin(), tolerations.end(),
                       [&](const Toleration& toleration) { return tolerates(toleration, taint); });
}

}  // namespace berth::model
