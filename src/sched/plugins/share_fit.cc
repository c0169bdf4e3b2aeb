// ShareFit: whether the pod's namespace may have more, where it is asked for shares (sched/shares.h).
#include "sched/draw.h"
#include "sched/plugins/registry.h"
#include "sched/shares.h"

namespace berth::sched::plugins {
namespace {

constexpr PluginId kPlugin = PluginId::ShareFit;

// The scheduler asks before it looks for a row, so the fast way is for pods that nothing keeps from starting.
class ShareFit final : public Filter {
public:
    PluginId plugin() const override { return kPlugin; }
    bool concerns(const Ask& ask, const View&) const override { return ask.shares != nullptr && ask.pod != nullptr; }

    // What a reservation holds for the namespace is its already: whoever draws that asks for the rest alone.
    void strike(const Ask& ask, const View& ledger, Strikes& strikes) const override {
        if (!concerns(ask, ledger)) return;
        const std::string why = ask.shares->refusal(ledger, *ask.spec, ask.pod->meta.uid);
        if (why.empty()) return;
        const auto refused = strikes.refusal(kPlugin, {why}, true);
        if (ask.credits.empty()) return strikes.refuse(refused);
        strikes.each_open([&](Row row) {
            if (!ask.credit(row)) return strikes.strike(row, refused);
            const Resources paid = ask.shares->paid(ledger, *ask.spec, charges_on(ask, ledger, row));
            const std::string here = ask.shares->refusal(ledger, *ask.spec, ask.pod->meta.uid, paid);
            if (!here.empty()) strikes.strike(row, refused);
        });
    }
};

}  // namespace

std::shared_ptr<const Filter> share_fit() {
    return std::make_shared<ShareFit>();
}

}  // namespace berth::sched::plugins
