// Checks tools/packages: the word that a row gives for its package stands in a file that the project keeps.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "texts.h"

namespace {

namespace fs = std::filesystem;
using tidy::text_of;

std::string everything() {
    std::string text;
    for (const char* file : {"CMakeLists.txt", "CMakePresets.json", "Makefile", ".ci/run"}) text += text_of(file);
    for (const char* folder : {"src", "tests", "tools", "cmake", "bench", "docs/operating"}) {
        for (const auto& file : fs::recursive_directory_iterator(folder)) {
            const bool about_packages = file.path() == "tools/packages" || file.path().parent_path() == "tests/tidy";
            if (file.is_regular_file() && !about_packages) text += text_of(file.path());
        }
    }
    return text;
}

// A sentence for each package whose word is missing, or that has none.
std::vector<std::string> unused(std::istream& packages, const std::string& text) {
    std::vector<std::string> out;
    for (std::string line; std::getline(packages, line);) {
        if (line.starts_with('#')) continue;
        const auto space = line.find(' ');
        const auto word = line.find_first_not_of(' ', space);
        if (space == std::string::npos || word == std::string::npos) {
            out.push_back(line + " has no word that shows where it is used");
        } else if (text.find(line.substr(word)) == std::string::npos) {
            out.push_back("nothing has the word of " + line);
        }
    }
    return out;
}

TEST(Packages, AreUsed) {
    std::ifstream packages("tools/packages");
    ASSERT_TRUE(packages);
    for (const auto& sentence : unused(packages, everything())) ADD_FAILURE() << sentence;
}

TEST(Packages, TheCheckSeesWhatNobodyUses) {
    std::istringstream packages("# a comment\nlibfmt-dev  fmt/format.h\nlibspdlog-dev  spdlog/spdlog.h\nstrace\n");
    EXPECT_EQ(unused(packages, "#include <fmt/format.h>").size(), 2u);
}

}  // namespace
