#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/http.h"
#include "api/in_flight.h"
#include "api/render.h"

namespace berth::api {

inline constexpr size_t kWholeAnswer = 64u << 10;  // larger ones are streams
inline constexpr size_t kAnswerPiece = 256u << 10;

// The answer to a read that is too large to wait for its reader as a whole: a list is rendered piece by piece. It holds
// on to none of the versions it lists; when the store has forgotten one that was not sent yet, the answer breaks off.
class AnswerSource final : public Source {
public:
    // A list of these records.
    AnswerSource(const Call& call, const Form& form, base::Time now, const std::vector<store::RecordPtr>& records,
                 ListMeta meta);
    // A text that there is already.
    explicit AnswerSource(std::string text) : begun_(std::move(text)) {}

    // Renders ahead; true when that is the whole answer, in `out`. Else it is kept for the first pull.
    bool whole(std::string& out);
    // The bytes that the answer holds at most while it is sent.
    size_t holds() const { return holds_ + begun_.size(); }
    void keep(InFlight::Place place) { place_ = std::move(place); }

    State pull(std::string& out) override;
    void stop() override { stopped_ = true; }

private:
    struct List {
        std::shared_ptr<const model::Kinds> table;  // keeps the kind
        RenderContext look;
        ListMeta meta;
        std::vector<std::weak_ptr<const store::Record>> records;
        size_t next = 0;
    };
    State render(std::string& out, size_t most);

    std::unique_ptr<List> list_;
    std::string begun_;
    size_t holds_ = 0;
    bool stopped_ = false;
    InFlight::Place place_;
};

}  // namespace berth::api
