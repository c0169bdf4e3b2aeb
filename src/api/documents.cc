#include "api/documents.h"

#include "api/negotiate.h"
#include "api/status.h"
#include "base/json.h"

namespace berth::api {
namespace {

// The Kubernetes release whose API we speak; kubectl compares it with its own.
Json version_json() {
    return JsonObject{{"major", "1"},    {"minor", "32"},      {"gitVersion", "v1.32.0+berth"},
                      {"gitCommit", ""}, {"gitTreeState", ""}, {"buildDate", ""},
                      {"goVersion", ""}, {"compiler", "g++"},  {"platform", "linux/amd64"}};
}

}  // namespace

std::optional<Response> serve_document(const model::Kinds&, const Request& request) {
    const std::string& path = request.path;
    if (path == "/version" || path == "/version/") return json_response(200, base::to_text(version_json()) + "\n");
    return std::nullopt;
}

}  // namespace berth::api
