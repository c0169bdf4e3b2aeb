// What the documents name in backticks is there: files by their path or the end of it; and in decisions (docs/adr)
// every word stands in the sources, the tests or the tools.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>

#include "texts.h"

namespace {

namespace fs = std::filesystem;

const std::vector<const char*> kFolders = {"src", "bench", "tests", "tools", "cmake", "deploy", "docs", ".ci"};
const std::vector<const char*> kFiles = {"CMakeLists.txt", "CMakePresets.json", "Makefile", ".clang-tidy"};

struct Project {
    std::vector<std::string> paths;  // of files and folders, each with a slash before it
    std::set<std::string> words;
};

bool begins_word(char c) {
    return std::isalpha(static_cast<unsigned char>(c)) || c == '_';
}
bool of_a_word(char c) {
    return begins_word(c) || std::isdigit(static_cast<unsigned char>(c));
}

void add_words(const std::string& text, std::set<std::string>& words) {
    for (size_t at = 0; at < text.size();) {
        size_t end = at;
        while (end < text.size() && of_a_word(text[end])) ++end;
        if (end > at) words.insert(text.substr(at, end - at));
        at = std::max(end, at + 1);
    }
}

Project read_project() {
    Project project;
    for (const auto& file : fs::directory_iterator(".")) project.paths.push_back("/" + file.path().filename().string());
    for (const char* file : kFiles) add_words(tidy::text_of(file), project.words);
    for (const char* folder : kFolders) {
        for (const auto& entry : fs::recursive_directory_iterator(folder))
            if (entry.is_directory()) project.paths.push_back("/" + entry.path().string());
        for (const auto& file : tidy::files_below(folder, {""})) {
            const auto path = file.string();
            project.paths.push_back("/" + path);
            add_words(path, project.words);
            const bool says_what_others_are = path.ends_with(".md") || path.starts_with("tests/tidy/");
            const bool data =
                path.starts_with("tests/data") || path.starts_with("tests/fuzz/corpus") || path.ends_with(".jsonl");
            if (!says_what_others_are && !data) add_words(tidy::text_of(file), project.words);
        }
    }
    return project;
}

// `a/b.h`, `b.h`, `b.*`, `b_*.cc`: whether a file's path ends like that.
bool is_there(const std::string& path, const Project& project) {
    const auto star = path.find('*');
    const std::string begin = "/" + path.substr(0, star);
    const std::string end = star == std::string::npos ? "" : path.substr(star + 1);
    return std::any_of(project.paths.begin(), project.paths.end(), [&](const std::string& file) {
        if (star == std::string::npos) return file.ends_with(begin);
        const auto at = file.rfind(begin);
        return at != std::string::npos && file.find('/', at + begin.size()) == std::string::npos && file.ends_with(end);
    });
}

std::vector<std::string> quoted_in(const std::string& document) {
    static const std::regex fence("```[^`]*```");
    static const std::regex quoted("`([^`]+)`");
    const std::string text = std::regex_replace(document, fence, "");
    std::vector<std::string> out;
    for (std::sregex_iterator at(text.begin(), text.end(), quoted), end; at != end; ++at) out.push_back((*at)[1]);
    return out;
}

// The files that a document names and nobody has.
std::set<std::string> missing_files(const std::string& document, const Project& project) {
    static const std::regex path(
        "(^|[ (])((src|bench|tests|tools|cmake|docs)/[\\w./*-]*[\\w*]|[\\w/*-]+\\.(h|cc|\\*|tbl|py|md))(?=$|[ ,:)])");
    std::set<std::string> out;
    for (const auto& text : quoted_in(document)) {
        for (std::sregex_iterator at(text.begin(), text.end(), path), end; at != end; ++at)
            if (!is_there((*at)[2], project)) out.insert((*at)[2]);
    }
    return out;
}

// The words that it names and nobody says.
std::set<std::string> missing_words(const std::string& document, const Project& project) {
    std::set<std::string> out;
    for (const auto& text : quoted_in(document)) {
        std::set<std::string> words;
        add_words(text, words);
        for (const auto& word : words)
            if (begins_word(word[0]) && !project.words.contains(word)) out.insert(word + " of `" + text + "`");
    }
    return out;
}

TEST(NamedThings, AreThere) {
    const Project project = read_project();
    EXPECT_GT(project.paths.size(), 500u);
    std::vector<fs::path> documents = {"ARCHITECTURE.md", "CONTRIBUTING.md", "STYLE.md", "README.md", "SECURITY.md"};
    for (const char* folder : {"src", "bench", "tests", "docs"})
        for (const auto& file : tidy::files_below(folder, {".md"})) documents.push_back(file);
    for (const auto& document : documents)
        for (const auto& path : missing_files(tidy::text_of(document), project))
            ADD_FAILURE() << document.string() << ": there is no " << path;
    for (const auto& decision : tidy::files_below("docs/adr", {".md"}))
        for (const auto& word : missing_words(tidy::text_of(decision), project))
            ADD_FAILURE() << decision.string() << ": nothing is called " << word;
}

TEST(NamedThings, TheCheckSeesWhatIsMissing) {
    const Project project{{"/src/a", "/src/a/b.h", "/src/a/b_c.cc", "/tools/d"}, {"Ledger", "pass_time", "wall"}};
    EXPECT_TRUE(missing_files("`a/b.h` `b.*` `b_*.cc` `src/a` `tools/d -x` `Ledger` b/c.h `e.g.`", project).empty());
    EXPECT_EQ(missing_files("`a/c.h` `d.*` `g++ -E src/b/b.h` `tools/e`", project).size(), 4u);
    EXPECT_TRUE(missing_words("`Ledger::pass_time(wall)` Nothing\n```\nMore\n```\n", project).empty());
    EXPECT_EQ(missing_words("`Ledger::finish(wall, 7)`", project).size(), 1u);
}

}  // namespace
