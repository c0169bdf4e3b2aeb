#include "control/descheduler_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/json_view.h"
#include "model/kinds/path.h"
#include "model/quantity.h"
#include "model/read_selectors.h"
#include "model/reader.h"
#include "model/times.h"

namespace berth::control {
namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

Error wrong(std::string_view field, const Json& value, std::string_view what) {
    return base::bad_request(fmt::format("{}: {} {}", field, base::to_text(value), what));
}

// An object of which every field is read or refused: what somebody wrote is never passed over in silence.
class Fields {
public:
    Fields(const JsonObject& object, std::string path) : object_(object), path_(std::move(path)) {}

    const Json* take(std::string_view name) {
        known_.emplace_back(name);
        const Json* value = object_.if_contains(name);
        return value == nullptr || value->is_null() ? nullptr : value;
    }
    std::string at(std::string_view name) const { return fmt::format("{}.{}", path_, name); }

    Result<std::optional<int64_t>> number(std::string_view name, int64_t least = 0, int64_t most = kMost) {
        const Json* value = take(name);
        if (value == nullptr) return std::optional<int64_t>();
        if (!value->is_int64() || value->get_int64() < least || value->get_int64() > most)
            return wrong(at(name), *value, fmt::format("is no whole number from {} to {}", least, most));
        return std::optional(value->get_int64());
    }
    Status number_into(std::string_view name, int64_t& out, int64_t least = 0, int64_t most = kMost) {
        if (const auto given = TRY(number(name, least, most))) out = *given;
        return {};
    }
    Status flag_into(std::string_view name, bool& out) {
        const Json* value = take(name);
        if (value == nullptr) return {};
        if (!value->is_bool()) return wrong(at(name), *value, "is neither true nor false");
        out = value->get_bool();
        return {};
    }
    Result<std::optional<base::Duration>> duration(std::string_view name) {
        const Json* value = take(name);
        if (value == nullptr) return std::optional<base::Duration>();
        const auto read = value->is_string() ? model::parse_duration(std::string_view(value->get_string()))
                                             : Result<base::Duration>(base::bad_request(""));
        if (!read || *read < base::Duration::zero()) return wrong(at(name), *value, "is no duration such as \"5m\"");
        return std::optional(*read);
    }
    // Of cpu and memory, in percent.
    Status percents_into(std::string_view name, LoadPercents& out) {
        const Json* value = take(name);
        if (value == nullptr) return {};
        if (!value->is_object()) return wrong(at(name), *value, "is no object");
        Fields inner(value->get_object(), at(name));
        out.cpu = TRY(inner.number("cpu", 0, 100));
        out.memory = TRY(inner.number("memory", 0, 100));
        return inner.end();
    }
    Result<std::string> word(std::string_view name) {
        const Json* value = take(name);
        if (value == nullptr) return std::string();
        if (!value->is_string()) return wrong(at(name), *value, "is no text");
        return std::string(value->get_string());
    }
    Status words_into(std::string_view name, std::vector<std::string>& out) {
        const Json* value = take(name);
        if (value == nullptr) return {};
        if (!value->is_array()) return wrong(at(name), *value, "is no list");
        for (const auto& word : value->get_array()) {
            if (!word.is_string()) return wrong(at(name), word, "is no text");
            out.emplace_back(word.get_string());
        }
        return {};
    }
    Status end() const {
        for (const auto& field : object_) {
            if (std::find(known_.begin(), known_.end(), std::string_view(field.key())) == known_.end())
                return base::bad_request(fmt::format("{}: nothing here heeds it", at(field.key())));
        }
        return {};
    }

private:
    const JsonObject& object_;
    const std::string path_;
    std::vector<std::string> known_;
};

Result<const JsonObject*> object_at(Fields& fields, std::string_view name) {
    static const JsonObject kNone;
    const Json* value = fields.take(name);
    if (value == nullptr) return &kNone;
    if (!value->is_object()) return wrong(fields.at(name), *value, "is no object");
    return &value->get_object();
}

// metav1.LabelSelector; absent: nullopt.
Result<std::optional<Selector>> read_selector(Fields& fields, std::string_view name) {
    const Json* given = fields.take(name);
    if (given == nullptr) return std::optional<Selector>();
    if (!given->is_object()) return wrong(fields.at(name), *given, "is no object");
    Fields inner(given->get_object(), fields.at(name));
    for (const auto* known : {"matchLabels", "matchExpressions"}) inner.take(known);
    TRY(inner.end());
    base::JsonParser parser;
    const std::string text = base::to_text(*given);
    const auto view = parser.parse(text);
    std::string trouble;
    auto read = view ? model::to_selector(model::read_label_selector(model::Reader(*view, trouble)))
                     : Result<Selector>(view.error());
    if (!trouble.empty()) return base::bad_request(fmt::format("{}: {}", fields.at(name), trouble));
    if (!read) return base::bad_request(fmt::format("{}: {}", fields.at(name), read.error().message));
    return std::optional(std::move(*read));
}

// Calls read(fields) for each object of a list.
template <class Read>
Status each_of(Fields& fields, std::string_view name, Read read) {
    const Json* list = fields.take(name);
    if (list == nullptr) return {};
    if (!list->is_array()) return wrong(fields.at(name), *list, "is no list");
    size_t index = 0;
    for (const auto& item : list->get_array()) {
        const std::string at = fmt::format("{}[{}]", fields.at(name), index++);
        if (!item.is_object()) return wrong(at, item, "is no object");
        Fields inner(item.get_object(), at);
        TRY(read(inner));
        TRY(inner.end());
    }
    return {};
}

// What a pool and the nodes of none have alike. What a pool does not say of weights and patience is as beside it.
Status read_measure(Fields& fields, LoadMeasure& out) {
    TRY(fields.percents_into("lowThresholds", out.low));
    TRY(fields.percents_into("highThresholds", out.high));
    TRY(fields.percents_into("prodLowThresholds", out.prod_low));
    TRY(fields.percents_into("prodHighThresholds", out.prod_high));
    TRY(fields.flag_into("useDeviationThresholds", out.by_deviation));
    const JsonObject* weights = TRY(object_at(fields, "resourceWeights"));
    Fields weight(*weights, fields.at("resourceWeights"));
    TRY(weight.number_into("cpu", out.cpu_weight, 0, 100));
    TRY(weight.number_into("memory", out.memory_weight, 0, 100));
    TRY(weight.end());
    const JsonObject* anomaly = TRY(object_at(fields, "anomalyCondition"));
    Fields condition(*anomaly, fields.at("anomalyCondition"));
    TRY(condition.number_into("consecutiveAbnormalities", out.abnormal, 1));
    TRY(condition.end());
    if (auto selector = TRY(read_selector(fields, "nodeSelector"))) out.nodes = std::move(*selector);
    for (const auto& [low, high, what] : {std::tuple(&out.low, &out.high, "highThresholds"),
                                          std::tuple(&out.prod_low, &out.prod_high, "prodHighThresholds")}) {
        const bool crossed = (low->cpu && high->cpu && *low->cpu > *high->cpu) ||
                             (low->memory && high->memory && *low->memory > *high->memory);
        if (crossed && !out.by_deviation)
            return base::bad_request(fmt::format("{}: below the low ones", fields.at(what)));
    }
    return {};
}

Status read_pools(Fields& args, LoadRules& out) {
    return each_of(args, "nodePools", [&](Fields& fields) -> Status {
        LoadMeasure pool;
        pool.cpu_weight = out.cpu_weight;
        pool.memory_weight = out.memory_weight;
        pool.abnormal = out.abnormal;
        pool.name = TRY(fields.word("name"));
        TRY(read_measure(fields, pool));
        out.pools.push_back(std::move(pool));
        return {};
    });
}

Status read_namespaces(Fields& fields, std::string_view name, Movable& out) {
    const JsonObject* said = TRY(object_at(fields, name));
    Fields namespaces(*said, fields.at(name));
    TRY(namespaces.words_into("include", out.namespaces));
    TRY(namespaces.words_into("exclude", out.not_namespaces));
    return namespaces.end();
}

Status read_low_node_load(const JsonObject& object, LoadRules& out) {
    Fields args(object, "LowNodeLoad");
    for (const auto* name : {"apiVersion", "kind"}) args.take(name);
    bool paused = false;
    TRY(args.flag_into("paused", paused));
    out.enable = !paused;
    TRY(args.flag_into("dryRun", out.dry_run));
    TRY(read_measure(args, out));
    TRY(read_pools(args, out));
    TRY(args.flag_into("nodeFit", out.node_fit));
    TRY(args.number_into("numberOfNodes", out.number_of_nodes));
    int64_t seconds = out.expiration / std::chrono::seconds(1);
    TRY(args.number_into("nodeMetricExpirationSeconds", seconds, 1));
    out.expiration = std::chrono::seconds(seconds);
    TRY(read_namespaces(args, "evictableNamespaces", out.movable));
    const auto read_selectors = [&](Fields& fields) -> Status {
        TRY(fields.word("name"));
        if (auto selector = TRY(read_selector(fields, "selector"))) out.movable.labels.push_back(std::move(*selector));
        return {};
    };
    TRY(each_of(args, "podSelectors", read_selectors));
    return args.end();
}

// 3 or "10%".
Status read_portion(Fields& args, std::string_view name, MigrationLimits::Portion& out) {
    const Json* value = args.take(name);
    if (value == nullptr) return {};
    if (value->is_int64() && value->get_int64() > 0 && value->get_int64() <= kMost) {
        out.count = value->get_int64();
        return {};
    }
    const std::string text = value->is_string() ? std::string(value->get_string()) : "";
    const bool percent = text.size() > 1 && text.size() <= 4 && text.back() == '%' &&
                         std::all_of(text.begin(), text.end() - 1, [](char c) { return c >= '0' && c <= '9'; });
    if (!percent) return wrong(args.at(name), *value, "is neither a number nor a percentage");
    out.percent = std::stoll(text);
    return {};
}

// A number a second, 10, 0.5 or "0.5".
Status read_pace(Fields& args, EvictionPace& out) {
    if (const Json* value = args.take("evictQPS")) {
        const auto rate =
            Quantity::parse(value->is_string() ? std::string(value->get_string()) : base::to_text(*value));
        if (!rate || rate->milli() <= 0 || rate->milli() > 1000 * kMost)
            return wrong(args.at("evictQPS"), *value, "is no number above 0");
        out.milli_per_second = rate->milli();
    }
    return args.number_into("evictBurst", out.burst, 1);
}

Status read_movable(Fields& args, Movable& out) {
    TRY(args.flag_into("skipCheckExpectedReplicas", out.few_replicas));
    TRY(args.flag_into("evictSystemCriticalPods", out.critical));
    TRY(args.flag_into("evictLocalStoragePods", out.local_storage));
    bool no_claims = !out.claims;
    TRY(args.flag_into("ignorePvcPods", no_claims));
    out.claims = !no_claims;
    const JsonObject* threshold = TRY(object_at(args, "priorityThreshold"));
    Fields priority(*threshold, args.at("priorityThreshold"));
    if (const auto value = TRY(priority.number("value"))) out.below_priority = *value;
    return priority.end();
}

Status read_migration(const JsonObject& object, DeschedulerConfig& out) {
    Fields args(object, "MigrationController");
    for (const auto* name : {"apiVersion", "kind"}) args.take(name);
    TRY(args.number_into("maxMigratingPerNode", out.limits.per_node, 1));
    out.limits.globally = TRY(args.number("maxMigratingGlobally", 1));
    out.limits.per_namespace = TRY(args.number("maxMigratingPerNamespace", 1));
    TRY(read_portion(args, "maxMigratingPerWorkload", out.limits.per_workload));
    TRY(read_portion(args, "maxUnavailablePerWorkload", out.limits.unavailable));
    TRY(read_pace(args, out.pace));
    TRY(read_movable(args, out.load.movable));
    if (const Json* mode = args.take("defaultJobMode")) {
        if (*mode != Json("ReservationFirst") && *mode != Json("EvictDirectly"))
            return wrong(args.at("defaultJobMode"), *mode, "is neither ReservationFirst nor EvictDirectly");
        out.load.job_mode = std::string(mode->get_string());
    }
    if (const auto ttl = TRY(args.duration("defaultJobTTL"))) out.load.job_ttl = model::duration_text(*ttl);
    const JsonObject* limiters = TRY(object_at(args, "objectLimiters"));
    Fields limiter(*limiters, args.at("objectLimiters"));
    const JsonObject* workload = TRY(object_at(limiter, "workload"));
    Fields of_workload(*workload, limiter.at("workload"));
    if (const auto window = TRY(of_workload.duration("duration"))) out.limits.window = *window;
    TRY(read_portion(of_workload, "maxMigrating", out.limits.in_window));
    TRY(of_workload.end());
    TRY(limiter.end());
    out.load.limits = out.limits;
    return args.end();
}

}  // namespace

