#include "texts.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>

namespace tidy {
namespace {

namespace fs = std::filesystem;

bool of_a_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// Where what begins at `at` ends, if it is a comment, a literal or a line of the preprocessor; else `at`.
size_t end_of_noise(std::string_view text, size_t at) {
    const auto rest = text.substr(at);
    const auto until = [&](std::string_view end, size_t from) {
        const auto found = text.find(end, from);
        return found == std::string_view::npos ? text.size() : found + end.size();
    };
    if (rest.starts_with("//")) return std::min(text.find('\n', at), text.size());
    if (rest.starts_with("/*")) return until("*/", at + 2);
    const bool begins_word = at == 0 || !of_a_word(text[at - 1]);
    if (rest.starts_with("R\"") && begins_word) {
        const auto open = text.find('(', at);
        return until(")" + std::string(text.substr(at + 2, open - at - 2)) + "\"", open);
    }
    const bool separator = rest[0] == '\'' && !begins_word;
    if ((rest[0] == '"' || rest[0] == '\'') && !separator) {
        size_t end = at + 1;
        while (end < text.size() && text[end] != rest[0]) end += text[end] == '\\' ? 2 : 1;
        return std::min(end + 1, text.size());
    }
    if (rest[0] == '#' && (at == 0 || text.find_last_not_of(" \t", at - 1) == text.rfind('\n', at))) {
        size_t end = text.find('\n', at);
        while (end != std::string_view::npos && text[end - 1] == '\\') end = text.find('\n', end + 1);
        return std::min(end, text.size());
    }
    return at;
}

}  // namespace

std::string text_of(const fs::path& path) {
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

std::vector<fs::path> files_below(const fs::path& folder, const std::vector<std::string_view>& ends) {
    std::vector<fs::path> found;
    for (const auto& file : fs::recursive_directory_iterator(folder)) {
        const auto name = file.path().filename().string();
        const bool wanted = std::any_of(ends.begin(), ends.end(), [&](auto end) { return name.ends_with(end); });
        if (wanted && file.is_regular_file()) found.push_back(file.path());
    }
    std::sort(found.begin(), found.end());
    return found;
}

std::string bare(std::string_view source) {
    std::string out;
    for (size_t at = 0; at < source.size();) {
        const auto end = end_of_noise(source, at);
        if (end == at) {
            out += source[at++];
            continue;
        }
        for (; at < end; ++at) out += source[at] == '\n' ? '\n' : ' ';
    }
    return out;
}

}  // namespace tidy
