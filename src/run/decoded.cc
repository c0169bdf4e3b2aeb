#include "run/decoded.h"

#include <optional>

#include "model/reader.h"

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

Result<ledger::Object> decode(const ledger::Kind& kind, const std::string& text, uint64_t revision,
                              const base::Memo* memo) {
    if (kind.gives<model::Pod>()) return ledger::Object(TRY(decode_pod(text, revision, memo)));
    return kind.read(TRY(parse_here(text)), revision);
}

Result<model::Meta> meta_of(const link::FeedEvent& event) {
    const JsonView view = TRY(parse_here(*event.text));
    std::string trouble;
    return model::read_meta(model::Reader(view, trouble));
}

link::Resource resource_of(const ledger::Kind& kind) {
    return {std::string(kind.group), std::string(kind.version), std::string(kind.plural)};
}

}  // namespace berth::run