Result<DeschedulerConfig> read_descheduler_config(const Json& document) {
    DeschedulerConfig out;
    if (!document.is_object()) return base::bad_request("a DeschedulerConfiguration must be an object");
    if (model::string_at(document, ".kind") != "DeschedulerConfiguration")
        return base::bad_request(
            fmt::format("kind: \"{}\" is not DeschedulerConfiguration", model::string_at(document, ".kind")));
    Fields fields(document.get_object(), "DeschedulerConfiguration");
    if (const auto interval = TRY(fields.duration("deschedulingInterval"));
        interval && *interval > base::Duration::zero())
        out.load.interval = *interval;
    for (const auto& profile : model::list_at(document, ".profiles")) {
        for (const auto& plugin : model::list_at(profile, ".pluginConfig")) {
            const auto name = model::string_at(plugin, ".name");
            const auto& args = model::members_at(plugin, ".args");
            if (name == "LowNodeLoad") {
                TRY(read_low_node_load(args, out.load));
            } else if (name == "MigrationController") {
                TRY(read_migration(args, out));
            } else {
                return base::bad_request(fmt::format(
                    "profiles.pluginConfig.name: \"{}\" is neither LowNodeLoad nor MigrationController", name));
            }
        }
    }
    return out;
}

}  // namespace berth::control
