#include "cli/config_file.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/json_view.h"
#include "cli/dump.h"

namespace berth::cli {
namespace {

Result<Json> read_the_document(const std::string& path) {
    auto documents = TRY(read_object_file(path));
    if (documents.size() != 1)
        return base::bad_request(fmt::format("{}: holds {} documents, not one", path, documents.size()));
    return std::move(documents.front());
}

}  // namespace

Result<sched::Configuration> read_configuration_file(const std::string& path, const std::string& default_name) {
    base::JsonParser parser;
    const std::string text = base::to_text(TRY(read_the_document(path)));
    auto read = sched::read_configuration(TRY(parser.parse(text)), default_name);
    if (!read) return base::bad_request(fmt::format("{}: {}", path, read.error().message));
    return read;
}

Result<control::DeschedulerConfig> read_descheduler_file(const std::string& path) {
    if (path.empty()) return control::DeschedulerConfig();
    auto read = control::read_descheduler_config(TRY(read_the_document(path)));
    if (!read) return base::bad_request(fmt::format("{}: {}", path, read.error().message));
    return read;
}

}  // namespace berth::cli
