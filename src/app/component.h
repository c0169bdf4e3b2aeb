#pragma once

namespace berth::app {

// Something that runs beside a server, or attached to one: the scheduler, the controllers. Destroying it stops it,
// after what is under way has been answered.
class Component {
public:
    virtual ~Component() = default;
    // It has seen everything that was there at its start.
    virtual bool synced() const = 0;
};

}  // namespace berth::app
