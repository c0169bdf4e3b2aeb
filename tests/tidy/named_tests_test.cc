// Checks tests/reservations/README.md: the tests that a row names are there.
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "texts.h"

namespace {

using tidy::text_of;

// The cells of a line of a table; none for other lines.
std::vector<std::string> cells_of(const std::string& line) {
    std::vector<std::string> cells;
    if (!line.starts_with("| ")) return cells;
    std::istringstream in(line.substr(1));
    for (std::string cell; std::getline(in, cell, '|');) cells.push_back(cell);
    return cells;
}

// `FILE` `TEST` `TEST`, `FILE` `TEST`: a sentence for each that is missing.
std::vector<std::string> missing(const std::string& cell, size_t& named) {
    static const std::regex quoted("`([^`]+)`");
    std::vector<std::string> out;
    std::string file, text;
    for (std::sregex_iterator at(cell.begin(), cell.end(), quoted), end; at != end; ++at) {
        const std::string word = (*at)[1];
        if (word.find('/') != std::string::npos) {
            file = word;
            text = text_of(file);
            if (text.empty()) out.push_back("there is no " + file);
            continue;
        }
        ++named;
        const bool story = file.ends_with(".yaml");
        const bool found = text.find((story ? "scenario: " : ", ") + word + (story ? "" : ")")) != std::string::npos;
        if (!found) out.push_back(file + " has no test " + word);
    }
    return out;
}

TEST(NamedTests, AreThere) {
    std::istringstream readme(text_of("tests/reservations/README.md"));
    size_t named = 0;
    for (std::string line; std::getline(readme, line);) {
        const auto cells = cells_of(line);
        if (cells.size() < 3) continue;
        for (const auto& sentence : missing(cells[1], named)) ADD_FAILURE() << sentence;
    }
    EXPECT_GT(named, 30u);
}

TEST(NamedTests, TheCheckSeesWhatIsMissing) {
    size_t named = 0;
    EXPECT_EQ(missing("`tests/tidy/named_tests_test.cc` `AreThere`", named).size(), 0u);
    EXPECT_EQ(missing("`tests/tidy/named_tests_test.cc` `AreThere` `IsNotThere`, `tests/no/file`", named).size(), 2u);
    EXPECT_EQ(named, 3u);
}

}  // namespace
