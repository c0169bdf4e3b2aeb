// Every room's README names the room's files: `stem.h`, `stem.cc`, `stem.*` or, for several, `begin_*`; in a drawing
// the stem is enough. A test is named with what it tests, or by itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "texts.h"

namespace {

namespace fs = std::filesystem;

// The words that a README has in backticks or in a drawing, without folders and ends.
std::set<std::string> stems_named(const std::string& readme) {
    static const std::regex code("```[^`]*```|`[^`\n]+`");
    static const std::regex word("[A-Za-z0-9_*]+(?=(\\.(h|cc|tbl|\\*))?(?![A-Za-z0-9_*]))");
    std::set<std::string> stems;
    for (std::sregex_iterator at(readme.begin(), readme.end(), code), end; at != end; ++at) {
        const std::string text = at->str();
        for (std::sregex_iterator found(text.begin(), text.end(), word); found != end; ++found)
            stems.insert(found->str());
    }
    return stems;
}

bool is_named(const std::string& stem, const std::set<std::string>& stems) {
    return std::any_of(stems.begin(), stems.end(), [&](const std::string& name) {
        const bool family = name.size() > 2 && name.ends_with("_*");
        return name == stem || (family && stem.starts_with(name.substr(0, name.size() - 1)));
    });
}

// Those of these stems that a README does not name.
std::set<std::string> unnamed(const std::set<std::string>& files, const std::string& readme) {
    const auto stems = stems_named(readme);
    std::set<std::string> out;
    for (const auto& file : files) {
        const std::string tested = file.ends_with("_test") ? file.substr(0, file.size() - 5) : file;
        if (!is_named(file, stems) && !is_named(tested, stems)) out.insert(file);
    }
    return out;
}

// Of the nearest folder above a file that has one.
fs::path readme_of(const fs::path& file) {
    for (fs::path folder = file.parent_path(); !folder.empty(); folder = folder.parent_path())
        if (fs::exists(folder / "README.md")) return folder / "README.md";
    return {};
}

TEST(Readmes, NameTheFilesOfTheirRoom) {
    std::map<fs::path, std::set<std::string>> rooms;
    for (const char* folder : {"src", "bench"})
        for (const auto& file : tidy::files_below(folder, {".cc", ".h", ".tbl"}))
            rooms[readme_of(file)].insert(file.stem().string());
    EXPECT_GT(rooms.size(), 10u);
    for (const auto& [readme, stems] : rooms) {
        ASSERT_TRUE(readme.has_parent_path() && readme != "README.md") << *stems.begin() << " has no README";
        for (const auto& stem : unnamed(stems, tidy::text_of(readme)))
            ADD_FAILURE() << readme.string() << " does not name " << stem;
    }
}

TEST(Readmes, TheCheckSeesWhatIsNotNamed) {
    const std::string readme = "`a.*`, `b/c.h`, `d_*.cc`, ghost\n```\n e -> f_g\n```\n`h()`, `i_test`\n";
    EXPECT_TRUE(unnamed({"a", "a_test", "c", "d_x", "e", "f_g", "i_test"}, readme).empty());
    EXPECT_EQ(unnamed({"ghost", "j", "d", "j_test", "i"}, readme),
              (std::set<std::string>{"ghost", "j", "d", "j_test", "i"}));
}

}  // namespace
