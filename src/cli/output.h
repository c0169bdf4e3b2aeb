#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "cli/command_line.h"

// -o: the forms in which a command prints what it found.
namespace berth::cli {

enum class Output : uint8_t {
    Table,
    Wide,  // the table, with more columns
    Json,
    Yaml,
    Name,  // a line "kind/name" for each
};

// "-o,--output", one of these; without it, what `value` is.
void output_option(CommandLine& line, Output& value, const std::vector<Output>& forms,
                   const std::string& help = "the form of what is printed");

inline bool is_document(Output output) {
    return output == Output::Json || output == Output::Yaml;
}
// As JSON in one line, or as YAML.
std::string document_text(const Json& document, Output output);
void print_document(const Json& document, Output output);

}  // namespace berth::cli
