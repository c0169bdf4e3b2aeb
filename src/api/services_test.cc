#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "api/test_front.h"

namespace berth::api {
namespace {

constexpr auto kServices = "/api/v1/namespaces/default/services";

std::string service(std::string_view name, std::string_view type, int ports) {
    std::string list;
    for (int i = 1; i <= ports; ++i) list += fmt::format(R"({}{{"name":"p{}","port":{}}})", i > 1 ? "," : "", i, i);
    return fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"type":"{}","ports":[{}]}}}})", name, type, list);
}

// Services that hold every address but those of `left`, as they are stored.
void fill_addresses(store::Store& store, const std::set<int>& left) {
    store::Txn txn;
    for (int n = 2; n < 65'002; ++n) {
        if (left.contains(n)) continue;
        const auto name = fmt::format("s{}", n);
        auto text = fmt::format(R"({{"apiVersion":"v1","kind":"Service","metadata":{{"name":"{}"}},)"
                                R"("spec":{{"clusterIP":"10.96.{}.{}"}}}})",
                                name, n / 256, n % 256);
        txn.writes.push_back(
            {.key = {"services", "default", name}, .bytes = std::make_shared<const std::string>(std::move(text))});
    }
    ASSERT_TRUE(store.commit(txn).ok());
}

TEST(Services, AFullRangeOfAddressesIsSaid) {
    TestFront door;
    fill_addresses(*door.store, {700, 701});
    std::set<std::string> given;
    for (const auto* name : {"a", "b"}) {
        const auto made = door.ask("POST", kServices, service(name, "ClusterIP", 1));
        EXPECT_EQ(made.code, 201);
        given.insert(made.text({"spec", "clusterIP"}));
    }
    EXPECT_EQ(given, (std::set<std::string>{"10.96.2.188", "10.96.2.189"}));
    const auto refused = door.ask("POST", kServices, service("c", "ClusterIP", 1));
    EXPECT_EQ(refused.code, 500);
    EXPECT_EQ(refused.text({"message"}), "Internal error occurred: failed to allocate a serviceIP: range is full");
    EXPECT_EQ(door.ask("DELETE", std::string(kServices) + "/s5000").code, 200);
    EXPECT_EQ(door.ask("POST", kServices, service("c", "ClusterIP", 1)).text({"spec", "clusterIP"}), "10.96.19.136");
}

TEST(Services, NodePortsAreGivenOnceUntilTheRangeIsFull) {
    TestFront door;
    std::set<int64_t> given;
    for (int i = 0; i < 27; ++i) {
        const auto made = door.ask("POST", kServices, service(fmt::format("s{}", i), "NodePort", 100));
        ASSERT_EQ(made.code, 201);
        for (const auto& port : made.json.at("spec").at("ports").as_array())
            given.insert(port.at("nodePort").as_int64());
    }
    EXPECT_EQ(given.size(), 2700U);
    EXPECT_GE(*given.begin(), 30'000);
    EXPECT_LE(*given.rbegin(), 32'767);
    EXPECT_EQ(door.ask("POST", kServices, service("last", "NodePort", 68)).code, 201);
    const auto refused = door.ask("POST", kServices, service("none", "NodePort", 1));
    EXPECT_EQ(refused.text({"message"}), "Internal error occurred: failed to allocate a nodePort: range is full");
    EXPECT_EQ(door.ask("DELETE", std::string(kServices) + "/s3").code, 200);
    EXPECT_EQ(door.ask("POST", kServices, service("some", "NodePort", 100)).code, 201);
}

}  // namespace
}  // namespace berth::api
