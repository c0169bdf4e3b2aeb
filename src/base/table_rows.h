#pragma once

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"

// Reads the tables of tests/data, which tests/oracles prints. For tests only.
namespace berth::base {

inline std::string table_field(std::string_view text) {
    if (text == "%") return {};
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out.push_back(text[i]);
            continue;
        }
        CHECK(i + 2 < text.size());
        out.push_back(static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16)));
        i += 2;
    }
    return out;
}

// The rows whose first field is kind, without that field.
inline std::vector<std::vector<std::string>> table_rows(const std::string& table, std::string_view kind) {
    std::ifstream in("tests/data/" + table + ".tsv");
    CHECK(in.is_open());
    std::vector<std::vector<std::string>> rows;
    for (std::string line; std::getline(in, line);) {
        std::vector<std::string> fields;
        std::string_view rest = line;
        while (true) {
            const size_t tab = rest.find('\t');
            fields.push_back(table_field(rest.substr(0, tab)));
            if (tab == std::string_view::npos) break;
            rest.remove_prefix(tab + 1);
        }
        if (fields.front() != kind) continue;
        fields.erase(fields.begin());
        rows.push_back(std::move(fields));
    }
    return rows;
}

}  // namespace berth::base
