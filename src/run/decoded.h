#pragma once

#include <memory>

#include "base/json_view.h"
#include "base/memo.h"
#include "base/result.h"
#include "ledger/intake.h"
#include "link/api_client.h"
#include "model/pod.h"

namespace berth::run {

// With a parser of this thread's own: its buffers are large.
Result<JsonView> parse_here(const std::string& text);

Result<model::Pod> read_pod_here(const std::string& text);

// The pod as of this revision. Where the text has a memo it is decoded once for all who read it.
Result<std::shared_ptr<const model::Pod>> decode_pod(const std::string& text, uint64_t revision,
                                                     const base::Memo* memo);

Result<ledger::Object> decode(const ledger::Kind& kind, const std::string& text, uint64_t revision,
                              const base::Memo* memo);
inline Result<ledger::Object> decode(const ledger::Kind& kind, const link::FeedEvent& event) {
    return decode(kind, *event.text, event.revision, event.memo.get());
}

// All that is certain of an object that is gone.
Result<model::Meta> meta_of(const link::FeedEvent& event);

link::Resource resource_of(const ledger::Kind& kind);

}  // namespace berth::run
