#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/json_view.h"
#include "control/objects.h"
#include "ledger/intake.h"

namespace berth::control {

// As the driver does with what a feed says: the document is kept, and counted where decisions read its kind.
inline void keep(Objects& objects, const std::string& resource, const std::string& text, uint64_t revision) {
    const auto object = read_object(std::make_shared<const std::string>(text), revision);
    ASSERT_NE(object, nullptr) << text;
    objects.put(resource, object);
    for (const auto& kind : ledger::kinds()) {
        if (kind.stored() != resource) continue;
        base::JsonParser parser;
        const auto view = parser.parse(text);
        const auto read = kind.read(*view, revision);
        ASSERT_TRUE(read) << read.error().message;
        objects.count(kind, *read);
    }
}

}  // namespace berth::control
