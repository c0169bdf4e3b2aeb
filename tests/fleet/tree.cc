#include "tree.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"

namespace berth::fleet_test {
namespace {

constexpr const char* kMachines = "compute.ironcore.dev/machines";
constexpr const char* kReservations = "core.ironcore.dev/reservations";

std::unique_ptr<link::ApiClient> client(crash::SmallServer& server, Network& network) {
    return std::make_unique<Client>(server, network);
}

}  // namespace

Tree::Tree(const Spec& root, uint64_t seed) : random(seed) {
    base::set_log({.level = base::LogLevel::Off});  // of what is lost and killed here, thousands of lines
    layers_.push_back(std::make_unique<Layer>());
    add_layer(*layers_.back(), root);
}

Tree::~Tree() {
    for (auto& actor : actors) actor.driver.reset();
    for (auto& far : fars_) far->runtime.reset();
    for (auto& leaf : leaves) {
        leaf->far.runtime.reset();
        leaf->provider.reset();
    }
    network.selected.clear();  // before the servers
}

void Tree::add(std::string name, Make make, std::function<void()> killed) {
    actors.push_back({std::move(name), std::move(make), std::move(killed), nullptr});
    next_.emplace_back();
    begin(actors.size() - 1);
}

void Tree::begin(size_t at) {
    actors[at].driver = actors[at].make([bells = bells_, at] { bells->rung.insert(at); });
    bells_->rung.insert(at);
}

Tree::Actor& Tree::actor(const std::string& name) {
    const auto found = std::find_if(actors.begin(), actors.end(), [&](const auto& each) { return each.name == name; });
    CHECK(found != actors.end());
    return *found;
}

void Tree::stop(const std::string& name) {
    auto& gone = actor(name);
    if (gone.killed) gone.killed();
    gone.driver.reset();
}

void Tree::kill(size_t at) {
    Actor& actor = actors[at];
    if (actor.killed) actor.killed();
    actor.driver.reset();
    begin(at);
}

void Tree::turn(size_t at) {
    auto& driver = actors[at].driver;
    due_.erase({next_[at], at});
    if (!driver) return;
    driver->turn(run::moment(clock));
    next_[at] = driver->next();
    due_.insert({next_[at], at});
    check(at);
    turned(at);
}

void Tree::add_layer(Layer& layer, const Spec& spec) {
    add("scheduler of " + spec.name, [this, &layer](link::Wake wake) {
        return std::make_shared<run::FleetScheduler>(
            run::FleetScheduler::Doors{client(layer.server, network), std::move(wake)}, fleet::RoundRules{});
    });
    for (const auto& pool : spec.below) add_pool(layer, pool);
}

void Tree::add_pool(Layer& above, const Spec& pool, const Labels& labels) {
    Far* far = nullptr;
    if (pool.below.empty()) {
        leaves.push_back(std::make_unique<Leaf>());
        Leaf* leaf = leaves.back().get();
        leaf->name = pool.name;
        leaf->cpu = pool.cpu;
        far = &leaf->far;
        add(
            "provider " + pool.name,
            [this, leaf](link::Wake wake) {
                run::ProviderOptions options;
                options.name = leaf->name;
                options.capacity = {{"cpu", Quantity::from_value(leaf->cpu)}};
                options.epoch = leaf->rows->epoch;
                leaf->provider = std::make_shared<run::FleetProvider>(
                    std::move(options), std::make_unique<MemoryJournal>(leaf->rows), std::move(wake));
                CHECK(leaf->provider->open(run::moment(clock)).ok());
                leaf->far.runtime = leaf->provider;
                return leaf->provider;
            },
            [leaf] {
                leaf->far.kill();
                leaf->provider.reset();
            });
    } else {
        layers_.push_back(std::make_unique<Layer>());
        Layer* layer = layers_.back().get();
        fars_.push_back(std::make_unique<Far>());
        far = fars_.back().get();
        add(
            "broker of " + pool.name,
            [this, layer, far, pinned = pool.pinned](link::Wake wake) {
                auto broker = std::make_shared<run::FleetBroker>(
                    run::FleetBroker::Doors{client(layer->server, network), std::move(wake)},
                    fleet::BrokerPlace{.pool = pinned}, run::FleetBroker::Times{});
                far->runtime = broker;
                return broker;
            },
            [far] { far->kill(); });
        add_layer(*layer, pool);
    }
    add("poollet " + pool.name, [this, &above, far, labels, name = pool.name](link::Wake wake) {
        run::PoolletOptions options;
        options.pool = name;
        options.labels = labels;
        return std::make_shared<run::Poollet>(
            run::Poollet::Doors{client(above.server, network), std::make_shared<Wire>(*far, network), std::move(wake)},
            options);
    });
}

link::Request Tree::compute(const std::string& method, const std::string& plural, const std::string& name, Json body) {
    const std::string path =
        "/apis/compute.ironcore.dev/v1alpha1/namespaces/default/" + plural + (name.empty() ? "" : "/" + name);
    return {method, path, body.is_null() ? "" : base::to_text(body)};
}

void Tree::reserve(const std::string& name, int64_t cpu) {
    layers_.front()->server.create(
        kReservations, JsonObject{{"apiVersion", "core.ironcore.dev/v1alpha1"},
                                  {"kind", "Reservation"},
                                  {"metadata", JsonObject{{"name", name}, {"namespace", "default"}}},
                                  {"spec", JsonObject{{"resources", JsonObject{{"cpu", std::to_string(cpu)}}}}}});
}

void Tree::release(const std::string& name) {
    const std::string path = "/apis/core.ironcore.dev/v1alpha1/namespaces/default/reservations/" + name;
    layers_.front()->server.perform({"DELETE", path, "{}"});
}

void Tree::edit_pool(const std::string& name, Json body) {
    layers_.front()->server.perform({"PATCH", "/apis/compute.ironcore.dev/v1alpha1/machinepools/" + name,
                                     base::to_text(body), "application/merge-patch+json"});
}

void Tree::remove_pool(const std::string& name) {
    layers_.front()->server.perform({"DELETE", "/apis/compute.ironcore.dev/v1alpha1/machinepools/" + name, "{}"});
}

void Tree::add_leaf(const std::string& name, int64_t cpu, Labels labels) {
    add_pool(*layers_.front(), {name, cpu, {}}, labels);
}

void Tree::add_scheduler() {
    add_layer(*layers_.front(), {"root again", 0, {}});
}

int64_t Tree::entries(const std::string& reservation) const {
    for (const auto& record : layers_.front()->server.list(kReservations)) {
        if (record->key.name != reservation) continue;
        const Json object = crash::SmallServer::document(*record);
        if (const Json* pools = base::find(object, {"status", "pools"}))
            return static_cast<int64_t>(pools->get_array().size());
    }
    return 0;
}

void Tree::machine(const std::string& name, int64_t cpu, const std::string& pool) {
    cpus[name] = cpu;
    JsonObject spec{{"machineClassRef", JsonObject{{"name", "any"}}}};
    if (!pool.empty()) spec["machinePoolRef"] = JsonObject{{"name", pool}};
    const JsonObject notes{{model::kResourcesAnnotation, fmt::format(R"({{"cpu":"{}"}})", cpu)}};
    layers_.front()->server.create(
        kMachines,
        JsonObject{{"apiVersion", "compute.ironcore.dev/v1alpha1"},
                   {"kind", "Machine"},
                   {"metadata", JsonObject{{"name", name}, {"namespace", "default"}, {"annotations", notes}}},
                   {"spec", std::move(spec)}});
}

void Tree::remove_machine(const std::string& name) {
    layers_.front()->server.perform(compute("DELETE", "machines", name, JsonObject()));
}

void Tree::resize(Leaf& leaf, int64_t cpu) {
    leaf.cpu = cpu;
    if (leaf.provider) leaf.provider->resize({{"cpu", Quantity::from_value(cpu)}});
}

void Tree::step() {
    network.deliver();
    // Several turns at one time: what one of them wrote is there for the others. Each is turned when it was rung, or
    // has said that it is time, and at no other moment: who misses a ring waits here, too.
    for (int round = 0; round < 4; ++round) {
        network.pump();
        for (auto it = due_.begin(); it != due_.end() && it->first <= clock.now(); ++it)
            bells_->rung.insert(it->second);
        for (const size_t at : std::exchange(bells_->rung, {})) turn(at);
    }
    base::Instant next = clock.now() + std::chrono::seconds(1);
    if (!due_.empty()) next = std::min(next, due_.begin()->first);
    if (!bells_->rung.empty()) next = clock.now();
    if (const auto arrival = network.next()) next = std::min(next, *arrival);
    clock.advance(std::max<base::Duration>(next - clock.now(), std::chrono::microseconds(500)));
}

void Tree::run(base::Duration time) {
    const auto end = clock.now() + time;
    while (clock.now() < end) step();
}

std::map<std::string, Tree::Seen> Tree::machines() const {
    std::map<std::string, Seen> out;
    for (const auto& record : layers_.front()->server.list(kMachines)) {
        const Json object = crash::SmallServer::document(*record);
        out[std::string(base::find_string(object, {"metadata", "name"}))] = {
            std::string(base::find_string(object, {"spec", "machinePoolRef", "name"})),
            std::string(base::find_string(object, {"status", "state"})), record->uid,
            base::find(object, {"metadata", "deletionTimestamp"}) != nullptr};
    }
    return out;
}

size_t Tree::reservations() const {
    size_t out = 0;
    for (const auto& layer : layers_) out += layer->server.list(kReservations).size();
    return out;
}

}  // namespace berth::fleet_test
