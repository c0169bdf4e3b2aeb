#include "cli/share_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace berth::cli {
namespace {

Status read_storage(const std::vector<std::string>& given, model::Resources& out) {
    for (const auto& text : given) {
        const auto equals = text.find('=');
        const auto amount =
            equals == text.npos ? Result<Quantity>(base::bad_request("")) : Quantity::parse(text.substr(equals + 1));
        if (!amount || amount->is_negative())
            return base::bad_request(fmt::format("--storage: \"{}\" is not CLASS=AMOUNT", text));
        const std::string name = text.substr(0, equals);
        const std::string key =
            name.empty() ? std::string(model::kStorageKey) : fmt::format("{}{}", name, model::kClassStorageSuffix);
        out.set(TRY(model::intern_resource(key)), amount->value());
    }
    return {};
}

Status read_victims(const std::string& text, std::optional<uint64_t>& seed) {
    if (text == "newest") return {};
    const std::string_view rest = std::string_view(text).substr(std::min<size_t>(text.size(), 6));
    uint64_t number = 0;
    const bool numbered =
        rest.starts_with(':') && rest.size() > 1 &&
        std::from_chars(rest.data() + 1, rest.data() + rest.size(), number).ptr == rest.data() + rest.size();
    if (!text.starts_with("random") || (!rest.empty() && !numbered))
        return base::bad_request(fmt::format("--victims: \"{}\" is neither newest nor random[:SEED]", text));
    seed = number;
    return {};
}

}  // namespace

void add_share_flags(CommandLine& line, ShareFlags& flags) {
    line.option("--policy", flags.policy,
                "surplus: what is not reserved is shared; floor: the larger of guarantee and weighted share")
        .one_of({"surplus", "floor"})
        .show_default();
    line.flag("--no-spread", flags.no_spread, "what dominant shares leave is not filled by weight");
    line.option("--infinite", flags.infinite, "namespaces that get what they ask for, by commas (default kube-system)")
        .separated_by(',');
    line.duration("--min-run", flags.min_run, "younger pods are not evicted");
    line.option("--victims", flags.victims, "newest, or random[:SEED]").show_default();
    line.option("--limits-factor", flags.limits_factor,
                "limits.* may add up to so many times what is allocatable; default: without end");
    line.option("--storage", flags.storage, "CLASS=AMOUNT: the capacity of a storage class; default: without end");
}

Result<share::Settings> read_share_flags(const ShareFlags& flags) {
    share::Settings settings;
    settings.policy = flags.policy == "floor" ? share::Policy::Floor : share::Policy::Surplus;
    settings.spread = !flags.no_spread;
    settings.min_run = flags.min_run;
    if (!flags.infinite.empty()) settings.infinite = {flags.infinite.begin(), flags.infinite.end()};
    if (!flags.limits_factor.empty()) {
        const auto factor = Quantity::parse(flags.limits_factor);
        if (!factor || factor->is_negative())
            return base::bad_request(fmt::format("--limits-factor: \"{}\" is no number", flags.limits_factor));
        settings.limits_factor = static_cast<double>(factor->milli()) / 1000;
    }
    TRY(read_victims(flags.victims, settings.random_victims));
    TRY(read_storage(flags.storage, settings.storage));
    return settings;
}

}  // namespace berth::cli
