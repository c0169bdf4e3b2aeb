#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>

#include "link/wire.h"

namespace berth::link {

// Requests through a real wire, and what came of them.
class WireTest : public testing::Test {
protected:
    std::future<WireResult> call(WireRequest request, base::Duration most = std::chrono::seconds(20)) {
        auto promise = std::make_shared<std::promise<WireResult>>();
        wire_->loop().post([this, request = std::move(request), most, promise] {
            wire_->call(request, most, [promise](WireResult result) { promise->set_value(std::move(result)); });
        });
        return promise->get_future();
    }
    static WireAnswer answer(std::future<WireResult> result) {
        const auto got = result.get();
        if (const auto* trouble = std::get_if<WireTrouble>(&got)) ADD_FAILURE() << trouble->what;
        return std::holds_alternative<WireAnswer>(got) ? std::get<WireAnswer>(got) : WireAnswer{};
    }
    static WireTrouble trouble(std::future<WireResult> result) {
        const auto got = result.get();
        if (std::holds_alternative<WireAnswer>(got)) ADD_FAILURE() << std::get<WireAnswer>(got).code;
        return std::holds_alternative<WireTrouble>(got) ? std::get<WireTrouble>(got) : WireTrouble{};
    }

    std::unique_ptr<Wire> wire_;
};

}  // namespace berth::link
