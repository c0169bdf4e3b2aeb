#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/string_map.h"

namespace berth::api {

// What is under way (writes that wait for the disk; bytes of answers that wait for their reader), so that a flood of
// one identity neither fills the memory nor keeps others out. Each identity may hold as many places as are still free:
// alone half of them, and whoever comes after a flood still finds half of the rest. Any thread.
class InFlight {
public:
    explicit InFlight(size_t places) : places_(places) {}

    // Held from arrival to answer.
    class Place {
    public:
        Place() = default;
        Place(InFlight& room, std::string user, size_t places)
            : room_(&room), user_(std::move(user)), places_(places) {}
        Place(Place&& other) noexcept
            : room_(std::exchange(other.room_, nullptr)), user_(std::move(other.user_)), places_(other.places_) {}
        Place& operator=(Place&& other) noexcept {
            std::swap(room_, other.room_);
            std::swap(user_, other.user_);
            std::swap(places_, other.places_);
            return *this;
        }
        ~Place() {
            if (room_ != nullptr) room_->leave(user_, places_);
        }

    private:
        InFlight* room_ = nullptr;
        std::string user_;
        size_t places_ = 0;
    };
    std::optional<Place> enter(const std::string& user, size_t places = 1);
    size_t taken() const;

private:
    void leave(const std::string& user, size_t places);

    const size_t places_;
    mutable std::mutex mutex_;
    size_t taken_ = 0;
    base::StringMap<size_t> by_user_;
};

}  // namespace berth::api
