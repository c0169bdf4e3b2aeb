#include "story_table.h"

#include <regex>
#include <sstream>

namespace berth::scenarios {
namespace {

std::vector<std::string> cells_of(const std::string& line) {
    static const std::regex gap("\\s{2,}");
    const auto first = line.find_first_not_of(' ');
    if (first == std::string::npos) return {};
    const std::string text = line.substr(first, line.find_last_not_of(" \r") + 1 - first);
    return {std::sregex_token_iterator(text.begin(), text.end(), gap, -1), {}};
}

}  // namespace

StoryTable parse_table(std::string_view text) {
    StoryTable table;
    std::istringstream lines{std::string(text)};
    std::vector<std::string> header;
    for (std::string line; std::getline(lines, line);) {
        const auto cells = cells_of(line);
        if (cells.empty()) continue;
        if (header.empty()) {
            header = cells;
            table.kind = header.front();
            continue;
        }
        auto& row = table.rows.emplace_back();
        for (size_t i = 0; i < cells.size() && i < header.size(); ++i) row[header[i]] = cells[i];
    }
    return table;
}

std::string cell(const std::map<std::string, std::string>& row, const std::string& column) {
    const auto found = row.find(column);
    return found == row.end() || found->second == "-" ? "" : found->second;
}

}  // namespace berth::scenarios
