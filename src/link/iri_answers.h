#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <list>
#include <mutex>

#include "base/metrics.h"

namespace berth::link {

// What answers hold. Those that their clients have not taken: gRPC keeps one for as long as its client likes, and there
// may be thousands of calls; over the budget the oldest is cut off: who reads, reads within milliseconds. Those that
// are made: of what may be large a few are asked for at once.
class Answers {
public:
    explicit Answers(size_t most) : most_(most) {}
    void count(base::Metrics& metrics) {
        dropped_ =
            &metrics.counter("berth_fleet_dropped_answers_total", "Answers that nobody took when others needed room.");
    }

    // A call until it is answered and the answer is on its way. gRPC ends its life.
    class Call final : public grpc::ServerUnaryReactor {
    public:
        Call(Answers& all, grpc::CallbackServerContext& context, const google::protobuf::Message* response)
            : all_(all), context_(context), response_(response) {}

        // Asks for what may be large, when it is its turn.
        void in_turn(std::function<void()> ask);
        // Either ends it; the response, where that has room.
        void answer();
        void refuse(const grpc::Status& status) { end(status); }

    private:
        friend class Answers;
        void OnDone() override;
        void end(const grpc::Status& status);

        Answers& all_;
        grpc::CallbackServerContext& context_;
        const google::protobuf::Message* response_;
        bool in_turn_ = false;
        size_t bytes_ = 0;
        std::list<Call*>::iterator place_;
    };
    Call* begin(grpc::CallbackServerContext& context, const google::protobuf::Message* response = nullptr) {
        return new Call(*this, context, response);
    }

private:
    static constexpr int kAtOnce = 4;

    void ask_next();
    void answered();
    bool hold(Call& call, size_t bytes);
    void release(Call& call);

    const size_t most_;
    base::Counter* dropped_ = nullptr;
    // Recursive: a call that is cut off may end within TryCancel().
    std::recursive_mutex mutex_;
    std::list<Call*> held_;  // the oldest first
    size_t bytes_ = 0;
    std::deque<std::function<void()>> waiting_;
    int asked_ = 0;
    bool asking_ = false;  // somebody is in ask_next(): what is asked may be answered within
};

}  // namespace berth::link
