#include "run/fleet_provider.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/log.h"
#include "fleet/translate.h"
#include "run/agenda.h"
#include "run/ledger_rows.h"

namespace berth::run {
namespace {

using fleet::HoldTable;
using link::RuntimeChange;
using model::IriMachine;
using model::IriReservation;

constexpr size_t kMostEvents = 1000;
constexpr size_t kMostResources = 128;
// What a client may have us remember that has nothing for it: refusals, deletions, machines of a billionth of a core.
constexpr size_t kMostKnown = 50'000;
constexpr size_t kLongestName = 512;
constexpr size_t kMostSaid = size_t{16} << 10;      // of a reservation, beside its amounts
constexpr int64_t kLargestDisk = int64_t{1} << 50;  // a machine may have a hundred of them

// "LINEAGE.ATTEMPT": a reservation's id. Calls about an older attempt do nothing to a later one.
std::string id_of(const std::string& lineage, uint64_t attempt) {
    return fmt::format("{}.{}", lineage, attempt);
}

std::pair<std::string, uint64_t> parts_of(const std::string& id, char mark = '.') {
    const auto dot = id.rfind(mark);
    uint64_t attempt = 0;
    if (dot != std::string::npos) std::from_chars(id.data() + dot + 1, id.data() + id.size(), attempt);
    return {id.substr(0, dot), attempt};
}

// IronCore's poollets know no state for a machine that was stopped; Suspended is what they take for off.
model::IriMachineState state_of(bool on) {
    return on ? model::IriMachineState::Running : model::IriMachineState::Suspended;
}

size_t size_of(const Labels& labels) {
    size_t out = 0;
    for (const auto& [key, value] : labels) out += key.size() + value.size();
    return out;
}

// Amounts have limits of their own.
Status check_size(const IriReservation& wanted, const std::string& lineage) {
    const auto& ask = wanted.ask;
    size_t said = size_of(wanted.meta.labels) + size_of(wanted.meta.annotations) + size_of(ask.selector);
    said += ask.machine_class.size() + ask.group.size();
    for (const auto& each : ask.tolerations) said += each.key.size() + each.value.size() + each.effect.size();
    for (const auto& pool : ask.pools) said += pool.size();
    if (lineage.size() <= kLongestName && said <= kMostSaid) return {};
    return base::bad_request(fmt::format("reservation {}: a lineage has at most {} bytes, all the rest {}",
                                         lineage.substr(0, kLongestName), kLongestName, kMostSaid));
}

Status check_amounts(const std::string& what, const model::Amounts& amounts) {
    if (amounts.empty()) return base::bad_request(fmt::format("{}: no resources are named", what));
    if (amounts.size() > kMostResources)
        return base::bad_request(
            fmt::format("{}: {} resources are named, at most {} may be", what, amounts.size(), kMostResources));
    for (const auto& [name, amount] : amounts) {
        if (amount.is_negative() || amount.is_zero() || name.empty() || name.size() > 253)
            return base::bad_request(fmt::format("{}: {} of \"{}\" is no amount above 0", what, amount.text(), name));
    }
    return {};
}

}  // namespace

FleetProvider::FleetProvider(ProviderOptions options, std::unique_ptr<FleetJournal> journal, link::Wake wake, Hook hook)
    : ServedRuntime(std::move(wake)),
      options_(std::move(options)),
      journal_(std::move(journal)),
      hook_(std::move(hook)),
      table_(options_.capacity, options_.times),
      metrics_(options_.metrics == nullptr ? nullptr : std::make_unique<ProviderMetrics>(*options_.metrics)) {}

Status FleetProvider::open(const Moment& now) {
    now_ = now;
    if (journal_ == nullptr) return {};
    for (const auto& row : TRY(journal_->read())) {
        auto read = TRY(read_ledger_row(row, now.now));
        if (read.hold) table_.restore(std::move(*read.hold));
        if (read.machine) table_.restore(std::move(*read.machine));
        if (read.fence) table_.restore(row.lineage, *read.fence);
        if (read.record) machines_[row.lineage] = std::move(*read.record);
        if (read.reservation) metas_[row.lineage] = std::move(*read.reservation);
    }
    (void)table_.take_changes();
    resize(options_.capacity);  // it may have been started with less, or with more, than it was stopped with
    return {};
}

void FleetProvider::turn(const Moment& now) {
    now_ = now;
    inbox().run();
    table_.pass_time(now_.now);
    commit();
    if (metrics_) metrics_->show(table_);
    next_ = now_.now + kFleetLongestWait;
    if (const auto end = table_.next()) next_ = std::min(next_, *end);
}

LedgerRow FleetProvider::row(const std::string& lineage) const {
    LedgerParts parts;
    const auto hold = table_.holds().find(lineage);
    if (hold != table_.holds().end()) parts.hold = hold->second;
    const auto machine = table_.machines().find(lineage);
    if (machine != table_.machines().end()) parts.machine = machine->second;
    const auto fence = table_.fences().find(lineage);
    if (fence != table_.fences().end()) parts.fence = fence->second;
    const auto record = machines_.find(lineage);
    if (record != machines_.end()) parts.record = record->second;
    const auto meta = metas_.find(lineage);
    if (meta != metas_.end() && parts.hold) parts.reservation = meta->second;
    return ledger_row(lineage, parts, now_.now);
}

// First the ledger, then the world: an answer that went out is never taken back by a restart.
void FleetProvider::commit() {
    auto changes = table_.take_changes();
    changes.insert(changed_.begin(), changed_.end());
    if (journal_ != nullptr && !failed_ && !changes.empty()) {
        std::vector<LedgerRow> rows;
        for (const auto& lineage : changes) rows.push_back(row(lineage));
        const auto written = journal_->write(rows);
        if (!written) {
            failed_ = written.error();
            base::log_error("The ledger cannot be written: nothing is promised until a restart", {{"error", *failed_}});
        }
    }
    auto answers = std::exchange(answers_, {});
    if (failed_) return;  // nobody hears what is not durable; they ask again
    for (const auto& answer : answers) answer();
    const auto touched = std::exchange(changed_, {});
    for (const auto& lineage : changes) {
        tell_of(lineage);
        const auto machine = machines_.find(lineage);
        if (machine != machines_.end() && touched.contains(lineage))
            tell({RuntimeChange::What::Machine, {}, machine->second});
    }
}

// Whoever watches hears what came of itself or through others. What was the answer to a call, or is a longer lease, is
// no news: each message costs both ends a wake-up.
void FleetProvider::tell_of(const std::string& lineage) {
    const auto hold = table_.holds().find(lineage);
    const auto known = said_.find(lineage);
    if (hold != table_.holds().end()) {
        const Said now{id_of(lineage, hold->second.ask.attempt), hold->second.sequence};
        if (known != said_.end() && known->second == now) return;
        tell({RuntimeChange::What::Reservation, say(lineage), {}});
    } else if (known != said_.end()) {
        RuntimeChange gone{RuntimeChange::What::Gone, {}, {}};
        gone.reservation.meta.id = known->second.id;
        said_.erase(known);
        metas_.erase(lineage);
        tell(gone);
    }
}

// What is answered to whoever asked.
IriReservation FleetProvider::say(const std::string& lineage) {
    auto out = reservation(lineage);
    if (table_.holds().contains(lineage)) said_[lineage] = {out.meta.id, out.sequence};
    return out;
}

void FleetProvider::tell_all() {
    for (const auto& heard : take_fresh()) {
        for (const auto& [lineage, hold] : table_.holds())
            tell_one(*heard, {RuntimeChange::What::Reservation, reservation(lineage), {}});
        for (const auto& [lineage, machine] : machines_) tell_one(*heard, {RuntimeChange::What::Machine, {}, machine});
    }
}

IriReservation FleetProvider::reservation(const std::string& lineage) const {
    IriReservation out;
    const auto hold = table_.holds().find(lineage);
    const auto meta = metas_.find(lineage);
    if (meta != metas_.end()) out.meta = meta->second;
    if (hold != table_.holds().end()) {
        out.ask = hold->second.ask;
        out.sequence = hold->second.sequence;
    }
    out.meta.id = id_of(lineage, out.ask.attempt);
    out.answer = table_.answer(lineage, now_.now).value_or(model::HoldAnswer{model::HoldState::Lost});
    out.epoch = options_.epoch;
    return out;
}

void FleetProvider::resize(model::Amounts capacity) {
    inbox().push([this, capacity = std::move(capacity)] {
        for (const auto& lineage : table_.resize(capacity, now_.now))
            base::log_warning("A hold is lost: the provider has become smaller", {{"lineage", lineage}});
    });
}

// --- What is asked of it.

void FleetProvider::version(link::Answered<Version> answer) {
    answer(Version{"berth", "0.1.0"});
}

// How many machines of each class would fit, where amounts may be told; it is the caller's part to keep them.
void FleetProvider::status(link::Answered<std::vector<model::IriClassStatus>> answer) {
    serve<std::vector<model::IriClassStatus>>(
        std::move(answer), [this]() -> Result<std::vector<model::IriClassStatus>> {
            std::vector<model::IriClassStatus> out;
            for (const auto& [name, capabilities] : options_.classes) {
                int64_t fit = std::numeric_limits<int64_t>::max();
                for (const auto& [resource, amount] : capabilities) {
                    const auto has = table_.capacity().find(resource);
                    const int64_t all = has == table_.capacity().end() ? 0 : has->second.milli();
                    if (amount.milli() > 0) fit = std::min(fit, all / amount.milli());
                }
                out.push_back({name, capabilities, options_.publish_amounts ? fit : 0});
            }
            return out;
        });
}

void FleetProvider::list_machines(model::IriFilter filter, link::Answered<std::vector<IriMachine>> answer) {
    serve<std::vector<IriMachine>>(std::move(answer), [this, filter]() -> Result<std::vector<IriMachine>> {
        std::vector<IriMachine> out;
        for (const auto& [lineage, machine] : machines_) {
            if (filter.matches(machine.meta)) out.push_back(machine);
        }
        return out;
    });
}

void FleetProvider::create_machine(IriMachine machine, link::Answered<IriMachine> answer) {
    serve<IriMachine>(std::move(answer), [this, machine = std::move(machine)] { return create(machine); });
}

// What the layer above says; else the hold's; else the class with network interfaces and local disks.
Result<model::Amounts> FleetProvider::needs(const IriMachine& machine) const {
    if (const auto* told = machine.meta.annotations.find(model::kResourcesAnnotation)) {
        const auto parsed = TRY(base::parse_json(*told));
        return TRY(fleet::read_amounts(&parsed));
    }
    const auto hold = table_.holds().find(machine.meta.id);
    if (hold != table_.holds().end()) return hold->second.ask.resources;
    const auto known = options_.classes.find(machine.machine_class);
    if (known == options_.classes.end())
        return base::bad_request(
            fmt::format("machine class \"{}\" is not known here (--classes), and the request has no {}",
                        machine.machine_class, model::kResourcesAnnotation));
    model::Amounts out = known->second;
    const auto nics = static_cast<int64_t>(machine.network_interfaces.size());
    if (nics > 0) out["nics"] += Quantity::from_value(nics);
    for (const auto& volume : machine.volumes) {
        if (volume.local_disk_bytes > 0)
            out["localStorage"] += Quantity::from_value(volume.local_disk_bytes, Quantity::Format::BinarySI);
    }
    return out;
}

Status FleetProvider::check_known() const {
    if (table_.holds().size() + table_.fences().size() + machines_.size() < kMostKnown) return {};
    return Error{Reason::TooManyRequests, fmt::format("{} reservations and machines are known already", kMostKnown)};
}

Result<IriMachine> FleetProvider::create(IriMachine machine) {
    std::string lineage = fleet::lineage_of(machine.meta, fleet::kMachineUid);
    // Nobody says who it is: each request is another machine.
    for (size_t next = machines_.size() + table_.sequence(); lineage.empty(); ++next) {
        lineage = fmt::format("anonymous-{}-{}", options_.epoch, next);
        if (machines_.contains(lineage) || table_.fences().contains(lineage)) lineage.clear();
    }
    const auto known = machines_.find(lineage);
    if (known != machines_.end()) return known->second;
    if (lineage.size() > kLongestName)
        return base::bad_request(fmt::format("a machine's lineage has at most {} bytes", kLongestName));
    if (!table_.holds().contains(lineage)) TRY(check_known());
    machine.meta.id = lineage;
    model::Amounts amounts = TRY(needs(machine));
    TRY(check_amounts(fmt::format("machine {}", lineage), amounts));
    const auto placed = table_.place({lineage, model::attempt_of(machine.meta.labels), std::move(amounts)}, now_.now);
    if (!placed) {
        note(machine.meta, true, "Refused", placed.error().message);
        return placed.error();
    }
    machine.meta.created_at = now_.wall.nanos;
    machine.meta.generation = 1;
    machine.observed_generation = 1;
    machine.state = state_of(machine.on);
    if (hook_) {
        const auto made = hook_("create", machine);
        if (!made) {
            table_.remove(lineage, now_.now);
            note(machine.meta, true, "FailedCreate", made.error().message);
            return made.error();
        }
    }
    note(machine.meta, false, "Created", "it has its room");
    machines_[lineage] = machine;
    changed_.insert(lineage);
    return machine;
}

void FleetProvider::delete_machine(std::string id, link::Answered<bool> answer) {
    serve<bool>(std::move(answer), [this, id] { return remove(id); });
}

Result<bool> FleetProvider::remove(const std::string& id) {
    const auto found = machines_.find(id);
    if (found == machines_.end()) {
        const auto [lineage, attempt] = parts_of(id, '@');
        if (lineage.size() <= kLongestName && check_known())
            table_.remove(lineage, now_.now, std::max<uint64_t>(1, attempt));
        return base::not_found(fmt::format("machine {} is not known", id));
    }
    if (hook_) TRY(hook_("delete", found->second));
    machines_.erase(found);
    table_.remove(id, now_.now);
    changed_.insert(id);
    return true;
}

// Network interfaces and local disks that come need room, and those that go leave it.
Status FleetProvider::fit(const IriMachine& before, const IriMachine& after) {
    const auto known = table_.machines().find(before.meta.id);
    if (known == table_.machines().end()) return {};
    const auto disks = [](const IriMachine& machine) {
        int64_t out = 0;
        for (const auto& volume : machine.volumes) out += std::clamp<int64_t>(volume.local_disk_bytes, 0, kLargestDisk);
        return out;
    };
    model::Amounts amounts = known->second.amounts;
    const auto adjust = [&](const char* name, int64_t by, Quantity::Format format) {
        if (by == 0) return;
        Quantity& amount = amounts[name];
        amount += Quantity::from_value(by, format);
        if (amount.is_zero() || amount.is_negative()) amounts.erase(name);
    };
    adjust(
        "nics",
        static_cast<int64_t>(after.network_interfaces.size()) - static_cast<int64_t>(before.network_interfaces.size()),
        Quantity::Format::DecimalSI);
    adjust("localStorage", disks(after) - disks(before), Quantity::Format::BinarySI);
    if (amounts == known->second.amounts) return {};
    return table_.change(before.meta.id, amounts, now_.now);
}

void FleetProvider::note(const model::IriMeta& about, bool warning, const std::string& reason,
                         const std::string& words) {
    if (events_.size() >= kMostEvents) events_.pop_front();
    events_.push_back({about, reason, words, warning ? "Warning" : "Normal", "", now_.wall.nanos / 1'000'000'000});
}

void FleetProvider::change(std::string id, link::Answered<bool> answer, Change change) {
    serve<bool>(std::move(answer), [this, id, change]() -> Result<bool> {
        const auto found = machines_.find(id);
        if (found == machines_.end()) return base::not_found(fmt::format("machine {} is not known", id));
        IriMachine changed = found->second;
        TRY(change(changed));
        TRY(fit(found->second, changed));
        if (const auto done = hook_ ? hook_("update", changed) : Status(); !done) {
            CHECK(fit(changed, found->second).ok());  // what was there fits
            return done.error();
        }
        changed.meta.generation += 1;
        changed.observed_generation = changed.meta.generation;
        found->second = std::move(changed);
        changed_.insert(id);
        return true;
    });
}

void FleetProvider::update_power(std::string id, bool on, link::Answered<bool> answer) {
    change(std::move(id), std::move(answer), [on](IriMachine& machine) -> Status {
        machine.on = on;
        machine.state = state_of(on);
        return {};
    });
}

void FleetProvider::update_annotations(std::string id, Labels annotations, link::Answered<bool> answer) {
    change(std::move(id), std::move(answer), [annotations](IriMachine& machine) -> Status {
        machine.meta.annotations = annotations;
        return {};
    });
}

void FleetProvider::put_volume(std::string id, model::IriVolume volume, bool attach, link::Answered<bool> answer) {
    change(std::move(id), std::move(answer), [volume, attach](IriMachine& machine) -> Status {
        auto& all = machine.volumes;
        const auto at =
            std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.name == volume.name; });
        if (at != all.end()) {
            *at = volume;
        } else if (!attach) {
            return base::not_found(fmt::format("volume {} is not attached", volume.name));
        } else {
            all.push_back(volume);
        }
        return {};
    });
}

void FleetProvider::detach_volume(std::string id, std::string name, link::Answered<bool> answer) {
    change(std::move(id), std::move(answer), [name](IriMachine& machine) -> Status {
        const auto gone = std::erase_if(machine.volumes, [&](const auto& each) { return each.name == name; });
        if (gone == 0) return base::not_found(fmt::format("volume {} is not attached", name));
        return {};
    });
}

void FleetProvider::attach_interface(std::string id, model::IriNetworkInterface nic, link::Answered<bool> answer) {
    change(std::move(id), std::move(answer), [nic](IriMachine& machine) -> Status {
        auto& all = machine.network_interfaces;
        const auto at = std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.name == nic.name; });
        if (at != all.end()) {
            *at = nic;
        } else {
            all.push_back(nic);
        }
        return {};
    });
}

