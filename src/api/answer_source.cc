#include "api/answer_source.h"

#include <algorithm>

namespace berth::api {

AnswerSource::AnswerSource(const Call& call, const Form& form, base::Time now,
                           const std::vector<store::RecordPtr>& records, ListMeta meta)
    : list_(new List{call.table, {*call.kind, form, now}, std::move(meta), {}}) {
    list_->records.assign(records.begin(), records.end());
    size_t largest = 0;
    for (const auto& record : records) largest = std::max(largest, record->bytes->size());
    holds_ = kAnswerPiece + largest + records.size() * sizeof(list_->records[0]);
}

bool AnswerSource::whole(std::string& out) {
    if (list_ != nullptr && render(begun_, kWholeAnswer) == State::Ended) {
        list_.reset();
        holds_ = 0;
    }
    if (list_ != nullptr || begun_.size() > kWholeAnswer) return false;
    out = std::move(begun_);
    return true;
}

Source::State AnswerSource::pull(std::string& out) {
    if (stopped_) return State::Broken;
    if (!begun_.empty()) {
        out.swap(begun_);
        begun_ = {};
        return list_ == nullptr ? State::Ended : State::More;
    }
    return render(out, kAnswerPiece);
}

Source::State AnswerSource::render(std::string& out, size_t most) {
    if (list_->next == 0) render_list_begin(list_->look, list_->meta, out);
    while (list_->next < list_->records.size() && out.size() < most) {
        const auto record = list_->records[list_->next].lock();
        if (record == nullptr) return State::Broken;
        if (list_->next++ > 0) out += ',';
        render_list_item(list_->look, *record, out);
    }
    if (list_->next < list_->records.size()) return State::More;
    out += kListEnd;
    return State::Ended;
}

}  // namespace berth::api
