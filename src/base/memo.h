#pragma once

#include <memory>
#include <mutex>

namespace berth::base {

// What the immutable thing beside it was decoded into: made by whoever asks first, taken by the others. Any thread.
class Memo {
public:
    Memo() = default;
    // A copy knows nothing yet.
    Memo(const Memo&) {}
    Memo& operator=(const Memo&) = delete;

    // make() gives a shared_ptr<const T>, or null when there is nothing to keep. T is the same for all who ask.
    template <class T, class Make>
    std::shared_ptr<const T> get(Make make) const {
        const std::lock_guard lock(mutex_);
        if (made_) return std::static_pointer_cast<const T>(made_);
        std::shared_ptr<const T> made = make();
        if (!closed_) made_ = made;
        return made;
    }
    // Whoever still comes makes it for itself.
    void close() const {
        const std::lock_guard lock(mutex_);
        made_ = nullptr;
        closed_ = true;
    }

private:
    mutable std::mutex mutex_;
    mutable std::shared_ptr<const void> made_;
    mutable bool closed_ = false;
};

}  // namespace berth::base