void FleetProvider::detach_interface(std::string id, std::string name, link::Answered<bool> answer) {
    change(std::move(id), std::move(answer), [name](IriMachine& machine) -> Status {
        const auto gone =
            std::erase_if(machine.network_interfaces, [&](const auto& each) { return each.name == name; });
        if (gone == 0) return base::not_found(fmt::format("network interface {} is not attached", name));
        return {};
    });
}

void FleetProvider::list_events(model::IriEventFilter filter, link::Answered<std::vector<model::IriEvent>> answer) {
    serve<std::vector<model::IriEvent>>(std::move(answer), [this, filter]() -> Result<std::vector<model::IriEvent>> {
        std::vector<model::IriEvent> out;
        for (const auto& event : events_) {
            const bool in_time = event.seconds >= filter.from && (filter.to == 0 || event.seconds <= filter.to);
            if (in_time && filter.about.matches(event.about)) out.push_back(event);
        }
        return out;
    });
}

void FleetProvider::list_reservations(model::IriFilter filter, link::Answered<std::vector<IriReservation>> answer) {
    serve<std::vector<IriReservation>>(std::move(answer), [this, filter]() -> Result<std::vector<IriReservation>> {
        std::vector<IriReservation> out;
        for (const auto& [lineage, hold] : table_.holds()) {
            auto each = reservation(lineage);
            if (filter.matches(each.meta)) out.push_back(std::move(each));
        }
        return out;
    });
}

