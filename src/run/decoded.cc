#include "run/decoded.h"

#include <optional>

namespace berth::run {

Result<JsonView> parse_here(const std::string& text) {
    thread_local base::JsonParser parser;
    return parser.parse(text);
}

Result<model::Pod> read_pod_here(const std::string& text) {
    return model::read_pod(TRY(parse_here(text)));
}

Result<std::shared_ptr<const model::Pod>> decode_pod(const std::string& text, uint64_t revision,
                                                     const base::Memo* memo) {
    std::optional<Error> trouble;
    const auto make = [&]() -> std::shared_ptr<const model::Pod> {
        auto pod = read_pod_here(text);
        if (!pod) {
            trouble = pod.error();
            return nullptr;
        }
        pod->meta.revision = revision;
        return std::make_shared<const model::Pod>(std::move(*pod));
    };
    auto pod = memo != nullptr ? memo->get<model::Pod>(make) : make();
    if (!pod) return *trouble;
    return pod;
}

}  // namespace berth::run
