#include "part_records.h"

#include <sstream>

#include "base/json.h"

namespace berth::properties {
namespace {

int64_t number(const Json& value) {
    if (value.is_int64()) return value.as_int64();
    const std::string text(value.as_string());
    return text.ends_with("Mi")   ? std::stoll(text) << 20
           : text.ends_with("Ki") ? std::stoll(text) << 10
           : text.ends_with("Gi") ? std::stoll(text) << 30
                                  : std::stoll(text);
}

}  // namespace

Ids ids_of(const std::string& text) {
    Ids out;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, ',');) {
        const auto dash = part.find('-');
        const int first = std::stoi(part);
        const int last = dash == std::string::npos ? first : std::stoi(part.substr(dash + 1));
        for (int id = first; id <= last; ++id) out.insert(id);
    }
    return out;
}

// What stands between the quotes.
Ids cpus_in(const std::string& record) {
    const std::string key = "\"cpuset\":\"";
    const auto at = record.find(key);
    if (at == std::string::npos) return {};
    const auto begin = at + key.size();
    return ids_of(record.substr(begin, record.find('"', begin) - begin));
}

std::map<int, int64_t> milli_in(const std::string& record) {
    std::map<int, int64_t> out;
    if (record.empty()) return out;
    const Json read = base::parse_json(record).value();
    const Json* numas = read.as_object().if_contains("numaNodeResources");
    if (!numas) return out;
    for (const auto& entry : numas->as_array()) {
        const JsonObject& one = entry.as_object();
        const Json* cpu = one.at("resources").as_object().if_contains("cpu");
        if (!cpu) continue;
        const std::string text(cpu->as_string());
        out[static_cast<int>(one.at("node").as_int64())] = std::stoll(text) * (text.ends_with('m') ? 1 : 1000);
    }
    return out;
}

Shares shares_in(const Json& record) {
    Shares out;
    for (const auto& [type, list] : record.as_object()) {
        for (const auto& entry : list.as_array()) {
            const JsonObject& one = entry.as_object();
            Share& share = out[{std::string(type), static_cast<int>(one.at("minor").as_int64())}];
            for (const auto& [name, amount] : one.at("resources").as_object()) {
                const std::string key = name.ends_with("ratio")    ? "ratio"
                                        : name.ends_with("memory") ? "memory"
                                                                   : "core";
                share.use[key] += number(amount);
            }
            if (!one.contains("extension")) continue;
            for (const auto& function : one.at("extension").as_object().at("vfs").as_array()) {
                share.functions.emplace_back(function.as_object().at("busID").as_string());
            }
        }
    }
    return out;
}

}  // namespace berth::properties