void FleetProvider::create_reservation(IriReservation wanted, link::Answered<IriReservation> answer) {
    serve<IriReservation>(std::move(answer), [this, wanted]() -> Result<IriReservation> {
        model::HoldAsk ask = wanted.ask;
        if (ask.lineage.empty()) ask.lineage = fleet::lineage_of(wanted.meta, fleet::kReservationUid);
        if (ask.lineage.empty()) ask.lineage = fmt::format("anonymous-{}-{}", options_.epoch, table_.sequence() + 1);
        TRY(check_size(wanted, ask.lineage));
        TRY(check_amounts(fmt::format("reservation {}", ask.lineage), ask.resources));
        if (!table_.holds().contains(ask.lineage)) TRY(check_known());
        const auto said = table_.reserve(ask, now_.now);
        IriReservation out = wanted;
        out.meta.id = id_of(ask.lineage, ask.attempt);
        out.meta.created_at = now_.wall.nanos;
        const auto held = table_.holds().find(ask.lineage);
        if (held != table_.holds().end() && held->second.ask.attempt == ask.attempt) {
            metas_[ask.lineage] = out.meta;
            out.sequence = held->second.sequence;
            said_[ask.lineage] = {out.meta.id, out.sequence};
        }
        out.ask = ask;
        out.answer = said;
        out.epoch = options_.epoch;
        return out;
    });
}

