#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "store/garbage.h"
#include "store/log.h"
#include "store/log_file.h"

namespace berth::store {

struct SqliteOptions {
    std::string data_dir;
    KeepLimits keep = {};
    FileTuning tuning = {};
    const base::Clock* clock = &base::system_clock();
};

// A log in data_dir/store.db with a thread of its own. What was appended while the last batch was written becomes the
// next batch: one fsync for all of them. A disk on which nothing can be written
// makes a log that fails at its start and can be replayed. Any failed write or fsync is final. Compaction runs on the
// same thread, a small chunk at a time, when nothing waits (or when it has waited too long).
Result<std::unique_ptr<Log>> sqlite_log(SqliteOptions);

}  // namespace berth::store
