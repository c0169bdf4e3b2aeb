#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/json.h"

// The printers that columns of kinds.tbl name.
namespace berth::model {

struct Cell {
    const Json& object;
    std::string_view argument;  // a path or a word
    base::Time now;
};

struct Printer {
    std::string_view name;
    Json (*print)(const Cell&);
};

// nullptr when there is none of that name.
const Printer* find_printer(std::string_view name);

// By file.
std::span<const Printer> general_printers();
std::span<const Printer> pod_printers();
std::span<const Printer> workload_printers();
std::span<const Printer> cluster_printers();

// The time since the moment at a path; "<unknown>" when there is none.
std::string age_at(const Cell& cell, std::string_view path);

// "a,b,c + 2 more...": at most `most` of the items.
std::string some_of(const std::vector<std::string>& items, size_t most);

std::string joined(const std::vector<std::string>& items, std::string_view separator = ",");

}  // namespace berth::model
