#pragma once

#include <gtest/gtest.h>

#include <deque>

#include "link/wire.h"

namespace berth::link {

// A wire whose other end is the test: it sees what was asked and says what comes back, in virtual time.
class ScriptedWire final : public Wire {
public:
    explicit ScriptedWire(base::ManualClock& clock) : loop_(clock) {}

    base::VirtualLoop& loop() override { return loop_; }
    void call(WireRequest request, base::Duration, std::function<void(WireResult)> done) override {
        calls_.push_back({std::move(request), std::move(done)});
    }
    std::unique_ptr<WireStream> open(WireRequest request, base::Duration, StreamSink sink) override {
        EXPECT_EQ(open_, nullptr) << "a second watch beside the first";
        ++opened;
        open_ = std::make_shared<Open>(Open{std::move(request), std::move(sink)});
        return std::make_unique<Handle>(*this);
    }
    void refresh(std::function<void(bool)> done) override { done(refreshed++ == 0); }
    void stop() override {}

    // Lets posted work run, not timers that lie ahead.
    void settle() { loop_.run_for(base::Duration::zero()); }
    // The oldest question that was not answered yet.
    std::string asked() {
        settle();
        return calls_.empty() ? "nothing" : calls_.front().request.method + " " + calls_.front().request.target;
    }
    size_t unanswered() {
        settle();
        return calls_.size();
    }
    void answer(WireResult result) {
        settle();
        ASSERT_FALSE(calls_.empty()) << "nothing was asked";
        const auto done = std::move(calls_.front().done);
        calls_.pop_front();
        done(std::move(result));
        settle();
    }
    void answer(int code, std::string body) { answer(WireAnswer{code, std::move(body)}); }
    void fail(bool sent) { answer(WireTrouble{"cut", sent}); }

    std::string watched() { return open_ ? open_->request.target : "nothing"; }
    void head(int code) {
        const auto open = open_;
        ASSERT_NE(open, nullptr);
        open->sink.head(code);
        settle();
    }
    bool data(const std::string& bytes) {
        const auto open = open_;
        return open && open->sink.data(bytes);
    }
    void end(const std::string& trouble) {
        const auto open = std::exchange(open_, nullptr);
        ASSERT_NE(open, nullptr);
        open->sink.end(trouble);
        settle();
    }

    int opened = 0;
    int resumed = 0;
    int refreshed = 0;

private:
    struct Asked {
        WireRequest request;
        std::function<void(WireResult)> done;
    };
    struct Open {
        WireRequest request;
        StreamSink sink;
    };
    class Handle final : public WireStream {
    public:
        explicit Handle(ScriptedWire& wire) : wire_(wire), mine_(wire.open_) {}
        ~Handle() override {
            if (wire_.open_ == mine_) wire_.open_ = nullptr;
        }
        void resume() override { ++wire_.resumed; }

    private:
        ScriptedWire& wire_;
        std::shared_ptr<Open> mine_;
    };

    base::VirtualLoop loop_;
    std::deque<Asked> calls_;
    std::shared_ptr<Open> open_;
};

}  // namespace berth::link
