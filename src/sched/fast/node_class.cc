#include "sched/fast/node_class.h"

#include <algorithm>
#include <map>

#include "sched/plugins/device_share.h"

namespace berth::sched::fast {
namespace {

void take_filter(const Filter& filter, Terms& terms, bool& fit) {
    if (filter.row_term() == RowTerm::Fit) {
        fit = true;
    } else if (filter.row_term() == RowTerm::Ports) {
        terms.ports = true;
    } else if (filter.row_term() == RowTerm::Cores) {
        terms.cores = &filter;
    } else if (filter.row_term() == RowTerm::Devices) {
        terms.devices = true;
    } else if (filter.row_term() == RowTerm::Credit) {
        terms.credit_filters.push_back(&filter);
    } else {
        (filter.by_node_alone() ? terms.node_filters : terms.far_filters).push_back(&filter);
    }
}

void take_scorer(const Profile::Weighted& weighted, Terms& terms) {
    const auto& [scorer, weight] = weighted;
    if (scorer->row_term() == RowTerm::LeastAllocated) {
        terms.least_weight += weight;
    } else if (scorer->row_term() == RowTerm::BalancedAllocation) {
        terms.balanced_weight += weight;
    } else if (scorer->row_term() == RowTerm::Cores) {
        terms.cores_weight += weight;
    } else if (scorer->row_term() == RowTerm::Devices) {
        terms.device_scorers.push_back({static_cast<const plugins::DeviceScorer*>(scorer.get()), weight});
        terms.devices_weight += weight;
    } else if (const auto* node = dynamic_cast<const NodeScorer*>(scorer.get())) {
        (node->scaling() == Scaling::None ? terms.fixed : terms.scaled).push_back({node, weight});
    } else {
        terms.far_scorers.push_back(weighted);
    }
}

// Numbers the groups in the order in which rows meet them, and the rows within each.
void group_rows(const Ask& ask, const View& ledger, const Terms& terms, std::span<const Row> open, NodeClass& made) {
    std::vector<std::vector<int64_t>> raws;
    for (const auto& [scorer, weight] : terms.scaled) {
        scorer->raw(ask, ledger, open, raws.emplace_back(open.size()));
    }
    std::map<std::vector<int64_t>, uint32_t> numbers;
    std::vector<int64_t> values(raws.size());
    made.group.resize(ledger.rows());
    made.place.resize(ledger.rows());
    for (size_t i = 0; i < open.size(); ++i) {
        for (size_t term = 0; term < raws.size(); ++term) values[term] = raws[term][i];
        const auto [found, fresh] = numbers.try_emplace(values, static_cast<uint32_t>(made.groups.size()));
        if (fresh) {
            made.groups.push_back(values);
            made.group_size.push_back(0);
        }
        made.group[open[i]] = found->second;
        made.place[open[i]] = made.group_size[found->second]++;
    }
    if (made.groups.size() <= 1) {
        made.group.clear();
        made.place.clear();
    }
}

// Adds the rows of the first name condition; false when the term has none.
bool add_named(const model::NodeSelectorTerm& term, const View& ledger, std::vector<Row>& rows) {
    const auto field = std::find_if(term.match_fields.begin(), term.match_fields.end(),
                                    [](const auto& f) { return f.key == "metadata.name" && f.op == "In"; });
    if (field == term.match_fields.end()) return false;
    for (const auto& name : field->values) {
        if (const Row row = ledger.row_of(name); row != ledger::kNoRow) rows.push_back(row);
    }
    return true;
}

}  // namespace

std::optional<std::vector<Row>> named_rows(const model::PodSpec& spec, const View& ledger) {
    std::vector<Row> rows;
    if (!spec.node_name.empty()) {
        if (const Row row = ledger.row_of(spec.node_name); row != ledger::kNoRow) rows.push_back(row);
        return rows;
    }
    if (!spec.required_nodes || spec.required_nodes->empty()) return std::nullopt;
    for (const auto& term : *spec.required_nodes) {
        if (!add_named(term, ledger, rows)) return std::nullopt;
    }
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    return rows;
}

Terms terms_of(const Profile& profile) {
    Terms terms;
    bool fit = false;
    for (const auto& filter : profile.filters) take_filter(*filter, terms, fit);
    bool positive = true;
    for (const auto& weighted : profile.scorers) {
        positive = positive && weighted.weight >= 0 && weighted.weight < kMaxKeyScore;
        take_scorer(weighted, terms);
    }
    int64_t highest =
        (terms.least_weight + terms.balanced_weight + terms.cores_weight + terms.devices_weight) * kMaxScore;
    for (const auto& [scorer, weight] : terms.fixed) highest += weight * kMaxScore;
    terms.credit = terms.ports && terms.credit_filters.size() == 2;
    terms.usable = fit && positive && highest <= kMaxKeyScore;
    return terms;
}

model::PodSpec constraints_of(const model::PodSpec& spec, const View& ledger) {
    model::PodSpec part;
    part.tolerations = spec.tolerations;
    part.node_selector = spec.node_selector;
    part.required_nodes = spec.required_nodes;
    part.preferred_nodes = spec.preferred_nodes;
    part.node_name = spec.node_name;
    const bool known = std::any_of(spec.images.begin(), spec.images.end(),
                                   [&](const auto& image) { return ledger.images().find(image) != nullptr; });
    if (known) part.images = spec.images;
    return part;
}

std::shared_ptr<const NodeClass> node_class_of(const model::PodSpec& constraints, const View& ledger,
                                               const Terms& terms) {
    auto made = std::make_shared<NodeClass>();
    made->epoch = ledger.changes().static_epoch();
    made->base.resize((ledger.rows() + kBlock - 1) / kBlock * kBlock);
    Ask ask;
    ask.spec = &constraints;
    Strikes strikes(ledger, 0, static_cast<Row>(ledger.rows()));
    for (const auto* filter : terms.node_filters) filter->strike(ask, ledger, strikes);
    const std::vector<Row> open = strikes.open_rows();
    for (const Row row : open) made->base[row] = 1;
    std::vector<int64_t> points(open.size());
    for (const auto& [scorer, weight] : terms.fixed) {
        scorer->raw(ask, ledger, open, points);
        for (size_t i = 0; i < open.size(); ++i) {
            made->base[open[i]] = static_cast<uint16_t>(made->base[open[i]] + weight * points[i]);
        }
    }
    group_rows(ask, ledger, terms, open, *made);
    return made;
}

}  // namespace berth::sched::fast
