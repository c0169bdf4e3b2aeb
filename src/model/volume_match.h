#pragma once

#include "model/storage.h"

// Which volumes can serve which claims; where they can be used is another question.
namespace berth::model {

// Large enough and of the claim's kind, whosever it is.
bool serves(const PersistentVolume& volume, const PersistentVolumeClaim& claim);
// Nobody's, and matching what the claim asks beyond that. The storage class is the caller's business.
bool is_free_for(const PersistentVolume& volume, const PersistentVolumeClaim& claim);

}  // namespace berth::model
