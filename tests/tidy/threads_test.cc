// Every thread of the program has a name, and under that name a reason in docs/adr/0021-threads.md.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "texts.h"

namespace {

struct Threads {
    std::set<std::string> names;
    std::vector<std::string> offences;
};

std::vector<std::smatch> all(const std::string& text, const std::regex& what) {
    return {std::sregex_iterator(text.begin(), text.end(), what), std::sregex_iterator()};
}

// What makes threads: base::named_thread, and the class that turns a driver. A member is either of the two.
Threads threads_of(const std::string& room, const std::string& text) {
    static const std::regex made("\\b(named_thread|DriverThread>)\\(\\s*\"([^\"]+)\"");
    static const std::regex any_named("\\bnamed_thread\\(");
    static const std::regex any("std::(j?thread\\b(?!::id)|async\\()|\\bpthread_create\\b");
    static const std::regex member("std::thread \\w+;");
    static const std::regex driver("\\bDriverThread (\\w+_);");
    Threads out;
    for (const auto& match : all(text, made)) out.names.insert(match[2]);
    const size_t members = all(text, member).size();
    if (all(text, any).size() != members)
        out.offences.push_back(room + " makes a thread without base::named_thread, or keeps one that is no member");
    if (all(text, any_named).size() != members)
        out.offences.push_back(room + " has not as many named threads as members that are threads");
    for (const auto& match : all(text, driver)) {
        const std::string name = match[1];
        std::smatch begun;
        if (std::regex_search(text, begun, std::regex("\\b" + name + "\\(\\s*\"([^\"]+)\""))) {
            out.names.insert(begun[1]);
        } else {
            out.offences.push_back(room + ": " + name + " has no name");
        }
    }
    return out;
}

// The rows `| `NAME` | what | why |` of a table.
std::set<std::string> reasons_in(const std::string& adr) {
    static const std::regex row("\\| `([^`]+)` \\| [^|\n]{10,} \\| [^|\n]{10,} \\|");
    std::set<std::string> names;
    for (const auto& match : all(adr, row)) names.insert(match[1]);
    return names;
}

TEST(Threads, HaveAReason) {
    std::map<std::string, std::string> rooms;
    for (const auto& file : tidy::files_below("src", {".cc", ".h"})) {
        const auto path = file.string();
        const auto text = tidy::text_of(file);
        const bool about_threads = text.find("hread") != std::string::npos || text.find("async") != std::string::npos;
        if (!about_threads || path == "src/base/thread.h" || path.ends_with("_test.cc")) continue;
        rooms[path.substr(0, path.find('/', 4))] += text;
    }
    std::set<std::string> names;
    for (const auto& [room, text] : rooms) {
        auto threads = threads_of(room, text);
        names.merge(threads.names);
        for (const auto& offence : threads.offences) ADD_FAILURE() << offence;
    }
    EXPECT_EQ(reasons_in(tidy::text_of("docs/adr/0021-threads.md")), names);
    EXPECT_GT(names.size(), 5u);
}

TEST(Threads, TheCheckSeesThoseWithoutANameOrAReason) {
    const auto offences = [](const std::string& text) { return threads_of("a", text).offences.size(); };
    EXPECT_EQ(offences("std::thread thread_;\nthread_ = base::named_thread(\n    \"b\", work);"), 0u);
    EXPECT_EQ(offences("std::thread thread_;\nA() : thread_([] { work(); }) {}"), 1u);
    EXPECT_EQ(offences("std::thread([] { work(); }).detach();"), 1u);
    EXPECT_EQ(offences("std::vector<std::thread> all_;"), 1u);
    EXPECT_EQ(offences("DriverThread one_;\nA() : one_(\"c\", clock) {}"), 0u);
    EXPECT_EQ(offences("DriverThread one_;\nA() : one_(name, clock) {}"), 1u);
    EXPECT_EQ(threads_of("a", "make_unique<DriverThread>(\n    \"d\", clock)").names, std::set<std::string>{"d"});
    EXPECT_EQ(reasons_in("| `e` | does something | nobody else can |\n| `f` | does something | |\n"),
              std::set<std::string>{"e"});
}

}  // namespace
