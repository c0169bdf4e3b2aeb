#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "link/election.h"
#include "link/fence.h"
#include "link/wake_event.h"

namespace berth::link {

struct LeadershipOptions {
    std::string ns = "kube-system";
    std::string name;
    std::string identity;
    ElectionTimes times;
};

// An election with its doors: a thread that keeps the lease, on a connection of its own, so that nothing else makes it
// late.
class Leadership {
public:
    // `lost` is called on its thread, once, when we led and may no longer. After that it keeps still.
    Leadership(std::unique_ptr<ApiClient> server, LeadershipOptions options, const base::Clock& clock,
               std::function<void()> lost);
    // Gives the lease back, so that the next one need not wait for its end.
    ~Leadership();
    Leadership(const Leadership&) = delete;
    Leadership& operator=(const Leadership&) = delete;

    bool leads() const { return fence_->open(clock_.now()); }
    std::shared_ptr<const Fence> fence() const { return fence_; }

private:
    void run();
    void carry_out(const Election::Move& move);
    void take_answer();
    void resign();

    std::unique_ptr<ApiClient> server_;
    const LeadershipOptions options_;
    const base::Clock& clock_;
    const std::function<void()> lost_;
    const std::string collection_;
    Election election_;
    std::shared_ptr<Fence> fence_ = std::make_shared<Fence>();
    WakeEvent wake_;
    std::mutex mutex_;
    std::optional<Result<Reply>> answer_;
    Election::Move::Kind asked_ = Election::Move::Kind::Read;
    bool under_way_ = false;
    bool over_ = false;
    std::atomic<bool> stop_ = false;
    std::thread thread_;
};

// "HOST_0123456789abcdef": names a process, not only a machine.
std::string new_identity();

}  // namespace berth::link
