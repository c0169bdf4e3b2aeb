#include "model/kinds/protobuf.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "base/base64.h"
#include "base/random.h"
#include "model/kinds/fields.h"

namespace berth::model {
namespace {

struct Vector {
    std::string body;
    Json expected;
};

// Each line of the file: bytes made by Kubernetes' own serializer and the JSON it prints for the same object
// (tools/kinds, oracle protobuf).
std::vector<Vector> vectors() {
    std::vector<Vector> all;
    std::ifstream in("src/model/kinds/testdata/protobuf.jsonl");
    for (std::string line; std::getline(in, line);) {
        Json c = base::parse_json(line).value();
        all.push_back({base::from_base64(base::find_string(c, {"body"})).value(), c.at("expected")});
    }
    return all;
}

TEST(Protobuf, AgreesWithKubernetes) {
    std::set<std::string> seen;
    for (const auto& v : vectors()) {
        auto decoded = decode_protobuf(v.body);
        ASSERT_TRUE(decoded.ok()) << decoded.error().message << base::to_text(v.expected);
        const auto api_version = base::find_string(*decoded, {"apiVersion"});
        const auto kind = base::find_string(*decoded, {"kind"});
        const auto complaints = check_fields(*decoded, *kinds().body_type(api_version, kind));
        ASSERT_TRUE(complaints.ok()) << complaints.error().message << base::to_text(*decoded);
        EXPECT_TRUE(complaints->empty());
        EXPECT_EQ(*decoded, v.expected) << kind;
        seen.insert(std::string(api_version) + "/" + std::string(kind));
    }
    EXPECT_GE(seen.size(), 50U);
}

TEST(Protobuf, BrokenBodiesAreRefusedNotCrashed) {
    EXPECT_FALSE(decode_protobuf("").ok());
    EXPECT_FALSE(decode_protobuf("{}").ok());
    EXPECT_FALSE(decode_protobuf(std::string("k8s\0\x0a\x7f", 6)).ok());
    const uint64_t seed = 7;
    base::Random random(seed);
    for (const auto& v : vectors()) {
        for (int i = 0; i < 20; ++i) {
            std::string body = v.body.substr(0, 4 + random.below(v.body.size() - 3));
            for (int j = 0; j < 3 && body.size() > 4; ++j)
                body[4 + random.below(body.size() - 4)] = static_cast<char>(random.below(256));
            auto decoded = decode_protobuf(body);
            if (!decoded.ok()) {
                EXPECT_EQ(decoded.error().reason, Reason::BadRequest) << "seed " << seed;
            }
        }
    }
}

}  // namespace
}  // namespace berth::model
