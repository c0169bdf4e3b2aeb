#pragma once

#include <filesystem>
#include <set>
#include <string>

namespace berth::app {

// What a start makes in its data directory. Unless it is kept it is taken back: a start that fails leaves nothing
// behind. What was there before stays; so does everything where there was a store, or where another process is.
// Make it before the server, so that it ends after it.
class Footprint {
public:
    explicit Footprint(const std::string& data_dir);
    ~Footprint();
    Footprint(const Footprint&) = delete;
    Footprint& operator=(const Footprint&) = delete;
    void keep() { kept_ = true; }

private:
    void take_back() const;

    std::filesystem::path dir_;
    std::filesystem::path highest_;  // of the directories that were missing; empty: none was
    std::set<std::string> before_;   // names in the directory
    bool kept_ = false;
};

}  // namespace berth::app
