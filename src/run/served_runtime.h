#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "link/machine_runtime.h"
#include "run/inbox.h"

namespace berth::run {

// What a provider and a broker have in common: calls wait in an inbox for the driver's thread, and those who watch hear
// of changes from there.
class ServedRuntime : public link::MachineRuntime {
public:
    explicit ServedRuntime(link::Wake wake) : inbox_(std::make_shared<Inbox>(std::move(wake))) {}
    ~ServedRuntime() override { inbox_->close(); }

    std::unique_ptr<Watch> watch(std::function<void(const link::RuntimeChange&)> change,
                                 std::function<void(Error)> ended) override {
        const uint64_t id = ++last_;
        auto heard = std::make_shared<Heard>();
        heard->change = std::move(change);
        inbox_->push([this, id, heard] {
            watchers_[id] = heard;
            fresh_.push_back(heard);
            tell_all();
        });
        (void)ended;  // it ends with the process
        return std::make_unique<Ear>(heard);
    }

protected:
    // Taken away, nobody is called any more: whoever lets go of a watch waits for a call that is under way.
    struct Heard {
        std::mutex mutex;
        std::function<void(const link::RuntimeChange&)> change;
    };
    Inbox& inbox() { return *inbox_; }
    void tell(const link::RuntimeChange& change) {
        for (auto it = watchers_.begin(); it != watchers_.end();) {
            const bool there = tell_one(*it->second, change);
            it = there ? std::next(it) : watchers_.erase(it);
        }
    }
    static bool tell_one(Heard& heard, const link::RuntimeChange& change) {
        const std::lock_guard lock(heard.mutex);
        if (!heard.change) return false;
        heard.change(change);
        return true;
    }
    // Tells the fresh ones all that is there.
    virtual void tell_all() = 0;
    std::vector<std::shared_ptr<Heard>> take_fresh() { return std::exchange(fresh_, {}); }

private:
    class Ear final : public Watch {
    public:
        explicit Ear(std::shared_ptr<Heard> heard) : heard_(std::move(heard)) {}
        ~Ear() override {
            const std::lock_guard lock(heard_->mutex);
            heard_->change = nullptr;
        }

    private:
        const std::shared_ptr<Heard> heard_;
    };

    const std::shared_ptr<Inbox> inbox_;
    std::atomic<uint64_t> last_ = 0;
    std::map<uint64_t, std::shared_ptr<Heard>> watchers_;
    std::vector<std::shared_ptr<Heard>> fresh_;
};

}  // namespace berth::run
