#include "app/fleet_up.h"

#include <fmt/format.h>

#include <filesystem>
#include <mutex>

#include "api/identity.h"
#include "app/driver_thread.h"
#include "app/local_link.h"
#include "base/random.h"
#include "base/yaml.h"
#include "model/names.h"
#include "run/fleet_broker.h"
#include "run/fleet_provider.h"
#include "run/fleet_scheduler.h"
#include "run/poollet.h"
#include "run/sqlite_journal.h"

namespace berth::app {
namespace {

constexpr const char* kIdentity = "fleet";
constexpr size_t kAgedOfALayer = 4 << 20;  // of what was: those who follow a layer are in this process
constexpr const char* kRootIsALayer = "--fleet: the root is a layer: name a pool, such as 'a: {cpu: 4}'";

Result<model::Amounts> read_capacity(const std::string& name, const JsonObject& amounts) {
    model::Amounts out;
    for (const auto& entry : amounts) {
        const std::string given(entry.value().is_string() ? std::string(entry.value().get_string())
                                                          : base::to_text(entry.value()));
        const auto amount = Quantity::parse(given);
        if (!amount || amount->is_negative())
            return base::bad_request(
                fmt::format("--fleet: {}: {} of {} is no amount", name, given, std::string_view(entry.key())));
        out.emplace(entry.key(), *amount);
    }
    return out;
}

Result<FleetSpec> read_spec(const std::string& name, const Json& value, int depth) {
    FleetSpec out;
    out.name = name;
    if (depth == 0 && (!value.is_object() || value.get_object().empty())) return base::bad_request(kRootIsALayer);
    if (!value.is_object() || value.get_object().empty())
        return base::bad_request(fmt::format("--fleet: {} is neither amounts nor pools", name));
    size_t mappings = 0;
    for (const auto& entry : value.get_object()) mappings += entry.value().is_object() ? 1 : 0;
    if (mappings == 0 && depth == 0) return base::bad_request(kRootIsALayer);
    if (mappings == 0) {
        out.capacity = TRY(read_capacity(name, value.get_object()));
        return out;
    }
    if (mappings != value.get_object().size() || depth > 8)
        return base::bad_request(fmt::format("--fleet: {} mixes amounts and pools, or is too deep", name));
    for (const auto& entry : value.get_object()) {
        const std::string child(entry.key());
        if (model::dns1123_label_fault(child))
            return base::bad_request(fmt::format("--fleet: \"{}\" cannot be the name of a pool", child));
        out.children.push_back(TRY(read_spec(child, entry.value(), depth + 1)));
    }
    return out;
}

// Rings before and after its driver has a thread.
struct LateWake {
    std::mutex mutex;
    link::Wake wake;
    void ring() {
        const std::lock_guard lock(mutex);
        if (wake) wake();
    }
    void set(link::Wake now) {
        const std::lock_guard lock(mutex);
        wake = std::move(now);
    }
};

// A part of the tree that is also asked by others: they hold it, too.
template <class T>
class Borrowed final : public run::Driver {
public:
    explicit Borrowed(std::shared_ptr<T> driver) : driver_(std::move(driver)) {}
    void turn(const run::Moment& now) override { driver_->turn(now); }
    base::Instant next() const override { return driver_->next(); }
    void stop() override { driver_->stop(); }
    bool idle() const override { return driver_->idle(); }
    bool synced() const override { return driver_->synced(); }

private:
    const std::shared_ptr<T> driver_;
};

template <class T>
DriverThread::Make lend(std::shared_ptr<T> driver, std::shared_ptr<LateWake> wake) {
    return [driver = std::move(driver), wake = std::move(wake)](link::Wake ring) {
        wake->set(std::move(ring));
        return std::make_unique<Borrowed<T>>(driver);
    };
}

}  // namespace

Result<std::optional<FleetSpec>> read_fleet(const std::string& text) {
    if (text.empty()) return std::optional<FleetSpec>();
    const bool in_braces = text.front() == '{';
    const auto documents = base::parse_yaml(in_braces ? text : "{" + text + "}");
    if (!documents) return base::bad_request(fmt::format("--fleet: {}", documents.error().message));
    if (documents->size() != 1) return base::bad_request("--fleet: it must be one mapping");
    return std::optional<FleetSpec>(TRY(read_spec("root", documents->front(), 0)));
}

Result<std::unique_ptr<Fleet>> Fleet::start(Server& root, const FleetSpec& spec, const ServerOptions& options) {
    std::unique_ptr<Fleet> out(new Fleet);
    TRY(out->add_layer(root, spec, options));
    return out;
}

Fleet::~Fleet() {
    // From the top down: whoever asks goes before whom he asks.
    for (auto& component : components_) component.reset();
}

void Fleet::tick() {
    for (const auto& server : servers_) server->tick();
}

Status Fleet::add_layer(Server& server, const FleetSpec& layer, const ServerOptions& options) {
    components_.push_back(std::make_unique<DriverThread>("fleet-scheduler", base::system_clock(), [&](link::Wake wake) {
        return std::make_unique<run::FleetScheduler>(
            run::FleetScheduler::Doors{local_link(server, api::controller_identity(kIdentity)), std::move(wake)},
            fleet::RoundRules{});
    }));
    for (const auto& pool : layer.children) TRY(add_pool(server, pool, options));
    return {};
}

Status Fleet::add_pool(Server& above, const FleetSpec& pool, const ServerOptions& options) {
    auto wake = std::make_shared<LateWake>();
    const link::Wake ring = [wake] { wake->ring(); };
    std::shared_ptr<link::MachineRuntime> runtime;
    std::unique_ptr<Component> below;
    std::string provider_id = "berth-provider://" + pool.name;
    Server* layer = nullptr;
    ServerOptions of_layer = options;
    if (pool.provider()) {
        run::ProviderOptions provider;
        provider.name = pool.name;
        provider.capacity = pool.capacity;
        provider.epoch = std::to_string(base::seed_from_system());
        std::unique_ptr<run::FleetJournal> journal;
        if (!options.in_memory) {
            auto opened = TRY(run::open_fleet_journal(options.data_dir + "/providers/" + pool.name, provider.epoch));
            provider.epoch = opened.epoch;
            journal = std::move(opened.journal);
        }
        auto driver = std::make_shared<run::FleetProvider>(std::move(provider), std::move(journal), ring);
        TRY(driver->open(run::moment(base::system_clock())));
        runtime = driver;
        below = std::make_unique<DriverThread>("fleet-provider", base::system_clock(), lend(std::move(driver), wake));
    } else {
        of_layer.data_dir = options.data_dir + "/layers/" + pool.name;
        of_layer.listen = "127.0.0.1:0";
        of_layer.fleet = true;
        of_layer.history.aged_bytes = kAgedOfALayer;
        std::error_code trouble;
        std::filesystem::create_directories(options.data_dir + "/layers", trouble);
        servers_.push_back(TRY(Server::start(of_layer)));
        layer = servers_.back().get();
        const std::string layer_file = std::filesystem::absolute(layer->kubeconfig()).string();
        provider_id = "berth-layer://" + pool.name;
        auto driver = std::make_shared<run::FleetBroker>(
            run::FleetBroker::Doors{local_link(*layer, api::controller_identity(kIdentity)), ring},
            fleet::BrokerPlace{}, run::FleetBroker::Times{}, run::FleetBroker::Shown{layer_file, false});
        runtime = driver;
        below = std::make_unique<DriverThread>("fleet-broker", base::system_clock(), lend(std::move(driver), wake));
    }
    run::PoolletOptions poollet;
    poollet.pool = pool.name;
    poollet.provider_id = provider_id;
    components_.push_back(std::make_unique<DriverThread>("fleet-poollet", base::system_clock(), [&](link::Wake turn) {
        return std::make_unique<run::Poollet>(
            run::Poollet::Doors{local_link(above, api::controller_identity(kIdentity)), runtime, std::move(turn)},
            poollet);
    }));
    components_.push_back(std::move(below));
    if (layer != nullptr) TRY(add_layer(*layer, pool, of_layer));
    return {};
}

}  // namespace berth::app
