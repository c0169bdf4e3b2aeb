#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "share/answer.h"

// Taking back over time: who has too much since when, who may be taken now, and what was taken for whom. Each answer
// says who would go if every grace period had passed; this says who goes now.
namespace berth::share {

struct ReclaimLimits {
    size_t per_cycle = 50;
    size_t per_consumer = 20;  // in a cycle
    size_t per_minute = 300;   // of all together
};

// How a consumer stands with those who want something back.
struct Overuse {
    std::optional<base::Time> overused_since;  // it has more than it deserves, whether anybody needs that or not
    std::optional<base::Time> wanted_since;    // others need it
    std::optional<base::Time> deadline;        // its own controllers may choose until then
    Resources amounts;                         // that are wanted

    bool operator==(const Overuse&) const = default;
};

class Reclaiming {
public:
    using Overuses = std::map<std::string, Overuse, std::less<>>;

    explicit Reclaiming(base::Duration grace, ReclaimLimits limits = {}) : grace_(grace), limits_(limits) {}

    // What a former leader has published: its deadlines go on.
    void remember(const std::string& consumer, std::optional<base::Time> overused_since,
                  std::optional<base::Time> deadline);
    // Marks in the scene what earlier cycles know of its pods: who is going, who cannot go, for whom room is kept, who
    // does not start although there is room.
    void prepare(Scene& scene, base::Time now);
    // Who goes now: of the answer's victims those whose consumers' grace has passed, for a claim all or none. What is
    // given here counts as under way.
    std::vector<Victim> due(const Scene& scene, const Answer& answer, base::Time now);

    // What came of an eviction. A budget, or something else, does not let it go for now: the next one is tried.
    void refused(const std::string& uid, const std::string& why, base::Time now);
    void failed(const std::string& uid);  // nothing happened, or nobody knows: it may be asked again

    const Overuses& standings() const { return standings_; }
    // Why pods cannot go now, by their consumer.
    std::map<std::string, std::string> refusals() const;
    // When something is due though nothing changes.
    std::optional<base::Time> next() const;

private:
    struct Going {
        std::string claim;
        base::Time until;  // by then it was seen to go, or it never will
    };
    struct Refused {
        std::string ns, why;
        base::Time until;
    };
    struct Served {
        std::string node;
        base::Time until;
    };
    // It may start and has room, and does not.
    struct Stuck {
        base::Time since;
        uint64_t nodes = 0;   // what they were then
        bool parked = false;  // it left the demand
    };

    void look_at_pods(Scene& scene, base::Time now);
    void look_at_claim(ScenePod& pod, const std::map<std::string_view, uint32_t>& nodes, uint64_t state);
    void stand(const Scene& scene, const Answer& answer, base::Time now);
    void see_stuck(const Scene& scene, const Answer& answer, base::Time now);
    bool within_limits(const std::vector<Victim>& group, const Scene& scene,
                       const std::map<std::string_view, size_t>& taken, size_t total, base::Time now) const;

    base::Duration grace_;
    ReclaimLimits limits_;
    Overuses standings_;
    std::map<std::string, Going, std::less<>> going_;             // by uid
    std::map<std::string, Refused, std::less<>> refused_;         // by uid
    std::map<std::string, Served, std::less<>> served_;           // claims, by uid
    std::map<std::string, Stuck, std::less<>> stuck_;             // by uid
    std::map<std::string, std::string, std::less<>> namespaces_;  // of those that are going, by uid
    std::vector<base::Time> evictions_;                           // of the last minute
    uint64_t nodes_ = 0;                                          // what the nodes are now
    std::optional<base::Time> next_;
};

}  // namespace berth::share
