#include "link/iri_answers.h"

#include <utility>

namespace berth::link {
namespace {

// A response as objects, as bytes, and as bytes on their way.
constexpr size_t kTimesHeld = 3;

}  // namespace

void Answers::Call::answer() {
    if (response_ != nullptr && !all_.hold(*this, kTimesHeld * response_->ByteSizeLong()))
        return end({grpc::StatusCode::RESOURCE_EXHAUSTED, "the answer is too large: ask for less at once"});
    end(grpc::Status::OK);
}

// It may be gone when Finish() returns.
void Answers::Call::end(const grpc::Status& status) {
    Answers& all = all_;
    const bool in_turn = in_turn_;
    Finish(status);
    if (in_turn) all.answered();
}

void Answers::Call::in_turn(std::function<void()> ask) {
    in_turn_ = true;
    Answers& all = all_;
    {
        const std::lock_guard lock(all.mutex_);
        all.waiting_.push_back(std::move(ask));
    }
    all.ask_next();
}

void Answers::Call::OnDone() {
    all_.release(*this);
    delete this;
}

void Answers::ask_next() {
    std::unique_lock lock(mutex_);
    if (asking_) return;
    asking_ = true;
    while (asked_ < kAtOnce && !waiting_.empty()) {
        const auto ask = std::move(waiting_.front());
        waiting_.pop_front();
        ++asked_;
        lock.unlock();
        ask();
        lock.lock();
    }
    asking_ = false;
}

void Answers::answered() {
    {
        const std::lock_guard lock(mutex_);
        --asked_;
    }
    ask_next();
}

bool Answers::hold(Call& call, size_t bytes) {
    if (bytes > most_ / 2) return false;
    if (bytes == 0) return true;
    const std::lock_guard lock(mutex_);
    while (bytes_ + bytes > most_ && !held_.empty()) {
        Call& oldest = *held_.front();
        if (dropped_ != nullptr) dropped_->add();
        release(oldest);
        oldest.context_.TryCancel();
    }
    call.bytes_ = bytes;
    call.place_ = held_.insert(held_.end(), &call);
    bytes_ += bytes;
    return true;
}

void Answers::release(Call& call) {
    const std::lock_guard lock(mutex_);
    if (call.bytes_ == 0) return;
    bytes_ -= std::exchange(call.bytes_, 0);
    held_.erase(call.place_);
}

}  // namespace berth::link
