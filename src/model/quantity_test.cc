#include "model/quantity.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "base/random.h"
#include "base/table_rows.h"

namespace berth::model {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

Quantity of(std::string_view text) {
    auto parsed = Quantity::parse(text);
    EXPECT_TRUE(parsed) << text;
    return parsed.value_or({});
}

std::string letter(Quantity::Format format) {
    static const std::map<Quantity::Format, std::string> letters{{Quantity::Format::DecimalSI, "D"},
                                                                 {Quantity::Format::BinarySI, "B"},
                                                                 {Quantity::Format::DecimalExponent, "E"}};
    return letters.at(format);
}

bool has(const std::string& marks, char mark) {
    return marks.find(mark) != std::string::npos;
}

void expect_reads_back(const Quantity& quantity, std::string_view from) {
    EXPECT_EQ(of(quantity.text()), quantity) << from << " printed as " << quantity.text();
}

// Every value, form and refusal is apimachinery's own, except where it is marked wrong: Value and MilliValue that
// overflow (v, m), a canonical form beyond E that drops the suffix (c), and more than the 38 digits we keep (d).
TEST(Quantity, AgreesWithApimachinery) {
    const auto rows = base::table_rows("quantities", "one");
    ASSERT_GE(rows.size(), 10000u);
    for (const auto& row : rows) {
        const auto& text = row[0];
        const auto ours = Quantity::parse(text);
        ASSERT_EQ(ours.ok(), row[1] != "!") << text;
        if (!ours) continue;
        const auto& marks = row[5];
        EXPECT_EQ(letter(ours->format()), row[2]) << text;
        EXPECT_EQ(std::to_string(ours->value()), row[3]) << text;
        EXPECT_EQ(std::to_string(ours->milli()), row[4]) << text;
        if (!has(marks, 'c') && !has(marks, 'd')) {
            EXPECT_EQ(ours->text(), row[1]) << text;
        }
        expect_reads_back(*ours, text);
    }
}

TEST(Quantity, OrderAndSumsAgreeWithApimachinery) {
    const auto rows = base::table_rows("quantities", "two");
    ASSERT_GE(rows.size(), 3000u);
    for (const auto& row : rows) {
        const auto a = of(row[0]);
        const auto b = of(row[1]);
        const auto order = a <=> b;
        EXPECT_EQ(std::to_string(order < 0 ? -1 : (order > 0 ? 1 : 0)), row[2]) << row[0] << " and " << row[1];
        EXPECT_EQ(a == b, row[2] == "0");
        const auto& marks = row[5];
        if (!has(marks, 'c') && !has(marks, 'd')) {
            EXPECT_EQ((a + b).text(), row[3]) << row[0] << " + " << row[1];
            EXPECT_EQ((a - b).text(), row[4]) << row[0] << " - " << row[1];
        }
        expect_reads_back(a + b, row[0]);
        expect_reads_back(a - b, row[0]);
    }
}

TEST(Quantity, NeverWraps) {
    EXPECT_EQ(of("50E").value(), kMost);
    EXPECT_EQ(of("-50E").value(), kLeast);
    EXPECT_EQ(of("9223372036854775807").milli(), kMost);
    EXPECT_EQ((of("9223372036854775807") + of("9223372036854775807")).value(), kMost);
    EXPECT_EQ((of("9223372036854775807") + of("9223372036854775807")).text(), "18446744073709551614");
    EXPECT_EQ(of("1e30").value(), kMost);
    EXPECT_EQ(Quantity::from_value(kLeast).value(), kLeast);
    EXPECT_EQ(Quantity::from_milli(kLeast).milli(), kLeast);
    EXPECT_EQ((-Quantity::from_value(kLeast)).value(), kMost);
    Quantity sum = of("1e29");
    for (int i = 0; i < 300; ++i) sum += sum;
    EXPECT_GT(sum, of("1e100"));
    EXPECT_EQ(sum.value(), kMost);
    expect_reads_back(sum, "doubled 300 times");
    EXPECT_EQ((sum - sum).text(), "0");
}

// apimachinery prints 1000E as "1" and 4Ei + 4Ei as "8Ei", which reads back as less; it wraps exponents beyond int32,
// so that there 1e4294967296 is 1.
TEST(Quantity, KeepsWhatApimachineryLoses) {
    EXPECT_EQ(of("1000E").text(), "1000E");
    EXPECT_EQ((of("8Ei") + of("8Ei")).text(), "18446744073709551614");
    EXPECT_EQ((of("4Ei") + of("4Ei")).text(), "9223372036854775808");
    EXPECT_EQ((of("4Ei") + of("3Ei")).text(), "7Ei");
    EXPECT_FALSE(Quantity::parse("1e4294967296"));
    EXPECT_FALSE(Quantity::parse("1e-4294967296"));
    EXPECT_FALSE(Quantity::parse("1e99999999999999999999"));
    const auto most = of("1e2147483647");
    expect_reads_back(most, "1e2147483647");
    expect_reads_back(most + most, "1e2147483647 twice");
    EXPECT_EQ(most + of("1"), most);
    EXPECT_LT((of("1n") + most).text().size(), 2000u);
    EXPECT_EQ(of("1e-2147483648"), of("1n"));
    EXPECT_EQ(of("-1.5n").value(), -1);
}

TEST(Quantity, ZeroTakesTheFormatOfWhatIsAdded) {
    Quantity sum;
    sum += of("1Gi");
    sum += of("1024Mi");
    EXPECT_EQ(sum.text(), "2Gi");
    EXPECT_EQ((of("1") + of("1Ki")).text(), "1025");
    EXPECT_EQ(Quantity::from_value(4096, Quantity::Format::BinarySI).text(), "4Ki");
    EXPECT_EQ(Quantity::from_milli(1500).text(), "1500m");
    EXPECT_TRUE((of("1") - of("2")).is_negative());
    EXPECT_TRUE(Quantity().is_zero());
}

TEST(Quantity, LongTextsCostLittleAndTheErrorStaysShort) {
    EXPECT_EQ(of(std::string(1 << 20, '9')).value(), kMost);
    EXPECT_EQ(of("0." + std::string(1 << 20, '0') + "1").text(), "1n");
    const auto refused = Quantity::parse(std::string(1 << 20, 'x'));
    ASSERT_FALSE(refused);
    EXPECT_LT(refused.error().message.size(), 300u);
}

TEST(Quantity, RandomSumsUndoThemselves) {
    const uint64_t seed = 7;
    SCOPED_TRACE(seed);
    base::Random random(seed);
    for (int i = 0; i < 20000; ++i) {
        const auto a = Quantity::from_milli(static_cast<int64_t>(random.next() >> random.below(63)));
        const auto b = Quantity::from_value(static_cast<int64_t>(random.next() >> random.below(63)));
        EXPECT_EQ(a + b - b, a);
        EXPECT_EQ(a + b, b + a);
        EXPECT_EQ(a < b, (a - b).is_negative());
        expect_reads_back(a - b, "random");
    }
}

}  // namespace
}  // namespace berth::model
