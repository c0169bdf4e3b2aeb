#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/hold.h"
#include "run/fleet_provider.h"

namespace berth::app {

// "cpu=4", "memory=16Gi".
Result<model::Amounts> read_capacity(const std::vector<std::string>& words, const std::string& flag);

// A provider's hardware, as its flags say, or as `berth fleet provider resize` has said since: that is remembered in
// the data directory until the flags change.
class CapacityFile {
public:
    CapacityFile(std::string dir, model::Amounts flags, model::Amounts overcommit)
        : dir_(std::move(dir)), flags_(std::move(flags)), overcommit_(std::move(overcommit)) {}
    Result<model::Amounts> at_start();
    // Of a resize since the last look.
    std::optional<model::Amounts> changed();

private:
    Result<model::Amounts> given(const model::Amounts& amounts) const;
    std::string path() const { return dir_ + "/capacity.json"; }

    const std::string dir_;
    const model::Amounts flags_;
    const model::Amounts overcommit_;
    std::string last_;                   // the file as it was read
    std::pair<uint64_t, int64_t> seen_;  // its inode and its time: whoever writes it replaces it
};

// For the running provider of that directory, or its next start.
Status ask_for_capacity(const std::string& dir, const std::vector<std::string>& words);

// Runs the program and waits for it: `PROGRAM VERB ID`, the machine as JSON on its input. Any end but 0 is a refusal,
// and so is none within that time.
run::FleetProvider::Hook exec_hook(std::string program, base::Duration most = std::chrono::minutes(1));

}  // namespace berth::app
