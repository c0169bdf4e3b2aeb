#pragma once

#include <string>
#include <vector>

namespace berth::cli {

// Columns as wide as their widest cell, as kubectl prints them.
class TextTable {
public:
    explicit TextTable(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
    void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
    std::string text() const;

private:
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace berth::cli
