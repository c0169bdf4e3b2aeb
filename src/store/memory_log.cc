#include <atomic>

#include "store/log.h"

namespace berth::store {
namespace {

class MemoryLog : public Log {
public:
    Extent extent() const override { return {}; }
    Status replay(const Replay&) override { return {}; }
    void start(Sink& sink) override { sink_ = &sink; }
    void append(EntryPtr entry) override { appended_ = entry->revision; }
    void kick() override { sink_->durable(appended_); }
    void close() override {}

private:
    Sink* sink_ = nullptr;
    std::atomic<Revision> appended_ = 0;
};

}  // namespace

std::unique_ptr<Log> memory_log() {
    return std::make_unique<MemoryLog>();
}

}  // namespace berth::store
