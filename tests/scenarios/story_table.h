#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace berth::scenarios {

// A table as an operator writes it: a header line, then rows; cells are parted by two or more spaces, "-" is empty. The
// first column's title says what the rows are (pod, reservation, node).
struct StoryTable {
    std::string kind;
    std::vector<std::map<std::string, std::string>> rows;
};

StoryTable parse_table(std::string_view text);

// The cell, or "" when the column is absent or "-".
std::string cell(const std::map<std::string, std::string>& row, const std::string& column);

}  // namespace berth::scenarios
