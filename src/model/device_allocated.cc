#include "model/device_allocated.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/json.h"
#include "model/annotation.h"
#include "model/device_request.h"
#include "model/pod_resources.h"

namespace berth::model {
namespace {

DeviceAmounts read_share_amounts(DeviceType type, const Reader& list) {
    const DeviceResources& names = device_resources();
    const Resources given = read_resource_list(list);
    const auto take = [&](ResourceId id, int64_t most) {
        const int64_t amount = given.get(id);
        if (amount > most) {
            list.wrong(fmt::format("{} must be at most {}, but is {}", resource_name(id), most, amount));
        }
        return amount;
    };
    DeviceAmounts out;
    if (type == DeviceType::Gpu) {
        out = {take(names.core, kWholeDevice), take(names.ratio, kWholeDevice), take(names.memory, kMostDeviceMemory)};
    } else {
        out.core = take(type == DeviceType::Rdma ? names.rdma : names.fpga, kWholeDevice);
    }
    if (out.none()) list.wrong("must name an amount");
    return out;
}

DeviceShare read_share(DeviceType type, const Reader& item) {
    DeviceShare share;
    share.type = type;
    const Reader minor = item["minor"];
    const int64_t number = minor.integer(-1);
    if (!minor.present()) minor.wrong("is required");
    if (number < 0 || number > INT32_MAX) minor.wrong(fmt::format("must not be negative, but is {}", number));
    share.minor = static_cast<int32_t>(std::clamp<int64_t>(number, -1, INT32_MAX));
    share.amounts = read_share_amounts(type, item["resources"]);
    share.id = item["id"].text();
    const Reader extension = item["extension"];
    const Reader functions = extension["vfs"];
    functions.each([&](const Reader& function) {
        share.functions.push_back(
            {static_cast<int32_t>(function["minor"].integer()), std::string(function["busID"].text())});
    });
    return share;
}

JsonObject share_document(const DeviceShare& share) {
    const DeviceResources& names = device_resources();
    JsonObject resources;
    const auto put = [&](ResourceId id, int64_t amount) { resources[resource_name(id)] = quantity_text(id, amount); };
    if (share.type == DeviceType::Gpu) {
        put(names.core, share.amounts.core);
        resources[resource_name(names.memory)] =
            Quantity::from_value(share.amounts.memory, Quantity::Format::BinarySI).text();
        put(names.ratio, share.amounts.ratio);
    } else {
        put(share.type == DeviceType::Rdma ? names.rdma : names.fpga, share.amounts.core);
    }
    JsonObject out{{"minor", share.minor}};
    if (!share.id.empty()) out["id"] = share.id;
    out["resources"] = std::move(resources);
    if (share.functions.empty()) return out;
    JsonArray functions;
    for (const auto& [minor, bus] : share.functions) functions.push_back(JsonObject{{"minor", minor}, {"busID", bus}});
    out["extension"] = JsonObject{{"vfs", std::move(functions)}};
    return out;
}

}  // namespace

DeviceRecord read_device_record(const Reader& from) {
    DeviceRecord record;
    from.entries([&](std::string_view key, const Reader& list) {
        const auto type = device_type_named(key);
        if (!type) return list.wrong("is no type of devices; there are gpu, rdma and fpga");
        list.each([&](const Reader& item) { record.push_back(read_share(*type, item)); });
    });
    const auto key = [](const DeviceShare& share) { return std::pair(share.type, share.minor); };
    std::sort(record.begin(), record.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
    const auto twice = std::adjacent_find(record.begin(), record.end(),
                                          [&](const auto& a, const auto& b) { return key(a) == key(b); });
    if (twice != record.end()) from.wrong(fmt::format("{} {} is named twice", name_of(twice->type), twice->minor));
    return record;
}

Result<DeviceRecord> read_device_record(const Labels& annotations) {
    DeviceRecord record;
    const std::string* text = annotations.empty() ? nullptr : annotations.find(kDeviceAllocated);
    if (!text || text->empty()) return record;
    TRY(read_annotation(kDeviceAllocated, *text, [&](const Reader& root) { record = read_device_record(root); }));
    return record;
}

JsonObject device_record_document(const DeviceRecord& record) {
    JsonObject out;
    for (const DeviceType type : kAllDeviceTypes) {
        JsonArray list;
        for (const DeviceShare& share : record) {
            if (share.type == type) list.push_back(share_document(share));
        }
        if (!list.empty()) out[name_of(type)] = std::move(list);
    }
    return out;
}

std::string device_record_summary(const DeviceRecord& record) {
    std::string out;
    for (const DeviceShare& share : record) {
        const int64_t part = share.type == DeviceType::Gpu ? share.amounts.ratio : share.amounts.core;
        out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name_of(share.type), share.minor);
        if (part < kWholeDevice) out += fmt::format(" ({} %)", part);
    }
    return out;
}

std::string device_record_text(const DeviceRecord& record) {
    return base::to_text(Json(device_record_document(record)));
}

}  // namespace berth::model
