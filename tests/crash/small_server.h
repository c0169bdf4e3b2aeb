#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "link/api_client.h"
#include "link/local.h"
#include "run/bind_guard.h"
#include "store/store.h"

namespace berth::crash {

inline constexpr const char* kReservations = "scheduling.koordinator.sh/reservations";

// An API server reduced to the requests that plans make: the real store and their preconditions. The embedded server
// has the guard, too; kube-apiserver asks of a bind only that it is the same pod, unassigned and not going.
// Each request takes effect within the call, or not at all.
class SmallServer {
public:
    explicit SmallServer(bool guarded);
    ~SmallServer() { store_->set_guard(nullptr); }
    SmallServer(const SmallServer&) = delete;
    SmallServer& operator=(const SmallServer&) = delete;

    link::Reply perform(const link::Request& request);
    // The whole document; its uid is the given one, or made up.
    void create(const std::string& kind, Json document);
    void remove(const store::Key& key);

    std::vector<store::RecordPtr> list(const std::string& kind) const;
    static Json document(const store::Record& record) { return *base::parse_json(*record.bytes); }
    std::unique_ptr<link::Feed> follow(const link::Resource& resource, std::function<void()> notify = [] {}) {
        return local_.follow(resource, std::move(notify));
    }
    // Called after every write.
    std::function<void()> written;
    store::Store& store() { return *store_; }

private:
    struct Target {
        store::Key key;
        std::string subresource;
    };
    static Target target_of(const std::string& path);
    link::Reply create_object(store::Key key, Json body);
    link::Reply change(const store::Key& key, const Json& patch, const std::function<void(Json&)>& edit);
    link::Reply bind(const store::Key& key, const Json& body);
    link::Reply erase(const store::Key& key, const Json& options);
    link::Reply commit(store::Write write);

    std::unique_ptr<store::Store> store_;
    run::BindGuard guard_;
    link::LocalServer local_;
    uint64_t serial_ = 0;
};

}  // namespace berth::crash
