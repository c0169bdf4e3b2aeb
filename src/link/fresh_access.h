#pragma once

#include <functional>
#include <vector>

#include "base/clock.h"
#include "link/kubeconfig.h"

namespace berth::link {

// Who we are, kept up to date: files are read again every ten seconds, so that rotated tokens and certificates take
// effect; a plugin is run again before what it said expires. While neither succeeds, what was before stays. One thread.
class FreshAccess {
public:
    // Runs a plugin elsewhere, and tells on our thread what came of it.
    using RunPlugin = std::function<void(const ExecPlugin&, std::function<void(Result<Credential>)>)>;

    // Reads the files and runs their plugin; waits for it.
    static Result<FreshAccess> open(AccessOptions options, const base::Clock& clock);
    // What is given stays.
    explicit FreshAccess(Access access);
    // Before the first get(). From here on it stays where it is.
    void run_plugins_by(RunPlugin run) { run_ = std::move(run); }

    const Access& get();
    // The server refused what we have: reads at once, and runs the plugin. Tells, maybe inside this call, whether
    // anything changed.
    void refresh(std::function<void(bool changed)> done);

private:
    FreshAccess(AccessOptions options, const base::Clock& clock) : options_(std::move(options)), clock_(&clock) {}

    void read_again();
    void tell_unreadable(const Error& error);
    void run(const Access& files);
    void on_plugin(const Access& files, Result<Credential> came);
    // What the files say, and in the place of their plugin what it said.
    bool become(const Access& files);
    void keep(const Credential& credential);

    AccessOptions options_;
    const base::Clock* clock_;  // null: what is given does not age
    bool fixed_ = false;
    Access files_;   // as they were read
    Access access_;  // the same, with the credential
    base::Instant read_at_ = {};
    std::string told_;  // of why they cannot be read; said once, until they can
    RunPlugin run_;
    Credential credential_;
    std::optional<base::Time> due_;        // the plugin shall run again
    std::optional<base::Instant> ran_at_;  // it ended
    bool running_ = false;
    bool changed_ = false;  // by its last run
    std::vector<std::function<void(bool)>> waiting_;
};

}  // namespace berth::link
