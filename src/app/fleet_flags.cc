#include "app/fleet_flags.h"

#include <fmt/format.h>

#include "cli/dump.h"
#include "fleet/objects.h"
#include "model/names.h"

namespace berth::app {

Result<std::map<std::string, model::Amounts>> read_classes(const std::string& file) {
    std::map<std::string, model::Amounts> out;
    if (file.empty()) return out;
    const auto refuse = [&](const std::string& why) {
        return base::bad_request(fmt::format("--classes: {}: {}", file, why));
    };
    for (const auto& object : TRY(cli::read_object_file(file))) {
        const auto kind = base::find_string(object, {"kind"});
        if (kind != "MachineClass") return refuse(fmt::format("a \"{}\" is no MachineClass", kind));
        auto read = fleet::read_machine_class(object);
        const std::string name(base::find_string(object, {"metadata", "name"}));
        if (!read) return refuse(fmt::format("MachineClass \"{}\": {}", name, read.error().message));
        if (name.empty()) return refuse("a MachineClass has no name");
        if (!out.emplace(name, std::move(read->capabilities)).second)
            return refuse(fmt::format("MachineClass {} is there twice", name));
    }
    return out;
}

Result<Labels> read_label_words(const std::vector<std::string>& words, const std::string& flag) {
    std::map<std::string, std::string> out;
    for (const auto& word : words) {
        const auto equals = word.find('=');
        if (equals == std::string::npos)
            return base::bad_request(fmt::format("{}: \"{}\" is not key=value", flag, word));
        const std::string key = word.substr(0, equals);
        const std::string value = word.substr(equals + 1);
        if (const auto fault = model::label_key_fault(key))
            return base::bad_request(fmt::format("{}: \"{}\": {}", flag, word, *fault));
        if (const auto fault = model::label_value_fault(value))
            return base::bad_request(fmt::format("{}: \"{}\": {}", flag, word, *fault));
        if (!out.emplace(key, value).second) return base::bad_request(fmt::format("{}: {} is there twice", flag, key));
    }
    return Labels(std::vector<Labels::Entry>(out.begin(), out.end()));
}

Status check_pool_name(const std::string& name) {
    if (const auto fault = model::dns1123_subdomain_fault(name))
        return base::bad_request(fmt::format("--pool: \"{}\" cannot be the name of a MachinePool: {}", name, *fault));
    return {};
}

}  // namespace berth::app
