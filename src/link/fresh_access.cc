#include "link/fresh_access.h"

#include <utility>

#include "base/log.h"

namespace berth::link {
namespace {

constexpr base::Duration kReadAgain = std::chrono::seconds(10);
// After a plugin that failed, or whose credential was over when it came.
constexpr base::Duration kRunAgain = std::chrono::seconds(10);
// Whoever is refused within this time after a run asks for no other: what it said is the newest.
constexpr base::Duration kJustRan = std::chrono::seconds(1);
constexpr base::Duration kLongBefore = std::chrono::minutes(1);

}  // namespace

Result<FreshAccess> FreshAccess::open(AccessOptions options, const base::Clock& clock) {
    FreshAccess out(std::move(options), clock);
    const Access files = TRY(read_access(out.options_));
    if (files.exec) out.keep(TRY(run_exec_plugin(*files.exec)));
    out.become(files);
    out.read_at_ = clock.now();
    return out;
}

FreshAccess::FreshAccess(Access access) : clock_(nullptr), fixed_(true), files_(access), access_(std::move(access)) {}

const Access& FreshAccess::get() {
    if (fixed_) return access_;
    if (clock_->now() - read_at_ >= kReadAgain) read_again();
    if (due_ && clock_->wall() >= *due_) run(files_);
    return access_;
}

void FreshAccess::read_again() {
    read_at_ = clock_->now();
    auto files = read_access(options_);
    if (!files) return tell_unreadable(files.error());
    told_.clear();
    files->exec == files_.exec || !files->exec ? void(become(*files)) : run(*files);
}

void FreshAccess::tell_unreadable(const Error& error) {
    if (std::exchange(told_, error.message) != error.message)
        base::log_warning("The credentials cannot be read again", {{"error", error}});
}

void FreshAccess::refresh(std::function<void(bool changed)> done) {
    if (fixed_) return done(false);
    if (running_) return waiting_.push_back(std::move(done));
    if (ran_at_ && clock_->now() - *ran_at_ < kJustRan) return done(changed_);
    read_at_ = clock_->now();
    auto files = read_access(options_);
    if (!files) {
        tell_unreadable(files.error());
        return done(false);
    }
    if (!files->exec) return done(become(*files));
    waiting_.push_back(std::move(done));
    run(*files);
}

void FreshAccess::run(const Access& files) {
    if (running_) return;
    running_ = true;
    run_(*files.exec, [this, files](Result<Credential> came) { on_plugin(files, std::move(came)); });
}

void FreshAccess::on_plugin(const Access& files, Result<Credential> came) {
    running_ = false;
    ran_at_ = clock_->now();
    changed_ = false;
    if (came) {
        keep(*came);
        changed_ = become(files);
    } else {
        base::log_warning("The credentials cannot be renewed", {{"error", came.error()}});
        due_ = clock_->wall() + kRunAgain;
    }
    for (const auto& done : std::exchange(waiting_, {})) done(changed_);
}

bool FreshAccess::become(const Access& files) {
    files_ = files;
    Access now = files;
    if (files.exec) {
        now.token = credential_.token;
        now.certificate_pem = credential_.certificate_pem;
        now.key_pem = credential_.key_pem;
    } else {
        due_.reset();
    }
    const bool changed = now != access_;
    access_ = std::move(now);
    return changed;
}

// Due when a fifth of what it has left is left, or a minute. E.g. 15 minutes from now: in 14; 20 seconds: in 16.
// One that is over already may be a matter of clocks: the server judges it.
void FreshAccess::keep(const Credential& credential) {
    credential_ = credential;
    due_.reset();
    if (!credential.expires) return;
    const auto left = *credential.expires - clock_->wall();
    due_ = clock_->wall() + (left > base::Duration::zero() ? left - std::min(left / 5, kLongBefore) : kRunAgain);
}

}  // namespace berth::link
