#pragma once

#include <utility>
#include <variant>

#include "base/check.h"
#include "base/error.h"

namespace berth::base {

// A value or an Error; shaped like std::expected<T, Error>, which g++ 12 does not have in C++20.
template <class T>
class [[nodiscard]] Result {
public:
    using value_type = T;
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    explicit operator bool() const { return state_.index() == 0; }
    bool ok() const { return state_.index() == 0; }

    T& value() & {
        CHECK(ok());
        return *std::get_if<0>(&state_);
    }
    const T& value() const& {
        CHECK(ok());
        return *std::get_if<0>(&state_);
    }
    T&& value() && {
        CHECK(ok());
        return std::move(*std::get_if<0>(&state_));
    }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T&& operator*() && { return std::move(*this).value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }

    const Error& error() const& {
        CHECK(!ok());
        return *std::get_if<1>(&state_);
    }
    Error&& error() && {
        CHECK(!ok());
        return std::move(*std::get_if<1>(&state_));
    }
    T value_or(T other) const& { return ok() ? value() : std::move(other); }

private:
    std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
public:
    using value_type = void;
    Result() = default;
    Result(Error error) : error_(std::move(error)), ok_(false) {}

    explicit operator bool() const { return ok_; }
    bool ok() const { return ok_; }
    void value() const { CHECK(ok_); }
    const Error& error() const& {
        CHECK(!ok_);
        return error_;
    }
    Error&& error() && {
        CHECK(!ok_);
        return std::move(error_);
    }

private:
    Error error_;
    bool ok_ = true;
};

using Status = Result<void>;

}  // namespace berth::base

namespace berth {
using base::Result;
using base::Status;
}  // namespace berth

// TRY(expression): the value of a Result, or return its Error from the enclosing function.
#define TRY(expression)                          \
    __extension__({                              \
        auto berth_try = (expression);           \
        if (!berth_try.ok()) [[unlikely]] {      \
            return std::move(berth_try).error(); \
        }                                        \
        std::move(berth_try).value();            \
    })
