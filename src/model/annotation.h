#pragma once

#include <string>
#include <string_view>

#include "base/json_view.h"
#include "model/reader.h"

namespace berth::model {

// annotation "KEY": WHAT
Error annotation_error(std::string_view key, std::string_view what);
// One JSON object, strictly: nothing after it, no key twice.
Status check_annotation(std::string_view key, std::string_view text);

// Reads a JSON annotation by calling read(const Reader&) on it. Broken JSON, and fields of a wrong type, give an Error
// that quotes the key and what is wrong.
template <class F>
Status read_annotation(std::string_view key, std::string_view text, F read) {
    if (Status strict = check_annotation(key, text); !strict) return strict;
    thread_local base::JsonParser parser;  // its buffers are large
    const auto view = parser.parse(text);
    if (!view) return annotation_error(key, view.error().message);
    std::string trouble;
    read(Reader(*view, trouble));
    if (!trouble.empty()) return annotation_error(key, trouble);
    return {};
}

}  // namespace berth::model
