#pragma once

#include <string_view>
#include <vector>

// Reading the tables: lines and words.
namespace berth::model::text {

inline std::string_view trim(std::string_view s) {
    const size_t first = s.find_first_not_of(' ');
    if (first == std::string_view::npos) return {};
    return s.substr(first, s.find_last_not_of(' ') - first + 1);
}

// The part before the separator; text becomes the part after it.
inline std::string_view cut(std::string_view& text, char separator) {
    const size_t end = text.find(separator);
    const std::string_view head = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    return head;
}

inline std::string_view word(std::string_view& text) {
    const size_t first = text.find_first_not_of(' ');
    text = first == std::string_view::npos ? std::string_view() : text.substr(first);
    return cut(text, ' ');
}

template <class Out = std::vector<std::string_view>>
Out split(std::string_view text, char separator) {
    Out parts;
    while (!text.empty()) {
        const auto part = cut(text, separator);
        if (!part.empty()) parts.emplace_back(part);
    }
    return parts;
}

// Calls each(line) for every line that is neither empty nor a comment.
template <class F>
void lines(std::string_view text, F each) {
    while (!text.empty()) {
        const auto line = cut(text, '\n');
        if (!line.empty() && line.front() != '#') each(line);
    }
}

}  // namespace berth::model::text
