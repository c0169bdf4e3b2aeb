#pragma once

#include <string>

#include "model/reservation.h"

// How commands say things that several of them say.
namespace berth::cli {

// "cpu=4,memory=8Gi", without the number of pods; "-": nothing.
std::string amounts_text(const model::Resources& resources);
// Who may draw from it: "app=web", "pod shop/web-1", "ReplicaSet shop/web or app=db".
std::string owners_text(const model::Reservation& reservation);
// What is neither drawn nor more than it holds.
model::Resources idle_of(const model::Resources& reserved, const model::Resources& drawn);

}  // namespace berth::cli
