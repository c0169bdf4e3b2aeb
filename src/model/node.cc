#include "model/node.h"

#include "model/node_reservation.h"
#include "model/pod_resources.h"
#include "model/read_selectors.h"
#include "model/reader.h"

namespace berth::model {

Result<Node> read_node(JsonView object) {
    std::string trouble;
    const Reader root(object, trouble);
    Node node;
    node.meta = read_meta(root);
    const Reader spec = root["spec"];
    const Reader status = root["status"];
    node.unschedulable = spec["unschedulable"].flag();
    node.taints = read_taints(spec["taints"]);
    node.capacity = read_offered_resources(status["capacity"]);
    const Reader allocatable = status["allocatable"];
    node.allocatable = read_offered_resources(allocatable.present() ? allocatable : status["capacity"]);
    const Reader images = status["images"];
    images.each(
        [&](const Reader& item) { node.images.push_back({read_texts(item["names"]), item["sizeBytes"].integer()}); });
    status["conditions"].each([&](const Reader& item) {
        if (item["type"].text() == "Ready" && item["status"].text() != "True") {
            node.not_ready = read_time(item["lastTransitionTime"]).value_or(base::Time{});
        }
        if (item["type"].text() == kReservationInvalid && item["status"].text() == "True") {
            node.complaint = item["message"].text();
        }
    });
    if (!trouble.empty()) return base::bad_request("Node \"" + node.meta.name + "\": " + trouble);
    return node;
}

}  // namespace berth::model