void FleetProvider::delete_reservation(std::string id, link::Answered<bool> answer) {
    serve<bool>(std::move(answer), [this, id]() -> Result<bool> {
        const auto [lineage, attempt] = parts_of(id);
        const auto held = table_.holds().find(lineage);
        const bool same = held != table_.holds().end() && held->second.ask.attempt == attempt;
        if (!same || !table_.release(lineage, now_.now))
            return base::not_found(fmt::format("reservation {} is not known", id));
        said_.erase(lineage);
        metas_.erase(lineage);
        return true;
    });
}

void FleetProvider::renew_reservation(std::string id, link::Answered<IriReservation> answer) {
    serve<IriReservation>(std::move(answer), [this, id]() -> Result<IriReservation> {
        const auto [lineage, attempt] = parts_of(id);
        const auto held = table_.holds().find(lineage);
        if (held == table_.holds().end() || held->second.ask.attempt != attempt)
            return base::not_found(fmt::format("reservation {} is not known", id));
        TRY(table_.renew(lineage, now_.now));
        return say(lineage);
    });
}

void FleetProvider::confirm_reservation(std::string id, uint64_t attempt, link::Answered<IriReservation> answer) {
    serve<IriReservation>(std::move(answer), [this, id, attempt]() -> Result<IriReservation> {
        const auto lineage = parts_of(id).first;
        TRY(table_.confirm(lineage, attempt, now_.now));
        return say(lineage);
    });
}

}  // namespace berth::run
