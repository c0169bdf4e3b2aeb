#pragma once

#include <utility>

namespace berth::app {

// Something that runs beside a server, or attached to one: the scheduler, the controllers. Destroying it stops it,
// after what is under way has been answered.
class Component {
public:
    virtual ~Component() = default;
    // It has seen everything that was there at its start.
    virtual bool synced() const = 0;
};

template <class Run>
class Running final : public Component {
public:
    template <class... Args>
    explicit Running(Args&&... args) : run_(std::forward<Args>(args)...) {}
    bool synced() const override { return run_.synced(); }

private:
    Run run_;
};

}  // namespace berth::app
