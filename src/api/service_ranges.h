#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/api_context.h"

namespace berth::api {

// Numbers of which each is given to one at a time.
class NumberRange {
public:
    NumberRange(int64_t first, size_t size) : first_(first), holders_(size) {}

    void hold(int64_t number);
    void let_go(int64_t number);
    void clear();
    // One that nobody holds, at random; of those given lately only when there is no other, since what they were given
    // for may not be stored yet. None when the range is full.
    std::optional<int64_t> give(Ids& ids);

private:
    uint32_t* holders(int64_t number);
    bool lately(int64_t number) const;

    int64_t first_;
    std::vector<uint32_t> holders_;
    size_t held_ = 0;
    std::deque<int64_t> lately_;
};

// The cluster addresses and node ports that Services hold. Follows the store: each change of a Service is read once.
// Any thread.
class ServiceRanges {
public:
    explicit ServiceRanges(store::Store& store) : store_(store) {}

    // Internal errors in Kubernetes' words when nothing is left.
    Result<std::string> address(Ids& ids);
    Result<int64_t> node_port(Ids& ids);

private:
    Status follow();
    Status begin();
    template <class F>
    static Status each_number(const store::Record& record, F f);
    Result<int64_t> give(NumberRange& range, Ids& ids, std::string_view what);

    store::Store& store_;
    std::mutex mutex_;
    std::optional<store::Revision> seen_;  // up to here Services are counted
    // 10.96.0.0/16, as kubeadm's default begins; .0.1 is the API server's.
    NumberRange addresses_{2, 65'000};
    NumberRange ports_{30'000, 2768};
};

}  // namespace berth::api
