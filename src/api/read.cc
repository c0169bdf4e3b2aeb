#include "api/read.h"

#include "api/filter.h"
#include "api/render.h"
#include "api/versions.h"

namespace berth::api {
namespace {

constexpr size_t kScanPage = 1000;

struct Found {
    std::vector<store::RecordPtr> records;
    ListMeta meta;
};

// One object chosen by name: no scan.
Found find_named(ApiContext& context, const Call& call, const Filter& filter, const std::string& name) {
    Found out;
    out.meta.revision = context.store.revision();
    store::Key key = call.key();
    key.name = name;
    if (auto record = context.store.get(key); record != nullptr && filter.matches(*record)) {
        out.meta.revision = std::max(out.meta.revision, record->revision);
        out.records.push_back(std::move(record));
    }
    return out;
}

// A page that went out of the history resumes by key in the present: clients get a list, if not one of a single moment.
Result<store::Page> next_page(ApiContext& context, store::Listing& listing, bool may_resume) {
    auto page = context.store.list(listing);
    if (page || !may_resume || page.error().reason != Reason::Expired) return page;
    listing.at.reset();
    return context.store.list(listing);
}

Result<Found> scan(ApiContext& context, const Call& call, const Filter& filter, const ListPlan& plan) {
    store::Listing listing{call.key().kind, {}, plan.limit, plan.after, plan.at};
    if (!call.ns.empty()) listing.ns = call.ns;
    if (!filter.everything() && plan.limit > 0) listing.limit = std::max(plan.limit, kScanPage);
    Found out;
    while (true) {
        store::Page page = TRY(next_page(context, listing, plan.resumed || out.meta.revision != 0));
        out.meta.revision = page.revision;
        listing.at = page.revision;
        for (size_t i = 0; i < page.records.size(); ++i) {
            if (!filter.matches(*page.records[i])) continue;
            out.records.push_back(page.records[i]);
            const bool last = i + 1 == page.records.size() && !page.next;
            if (plan.limit == 0 || out.records.size() < plan.limit || last) continue;
            out.meta.continue_token = continue_token({page.revision, page.records[i]->key});
            if (filter.everything()) out.meta.remaining = page.remaining;
            return out;
        }
        if (!page.next) return out;
        listing.after = page.next;
    }
}

Result<Found> find(ApiContext& context, const Call& call) {
    const Filter filter = TRY(Filter::parse(*call.kind, call.options));
    const ListPlan plan = TRY(plan_list(call.options, context.store.revision()));
    const auto name = filter.exact("metadata.name");
    if (name && !plan.at && !(call.kind->namespaced && call.ns.empty()))
        return find_named(context, call, filter, *name);
    return scan(context, call, filter, plan);
}

}  // namespace

Result<store::RecordPtr> read_record(ApiContext& context, const Call& call) {
    auto record = context.store.get(call.key());
    if (record == nullptr) return not_found_error(call.resource(), call.name);
    return record;
}

Result<std::unique_ptr<AnswerSource>> read_one(ApiContext& context, const Call& call, const Form& form) {
    const auto asked = TRY(parse_version(call.options.resource_version));
    if (asked > context.store.revision()) return version_too_large(asked, context.store.revision());
    const auto record = TRY(read_record(context, call));
    std::string text;
    render_object({*call.kind, form, context.clock.wall()}, *record, text);
    text += '\n';
    return std::make_unique<AnswerSource>(std::move(text));
}

Result<std::unique_ptr<AnswerSource>> read_list(ApiContext& context, const Call& call, const Form& form) {
    Found found = TRY(find(context, call));
    return std::make_unique<AnswerSource>(call, form, context.clock.wall(), found.records, std::move(found.meta));
}

Result<std::vector<store::RecordPtr>> select_records(ApiContext& context, const Call& call) {
    return TRY(find(context, call)).records;
}

}  // namespace berth::api
