#include "cli/config_file.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/json_view.h"
#include "cli/dump.h"

namespace berth::cli {

Result<sched::Configuration> read_configuration_file(const std::string& path, const std::string& default_name) {
    const auto documents = TRY(read_object_file(path));
    if (documents.size() != 1) {
        return base::bad_request(fmt::format("{}: holds {} documents, not one", path, documents.size()));
    }
    base::JsonParser parser;
    const std::string text = base::to_text(documents.front());
    auto read = sched::read_configuration(TRY(parser.parse(text)), default_name);
    if (!read) return base::bad_request(fmt::format("{}: {}", path, read.error().message));
    return read;
}

}  // namespace berth::cli
