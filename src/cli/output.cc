#include "cli/output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/yaml.h"

namespace berth::cli {
namespace {

constexpr std::array<std::pair<Output, const char*>, 5> kForms{{{Output::Table, "table"},
                                                                {Output::Wide, "wide"},
                                                                {Output::Json, "json"},
                                                                {Output::Yaml, "yaml"},
                                                                {Output::Name, "name"}}};

}  // namespace

void output_option(CommandLine& line, Output& value, const std::vector<Output>& forms, const std::string& help) {
    std::vector<std::string> names;
    for (const auto& [form, name] : kForms) {
        if (std::find(forms.begin(), forms.end(), form) != forms.end()) names.emplace_back(name);
    }
    const auto set = [&value](const std::string& given) {
        for (const auto& [form, name] : kForms) {
            if (given == name) value = form;
        }
    };
    line.option("-o,--output", set, fmt::format("{}: {}", help, fmt::join(names, ", "))).one_of(names);
}

std::string document_text(const Json& document, Output output) {
    return output == Output::Yaml ? base::yaml_text(document) : base::to_text(document) + "\n";
}

void print_document(const Json& document, Output output) {
    fmt::print("{}", document_text(document, output));
}

}  // namespace berth::cli
