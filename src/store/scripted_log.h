#pragma once

#include <cstddef>
#include <vector>

#include "store/log.h"

namespace berth::store {

// A log that a test or a simulation drives by hand: entries wait until sync() or fail(), and what was not synced is
// lost with the log. One thread.
class ScriptedLog : public Log {
public:
    // What survives a crash: the entries kept, and what was acknowledged and compacted away before them.
    struct Disk {
        std::vector<EntryPtr> entries;
        Revision last = 0;
    };

    explicit ScriptedLog(Disk& disk) : disk_(disk) {}

    Extent extent() const override { return {0, disk_.last}; }
    Status replay(const Replay&) override;
    void start(Sink& sink) override { sink_ = &sink; }
    void append(EntryPtr entry) override { waiting_.push_back(std::move(entry)); }
    void kick() override {}
    void close() override { sink_ = nullptr; }

    size_t waiting() const { return waiting_.size(); }
    // The oldest `count` entries reach the disk and are acknowledged.
    void sync(size_t count);
    // They reach the disk, but nobody is told: as a crash between fsync and answer.
    void sync_silently(size_t count);
    void fail(Error);

private:
    Disk& disk_;
    Sink* sink_ = nullptr;
    std::vector<EntryPtr> waiting_;
};

}  // namespace berth::store
