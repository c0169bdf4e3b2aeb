#include "model/which.h"

#include <fmt/format.h>

#include "base/json.h"
#include "model/annotation.h"

namespace berth::model {

Which read_which(const Labels& annotations) {
    Which out;
    if (annotations.empty()) return out;
    if (const std::string* text = annotations.find(kResourceStatus); text && !text->empty()) {
        const Status read =
            read_annotation(kResourceStatus, *text, [&](const Reader& root) { out.cores = read_core_record(root); });
        if (!read) out.fault = read.error().message;
    }
    auto devices = read_device_record(annotations);
    if (devices) {
        out.devices = *std::move(devices);
    } else {
        out.device_fault = devices.error().message;
    }
    return out;
}

void write_which(const Which& which, Labels& annotations) {
    if (!which.cores.empty()) annotations.set(kResourceStatus, base::to_text(Json(core_record_document(which.cores))));
    if (!which.devices.empty()) annotations.set(kDeviceAllocated, device_record_text(which.devices));
}

void read_which(const Reader& status, Which& out) {
    const auto part = [&](std::string_view key, std::string& fault, auto read) {
        const Reader field = status[key];
        if (!field.present()) return;
        std::string trouble;
        read(Reader(*field.view(), trouble));
        if (!trouble.empty() && fault.empty()) fault = fmt::format("status.{}: {}", key, trouble);
    };
    part("resourceStatus", out.fault, [&](const Reader& from) { out.cores = read_core_record(from); });
    part("deviceAllocated", out.device_fault, [&](const Reader& from) { out.devices = read_device_record(from); });
}

void write_which(const Which& which, JsonObject& status) {
    if (!which.cores.empty()) status["resourceStatus"] = core_record_document(which.cores);
    if (!which.devices.empty()) status["deviceAllocated"] = device_record_document(which.devices);
}

}  // namespace berth::model
