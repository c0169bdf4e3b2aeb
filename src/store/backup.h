#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "store/companions.h"
#include "store/record.h"

// What an operator does with a store's file while no Store, or somebody else's, is open.
namespace berth::store {

struct Checked {
    int64_t format = 0;
    size_t objects = 0;
    int64_t rows = 0;
    Revision revision = 0;
    Revision floor = 0;     // watches can resume from here
    size_t companions = 0;  // files that a backup carries
};

// Reads every page and every row of a store's file or a backup. Also while a server uses it; changes nothing.
Result<Checked> check_file(const std::string& path);
// A data directory: the file, and that it holds all that was acknowledged.
Result<Checked> check_store(const std::string& data_dir);

// Copies a store, also one in use, into a new file that is whole or not there, and these files with it. Says what it
// holds.
Result<Checked> back_up(const std::string& data_dir, const std::string& to, const Companions& = {});

struct RestoreOptions {
    bool force = false;  // replace the store that is there; it is kept in data_dir/replaced-N
    // Puts the files in place that the backup carries, before the store is: an Error leaves that as it was.
    std::function<Status(const Companions&)> place = {};
};
// Puts a backup in place. Revisions go on kRestoreLeap above the backup's and above all that is known to have been
// given here, so that none is given twice although some are forgotten; every watch has to begin anew.
Result<Checked> restore(const std::string& from, const std::string& data_dir, RestoreOptions);

struct RepairOptions {
    bool accept_loss = false;
};
// Goes on with what is left of a store that has lost acknowledged writes, as if it had been restored from itself.
// Without accept_loss an Error says what would be lost. A file that is damaged inside needs a backup.
Result<Checked> repair(const std::string& data_dir, RepairOptions);
inline constexpr Revision kRestoreLeap = 1'000'000'000;

}  // namespace berth::store
