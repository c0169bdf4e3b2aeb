#pragma once

#include <memory>
#include <string>

#include "model/labels.h"
#include "model/resources.h"

namespace berth::model {

struct DeviceDemand;

// What a pod asks of devices, as its spec keeps it.
struct DeviceWish {
    std::shared_ptr<const DeviceDemand> demand;  // nullptr: of none, as almost every pod
    std::string fault;                           // it cannot be understood: the pod goes nowhere
    bool asks() const { return demand != nullptr || !fault.empty(); }
    bool operator==(const DeviceWish& other) const;
};

DeviceWish read_device_wish(const Resources& requests, const Labels& annotations);

}  // namespace berth::model
