#pragma once

#include "link/api_client.h"
#include "link/recorder.h"
#include "model/write.h"

namespace berth::run {

// The request that a write stands for, with its preconditions: the only place where one is made of the other.
link::Request request_for(model::Write write);

void tell(link::Recorder& recorder, const model::Event& event, base::Time now);

}  // namespace berth::run
