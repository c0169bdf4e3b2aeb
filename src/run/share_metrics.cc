#include "run/share_metrics.h"

#include <fmt/format.h>

#include <iterator>

namespace berth::run {

ShareMetrics::ShareMetrics(base::Metrics& metrics)
    : metrics_(metrics), cycles_(metrics.counter("berth_share_cycles_total", "Cycles in which shares were computed.")) {
    metrics.add_page([shown = shown_](std::string& out) {
        const std::lock_guard lock(shown->mutex);
        append(*shown, out);
    });
    for (const auto* reason : {"reclaimed", "budget", "refused", "gone", "unknown"})
        metrics.counter("berth_share_evictions_total", "Pods that had to go, by what came of it.",
                        {{"reason", reason}});
}

void ShareMetrics::evicted(std::string_view reason) {
    metrics_.counter("berth_share_evictions_total", "Pods that had to go, by what came of it.", {{"reason", reason}})
        .add();
}

void ShareMetrics::show(const share::Answer& answer) {
    cycles_.add();
    const std::lock_guard lock(shown_->mutex);
    shown_->rows.clear();
    for (const auto& account : answer.accounts) {
        shown_->rows.push_back({account.name, account.reserved, account.share.deserved, account.used, account.demand,
                                account.borrowed, account.lent});
    }
}

void ShareMetrics::append(const Shown& shown, std::string& out) {
    struct Family {
        const char *name, *help;
        Resources Row::* amounts;
    };
    static const Family families[] = {{"reserved", "What is guaranteed.", &Row::reserved},
                                      {"deserved", "What each may have now.", &Row::deserved},
                                      {"used", "What each has.", &Row::used},
                                      {"demand", "What each asks for.", &Row::demand},
                                      {"borrowed", "What each may have above its guarantee.", &Row::borrowed},
                                      {"lent", "What others have of a guarantee.", &Row::lent}};
    for (const auto& family : families) {
        fmt::format_to(std::back_inserter(out), "# HELP berth_share_{} {}\n# TYPE berth_share_{} gauge\n", family.name,
                       family.help, family.name);
        for (const auto& row : shown.rows) {
            (row.*family.amounts).for_each([&](ResourceId id, int64_t amount) {
                const bool cores = id == model::kCpu || model::resource_name(id) == "limits.cpu";
                const double scale = cores ? 1000 : 1;
                fmt::format_to(std::back_inserter(out), "berth_share_{}{{consumer=\"{}\",resource=\"{}\"}} {}\n",
                               family.name, row.consumer, model::resource_name(id),
                               static_cast<double>(amount) / scale);
            });
        }
    }
}

}  // namespace berth::run
