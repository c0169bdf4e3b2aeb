#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace berth::link {

// A folder for one test, and private files in it.
struct TestFolder {
    TestFolder() {
        char name[] = "/tmp/berth-link-XXXXXX";
        path = ::mkdtemp(name);
    }
    ~TestFolder() { std::filesystem::remove_all(path); }
    TestFolder(const TestFolder&) = delete;
    TestFolder& operator=(const TestFolder&) = delete;

    std::string write(const std::string& name, const std::string& text, int mode = 0600) const {
        const std::string file = path + "/" + name;
        std::filesystem::create_directories(std::filesystem::path(file).parent_path());
        std::ofstream(file) << text;
        std::filesystem::permissions(file, std::filesystem::perms(mode));
        return file;
    }
    // Runs in the folder.
    std::string script(const std::string& name, const std::string& text) const {
        return write(name, "#!/bin/sh\ncd " + path + "\n" + text + "\n", 0700);
    }
    std::string text(const std::string& name) const {
        std::ifstream in(path + "/" + name);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    std::string path;
};

}  // namespace berth::link
