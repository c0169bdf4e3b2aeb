#include "ledger/intake.h"

#include <gtest/gtest.h>

#include "base/json_view.h"

namespace berth::ledger {
namespace {

// An object of any kind: what one does not read is nothing to it.
constexpr const char* kAnything = R"({
  "metadata": {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "7"},
  "topologyPolicies": ["None"], "value": 1, "provisioner": "p", "storageClassName": "s", "nodeTopology": {},
  "spec": {"containers": [{"name": "c"}], "drivers": [], "attacher": "d", "nodeName": "", "source": {},
           "owners": [{"labelSelector": {"matchLabels": {"app": "web"}}}],
           "template": {"spec": {"containers": [{"name": "c"}]}}}})";

// Whoever has an object need not say of which kind it is: the rows that read the same type do the same with it.
TEST(Intake, AnObjectFindsItsRow) {
    base::JsonParser parser;
    const auto document = parser.parse(kAnything);
    ASSERT_TRUE(document.ok());
    for (const Kind& kind : kinds()) {
        SCOPED_TRACE(kind.kind);
        const auto object = kind.read(*document, 0);
        ASSERT_TRUE(object.ok()) << object.error().message;
        const Kind& found = kind_of(object->type());
        EXPECT_EQ(found.put, kind.put);
        EXPECT_EQ(found.change, kind.change);
        EXPECT_EQ(found.reader, kind.reader);
        EXPECT_EQ(kind_named(kind.kind), &kind);
    }
    EXPECT_EQ(kind_named("Secret"), nullptr);
}

}  // namespace
}  // namespace berth::ledger
