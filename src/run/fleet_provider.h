#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fleet/hold_table.h"
#include "link/machine_runtime.h"
#include "run/driver.h"
#include "run/fleet_metrics.h"
#include "run/inbox.h"
#include "run/served_runtime.h"

namespace berth::run {

// What a provider keeps over restarts. Nothing is answered before it was written.
struct LedgerRow {
    std::string lineage;
    std::string hold;  // documents; "" is none
    std::string machine;
    std::string fence;
};
class FleetJournal {
public:
    virtual ~FleetJournal() = default;
    virtual Result<std::vector<LedgerRow>> read() = 0;
    // All or nothing, durable when it returns.
    virtual Status write(const std::vector<LedgerRow>& rows) = 0;
};

struct ProviderOptions {
    std::string name = "provider";
    model::Amounts capacity;
    std::map<std::string, model::Amounts> classes;
    fleet::HoldTimes times = {};
    std::string epoch;             // of the ledger
    bool publish_amounts = false;  // to whoever asks for its status
    base::Metrics* metrics = nullptr;
};

// The owner of hardware, who alone decides. A driver: calls come in by its inbox, leases end in its turns.
class FleetProvider final : public Driver, public ServedRuntime {
public:
    // A simulated or real machine is made and removed; called in the driver's turn, before anybody hears of it.
    using Hook = std::function<Status(const std::string& verb, const model::IriMachine& machine)>;

    // Null: it forgets everything with the process.
    FleetProvider(ProviderOptions options, std::unique_ptr<FleetJournal> journal, link::Wake wake, Hook hook = {});

    Status open(const Moment& now);
    void turn(const Moment& now) override;
    base::Instant next() const override { return next_; }
    void stop() override { stopping_ = true; }
    bool idle() const override { return true; }
    bool synced() const override { return true; }

    // Any thread; takes effect in the next turn.
    void resize(model::Amounts capacity);
    const fleet::HoldTable& table() const { return table_; }

    void version(link::Answered<Version> answer) override;
    void status(link::Answered<std::vector<model::IriClassStatus>> answer) override;
    void list_machines(model::IriFilter filter, link::Answered<std::vector<model::IriMachine>> answer) override;
    void create_machine(model::IriMachine machine, link::Answered<model::IriMachine> answer) override;
    void delete_machine(std::string id, link::Answered<bool> answer) override;
    void update_power(std::string id, bool on, link::Answered<bool> answer) override;
    void update_annotations(std::string id, Labels annotations, link::Answered<bool> answer) override;
    void put_volume(std::string id, model::IriVolume volume, bool attach, link::Answered<bool> answer) override;
    void detach_volume(std::string id, std::string name, link::Answered<bool> answer) override;
    void attach_interface(std::string id, model::IriNetworkInterface nic, link::Answered<bool> answer) override;
    void detach_interface(std::string id, std::string name, link::Answered<bool> answer) override;
    void list_events(model::IriEventFilter filter, link::Answered<std::vector<model::IriEvent>> answer) override;
    void list_reservations(model::IriFilter filter, link::Answered<std::vector<model::IriReservation>> answer) override;
    void create_reservation(model::IriReservation reservation, link::Answered<model::IriReservation> answer) override;
    void delete_reservation(std::string id, link::Answered<bool> answer) override;
    void renew_reservation(std::string id, link::Answered<model::IriReservation> answer) override;
    void confirm_reservation(std::string id, uint64_t attempt, link::Answered<model::IriReservation> answer) override;

private:
    using Change = std::function<Status(model::IriMachine&)>;

    // Does it in the next turn; the answer goes out when what it changed is durable.
    template <class T>
    void serve(link::Answered<T> answer, std::function<Result<T>()> call) {
        inbox().push([this, answer = std::move(answer), call = std::move(call)] {
            if (metrics_) metrics_->called();
            auto result = std::make_shared<Result<T>>(failed_ ? Result<T>(*failed_) : call());
            answers_.push_back([answer, result] { answer(std::move(*result)); });
        });
    }
    void change(std::string id, link::Answered<bool> answer, Change change);
    Result<model::IriMachine> create(model::IriMachine machine);
    Result<bool> remove(const std::string& id);
    Status fit(const model::IriMachine& before, const model::IriMachine& after);
    void note(const model::IriMeta& about, bool warning, const std::string& reason, const std::string& words);
    Result<model::Amounts> needs(const model::IriMachine& machine) const;
    Status check_known() const;
    model::IriReservation reservation(const std::string& lineage) const;
    model::IriReservation say(const std::string& lineage);
    void commit();
    void tell_of(const std::string& lineage);
    LedgerRow row(const std::string& lineage) const;
    void tell_all() override;

    const ProviderOptions options_;
    const std::unique_ptr<FleetJournal> journal_;
    const Hook hook_;
    fleet::HoldTable table_;
    std::map<std::string, model::IriMachine> machines_;  // by lineage, which is their id
    std::map<std::string, model::IriMeta> metas_;        // of reservations, by lineage
    // What was last said of a reservation, to whoever asked or to those who watch.
    struct Said {
        std::string id;
        uint64_t sequence = 0;
        bool operator==(const Said&) const = default;
    };
    std::map<std::string, Said> said_;  // by lineage
    std::set<std::string> changed_;     // machines beside the table's own changes
    std::deque<model::IriEvent> events_;
    std::vector<std::function<void()>> answers_;
    std::unique_ptr<ProviderMetrics> metrics_;
    std::optional<Error> failed_;  // of the journal: nothing is promised any more
    Moment now_;
    base::Instant next_;
    bool stopping_ = false;
};

}  // namespace berth::run
