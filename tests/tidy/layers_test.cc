// Checks src/LAYERS: an include that points the wrong way, a deciding room that reaches for a clock, a thread, a
// socket, the environment or dice, or one that asks the machine what time it is instead of the clock that it was given,
// fails here with file and line.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace {

namespace fs = std::filesystem;

struct Room {
    std::set<std::string> may_include;
    bool pure = false;
    bool clock = false;
};

std::map<std::string, Room> read_layers(std::istream& in) {
    std::map<std::string, Room> rooms;
    for (std::string line; std::getline(in, line);) {
        const auto colon = line.find(':');
        if (line.starts_with('#') || colon == std::string::npos) continue;
        const std::string name = line.substr(0, colon);
        Room& room = rooms[name];
        room.may_include.insert(name);
        std::istringstream words(line.substr(colon + 1));
        for (std::string word; words >> word;) {
            if (word == "pure") {
                room.pure = true;
            } else if (word == "clock") {
                room.clock = true;
            } else {
                room.may_include.insert(word);
            }
        }
    }
    return rooms;
}

// One sentence for each line of the source that breaks the room's rules.
std::vector<std::string> offences(const std::string& room_name, const Room& room, const std::set<std::string>& rooms,
                                  std::istream& in) {
    static const std::regex include("^\\s*#\\s*include\\s*\"([a-z]+)/");
    static const std::regex impure(
        "random_device|std::thread|std::jthread|std::mutex|#include "
        "<(thread|mutex|future|random|sys/socket.h|"
        "spdlog.*)>|#include "
        "\"base/(log|loop)\\.h\"|system_clock\\(|seed_from_system|getenv|boost/asio|std::rand\\b");
    static const std::regex asks_machine(
        R"(\b(steady_clock|high_resolution_clock|chrono::system_clock)\b|system_clock\(\)\.\w+\(|)"
        R"(\b(time\(nullptr|clock_gettime\(|gettimeofday\())");
    std::vector<std::string> found;
    int number = 0;
    for (std::string line; std::getline(in, line);) {
        ++number;
        std::smatch match;
        if (std::regex_search(line, match, include) && rooms.contains(match[1]) &&
            !room.may_include.contains(match[1])) {
            found.push_back(std::to_string(number) + ": " + room_name + " may not include " + match[1].str());
        }
        if (room.pure && std::regex_search(line, match, impure)) {
            found.push_back(std::to_string(number) + ": " + room_name + " decides, so it may not use " +
                            match[0].str());
        }
        // Few lines speak of time, and looking for an expression is dear.
        const bool of_time = line.find("clock") != std::string::npos || line.find("time") != std::string::npos;
        if (!room.clock && of_time && std::regex_search(line, match, asks_machine)) {
            found.push_back(std::to_string(number) + ": " + room_name +
                            " is given its clock (base/clock.h), so it may not use " + match[0].str());
        }
    }
    return found;
}

std::set<std::string> names_of(const std::map<std::string, Room>& rooms) {
    std::set<std::string> names;
    for (const auto& [name, room] : rooms) names.insert(name);
    return names;
}

TEST(Layers, EveryIncludePointsDown) {
    std::ifstream layers("src/LAYERS");
    const auto rooms = read_layers(layers);
    ASSERT_GT(rooms.size(), 5u);
    const auto names = names_of(rooms);
    size_t files = 0;
    for (const auto& folder : fs::directory_iterator("src")) {
        if (!folder.is_directory()) continue;
        const auto name = folder.path().filename().string();
        ASSERT_TRUE(rooms.contains(name)) << "src/" << name << " is not in src/LAYERS";
        for (const auto& file : fs::recursive_directory_iterator(folder)) {
            const auto extension = file.path().extension();
            if (extension != ".cc" && extension != ".h") continue;
            ++files;
            std::ifstream in(file.path());
            const bool test = file.path().filename().string().ends_with("_test.cc");
            Room room = rooms.at(name);
            room.pure = room.pure && !test;
            room.clock = room.clock || test;
            for (const auto& offence : offences(name, room, names, in))
                ADD_FAILURE() << file.path().string() << ":" << offence;
        }
    }
    EXPECT_GT(files, 10u);
}

TEST(Layers, TheCheckSeesOffences) {
    std::istringstream layers("base: clock\nsched: base pure\napi: base\n");
    const auto rooms = read_layers(layers);
    std::istringstream source(
        "#include \"base/result.h\"\n#include \"api/server.h\"\nauto t = std::chrono::steady_clock::now();\n");
    EXPECT_EQ(offences("sched", rooms.at("sched"), names_of(rooms), source).size(), 2u);
}

TEST(Layers, TheCheckSeesWhoAsksTheMachineForTheTime) {
    std::istringstream layers("base: clock\nlink: base\n");
    const auto rooms = read_layers(layers);
    const auto found = [&](const std::string& room, const std::string& line) {
        std::istringstream source(line);
        return offences(room, rooms.at(room), names_of(rooms), source).size();
    };
    for (const char* asks : {"since_ = steady_clock::now();", "auto t = std::chrono::system_clock::now();",
                             "auto t = base::system_clock().now();", "auto t = base::system_clock().wall();",
                             "time_t t = time(nullptr);", "::clock_gettime(CLOCK_REALTIME, &t);"}) {
        EXPECT_EQ(found("link", asks), 1u) << asks;
        EXPECT_EQ(found("base", asks), 0u) << asks;
    }
    for (const char* given : {"since_ = clock_.now();", "const base::Clock& clock = base::system_clock();"}) {
        EXPECT_EQ(found("link", given), 0u) << given;
    }
}

}  // namespace
