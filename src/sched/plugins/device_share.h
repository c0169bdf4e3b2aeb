#pragma once

#include <string>

#include "sched/ask.h"
#include "sched/device_choice.h"
#include "sched/plugins/registry.h"

namespace berth::sched::plugins {

// For specs that ask for devices, whatever the row: what the filter says where no reservation pays.
bool devices_open(const model::PodSpec& spec, const View& ledger, Row row);

// The points of a row depend on the spec, and on what of the row's devices is free, alone.
struct DeviceScorer : Scorer {
    virtual int64_t points(const model::PodSpec& spec, const View& ledger, Row row) const = 0;
};

// Whether owners of the reservation get nothing of such devices but what it holds.
bool restricts_devices(ReservationIndex index, model::DeviceType type, const View& ledger);

// Whether the ask has to be told which of the row's devices it gets.
bool wants_devices(const Ask& ask, const View& ledger, Row row);
DeviceChoice devices_on(const Ask& ask, const View& ledger, Row row, const ledger::Charges& charges);

// Why a record that somebody else wrote, or its absence, may not be; empty: it may be.
std::string judge_devices(const model::DeviceRecord& record, const model::PodSpec& spec, const View& ledger, Row row,
                          const ledger::Charges& charges);

}  // namespace berth::sched::plugins
