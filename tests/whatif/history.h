#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/random.h"
#include "link/api_client.h"

namespace berth::whatif {

// Something that somebody does to a cluster.
struct Deed {
    std::string what;  // for people
    link::Request request;
};

// Random deeds, one after the other, each about a cluster of a few nodes as it is at the time.
class History {
public:
    explicit History(uint64_t seed) : random_(seed) {}
    Deed next(const std::vector<Json>& now);
    static Deed make_node(const std::string& name, int cpu);
    // In which order things were made.
    size_t age_of(const std::string& name) const;

private:
    Deed make_pod();
    Deed make_reservation();
    Deed annotate_node(const std::string& name);
    Deed cordon(const Json& node);
    Deed delete_one(const std::string& kind, const std::string& name);
    Deed close(const Json& reservation);
    std::string new_name(const char* kind);
    std::string app() { return std::string(1, static_cast<char>('a' + random_.below(3))); }
    std::string cpu(int64_t most) { return std::to_string(random_.between(1, most)); }

    base::Random random_;
    std::map<std::string, size_t> ages_;
    size_t nodes_ = 0;
};

}  // namespace berth::whatif
