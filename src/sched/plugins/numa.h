#pragma once

#include <optional>
#include <string>

#include "sched/ask.h"

namespace berth::sched::plugins {

// What an ask gets of a row's cores and NUMA nodes, or why it gets nothing.
struct CoreAnswer {
    enum class No : uint8_t {
        Open,
        NotInteger,
        NoTopology,
        Fault,
        SmtAlignment,
        OtherBinding,
        OtherNumaPolicy,
        Amplified,
        NotEnough,
        NotEnoughReserved,
        NotAligned,
    };
    No no = No::Open;
    model::CoreRecord record;
};

// For specs that ask for cores, whatever the row: what the filter and the scorer say where no reservation pays.
bool asks_for_cores(const model::PodSpec& spec);
bool cores_open(const model::PodSpec& spec, const View& ledger, Row row);
int64_t core_points(const model::PodSpec& spec, const View& ledger, Row row);

// Whether the ask has to be told which of the row's cores, or of how much of its NUMA nodes, it gets.
bool wants_cores(const Ask& ask, const View& ledger, Row row);
CoreAnswer cores_on(const Ask& ask, const View& ledger, Row row, const ledger::Charges& charges);

// Why a record that somebody else wrote may not be: it names what is not there, kept, or another's. Empty: it may be.
std::string judge_record(const model::CoreRecord& record, const model::PodSpec& spec, const View& ledger, Row row,
                         const ledger::Charges& charges);

// The same for the cpu that is left to those without cores of their own, where this ask has so many.
std::string judge_amplified(const model::PodSpec& spec, int64_t cores, const View& ledger, Row row,
                            const ledger::Charges& charges);

}  // namespace berth::sched::plugins
