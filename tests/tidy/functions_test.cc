// No function has more than 70 lines, from its signature to its last brace; what is inside it is part of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "texts.h"

namespace {

constexpr size_t kMostLines = 70;

struct Function {
    std::string head;
    size_t line, lines;
};

size_t line_of(const std::string& text, size_t at) {
    return 1 + static_cast<size_t>(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n'));
}

// Whether a brace behind these words begins a function's body. Not one of `: name_{value}` before a constructor's body.
enum class Brace { Body, Member, Other };
Brace brace_behind(const std::string& head) {
    static const std::regex no_body("=\\s*$|^\\s*(inline\\s+)?namespace\\b");
    static const std::regex member("\\)\\s*(noexcept\\s*)?:[^:].*[\\w>]\\s*$");
    static const std::regex specifier("\\b(const|override|final|noexcept|mutable|try)\\s*$");
    const std::string line = std::regex_replace(head, std::regex("\\s+"), " ");
    if (line.find('(') == std::string::npos || std::regex_search(line, no_body)) return Brace::Other;
    if (std::regex_search(line, member) && !std::regex_search(line, specifier)) return Brace::Member;
    return Brace::Body;
}

std::vector<Function> functions_of(const std::string& source) {
    const std::string text = tidy::bare(source);
    std::vector<Function> out;
    std::vector<Brace> open;
    size_t head = 0;  // where the words before the next brace begin
    size_t body = 0;  // how many braces were open when the function began that we are in, or none
    for (size_t at = 0; at < text.size(); ++at) {
        const char c = text[at];
        const bool within = body > 0;
        if (c == '{') {
            open.push_back(within ? Brace::Other : brace_behind(text.substr(head, at - head)));
            if (open.back() == Brace::Body) {
                const size_t first = text.find_first_not_of(" \n", head);
                out.push_back({text.substr(first, text.find('\n', first) - first), line_of(text, first), 0});
                body = open.size();
            }
            if (open.back() != Brace::Member && !within) head = at + 1;
        } else if (c == '}' && !open.empty()) {
            if (open.size() == body) {
                out.back().lines = line_of(text, at) - out.back().line + 1;
                body = 0;
            }
            if (open.back() != Brace::Member && body == 0) head = at + 1;
            open.pop_back();
        } else if (c == ';' && !within) {
            head = at + 1;
        }
    }
    return out;
}

// Python's, by their indentation; one inside another is part of it.
std::vector<Function> python_functions_of(const std::string& source) {
    static const std::regex def("^( *)(async )?def .*");
    std::vector<Function> out;
    std::istringstream in(source);
    size_t number = 0, depth = 0;
    bool within = false;
    for (std::string line; std::getline(in, line);) {
        ++number;
        const size_t indent = line.find_first_not_of(' ');
        if (indent == std::string::npos) continue;
        if (within && indent <= depth && line[indent] != ')') within = false;
        if (within) out.back().lines = number - out.back().line + 1;
        if (within || !std::regex_match(line, def)) continue;
        out.push_back({line.substr(indent), number, 1});
        depth = indent;
        within = true;
    }
    return out;
}

TEST(Functions, HaveAtMostSeventyLines) {
    size_t seen = 0;
    for (const char* folder : {"src", "bench", "tests", "tools"}) {
        for (const auto& file : tidy::files_below(folder, {".cc", ".h", ".py"})) {
            const auto text = tidy::text_of(file);
            for (const auto& function : file.extension() == ".py" ? python_functions_of(text) : functions_of(text)) {
                ++seen;
                EXPECT_LE(function.lines, kMostLines) << file.string() << ":" << function.line << ": " << function.head;
            }
        }
    }
    EXPECT_GT(seen, 5'000u);
}

TEST(Functions, TheCheckSeesLongOnes) {
    const std::string filler(70, '\n');
    const auto longest = [](const std::vector<Function>& functions) {
        size_t most = 0;
        for (const auto& function : functions) most = std::max(most, function.lines);
        return most;
    };
    EXPECT_EQ(longest(functions_of("void f() {" + filler + "}\n")), 71u);
    EXPECT_EQ(longest(functions_of("namespace a {\nclass B {\n    B() : c_{1}, d_(2) {\n" + filler + "}\n};\n}\n")),
              72u);
    EXPECT_EQ(longest(functions_of("int f(int a,\n      int b) const {\n    if (a) {" + filler + "}\n}\n")), 74u);
    EXPECT_EQ(longest(functions_of("auto f() -> Result<int> {\n" + filler + "}\n")), 72u);
    EXPECT_EQ(longest(functions_of("TEST(A, B) {\n" + filler + "}\n")), 72u);
    EXPECT_EQ(longest(python_functions_of("def f():\n    a\n" + filler + "    b\nc\n")), 73u);
}

TEST(Functions, TheCheckSeesNothingElse) {
    const std::string filler(100, '\n');
    EXPECT_TRUE(functions_of("namespace a {" + filler + "}\nstruct B {" + filler + "};\n").empty());
    EXPECT_TRUE(functions_of("int kTable[] = {" + filler + "};\n// void f() {" + filler).empty());
    const auto two =
        functions_of("#define F(x) {\nauto t = R\"x({ void f() { )x\";\nvoid g() { h('{', \"}\"); }\nvoid i() {\n}\n");
    ASSERT_EQ(two.size(), 2u);
    EXPECT_EQ(two[0].lines, 1u);
    EXPECT_EQ(two[1].lines, 2u);
    const auto apart = python_functions_of("def f(\n    a,\n):\n    b\n\n\nc = 1\ndef g():\n    d\n");
    ASSERT_EQ(apart.size(), 2u);
    EXPECT_EQ(apart[0].lines, 4u);
}

}  // namespace
