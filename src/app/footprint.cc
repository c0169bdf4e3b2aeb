#include "app/footprint.h"

#include <algorithm>
#include <array>

#include "store/data_dir.h"

namespace berth::app {
namespace {

namespace fs = std::filesystem;

// Names of what a server makes begin so.
bool is_ours(const std::string& name) {
    constexpr std::array kOurs{"store.",    "pki",    "kubeconfig", "scheduler.kubeconfig",
                               "audit.log", "layers", "ledger.",    "capacity.json"};
    return std::any_of(kOurs.begin(), kOurs.end(), [&](const char* begin) { return name.starts_with(begin); });
}

template <class See>
void for_each_name(const fs::path& directory, See see) {
    std::error_code error;
    for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
        see(at->path().filename().string());
    }
}

}  // namespace

Footprint::Footprint(const std::string& data_dir) {
    std::error_code error;
    dir_ = fs::absolute(data_dir, error);
    if (!dir_.has_filename()) dir_ = dir_.parent_path();  // a slash at its end
    for (fs::path at = dir_; !fs::exists(at, error) && !error && at.has_relative_path(); at = at.parent_path()) {
        highest_ = at;
    }
    for_each_name(dir_, [&](std::string name) { before_.insert(std::move(name)); });
}

Footprint::~Footprint() {
    std::error_code error;
    if (kept_ || before_.contains("store.db") || before_.contains("ledger.db")) return;
    if (fs::is_directory(dir_, error)) take_back();
    if (highest_.empty()) return;
    // Those that are empty again; another's file keeps its directory.
    for (fs::path at = dir_; fs::remove(at, error) && at != highest_; at = at.parent_path()) {
    }
}

void Footprint::take_back() const {
    const auto lock = store::DirLock::take({dir_.string()});
    if (!lock) return;
    std::error_code error;
    for_each_name(dir_, [&](const std::string& name) {
        if (is_ours(name) && !before_.contains(name)) fs::remove_all(dir_ / name, error);
    });
}

}  // namespace berth::app
