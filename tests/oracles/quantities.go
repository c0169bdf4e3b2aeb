package main

import (
	"math"
	"math/big"
	"strings"

	"gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"
)

var nastyQuantities = []string{
	"", "+", "-", ".", "+.", "-.", "Ki", "m", "n", "e5", "e-9", "e-10", ".e-10", "+e-10", "0e-10", "E", "Ei", "-Ki", "..", "1..2", "1.2.3",
	"0", "-0", "+0", "00", "0.0", "0Ki", "0m", "0e30", "-0.0Gi", "1e30", "-1e30", "-1", "0.1m", "50E", "9223372036854775807", "9223372036854775808",
	"-9223372036854775807", "-9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616",
	"1n", "0.1n", "0.9n", "1.1n", "-0.1n", "-1.5n", ".5Ki", ".5", "5.", "5.Gi", "NaN", "nan", "inf", "Inf", "+Inf", "0x10", "0b1", "1_000", "1,5", " 1",
	"1 ", "1\n", "\x00", "1\x00", "١", "\xff", "1K", "1ki", "1KI", "1mi", "1kI", "1g", "1t", "1p", "1Kib", "1KB", "1MB", "1i", "1mm", "1mK",
	"1e", "1E", "1e+", "1e-", "1e1.5", "1e 3", "1ee3", "1eE3", "1Ee3", "1e3e3", "1e03", "1e+03", "1E3", "1E+3", "1E-3", "1e-3", "1e-8", "1e-9", "1e-10",
	"1e-400", "1e19", "1e18", "1e20", "1e21", "1e28", "1e29", "1e38", "1e39", "1e100", "1e400", "-1e400", "9e18", "9.3e18", "10E", "9E", "9.3E", "1000E", "1000000E",
	"7Ei", "8Ei", "16Ei", "-8Ei", "-16Ei", "7.99999999999999999999Ei", "1000000Ei", "9007199254740991Ki", "9007199254740992Ki", "1023", "1024", "1025", "1024Ki",
	"1Ki", "1.5Ki", "1.5Gi", "0.5Ki", "0.001Ki", "0.0001Ki", "0.0000000001Ki", "0.1Ki", "0.3Mi", "1.1Ki", "1.0009765625Ki", "-0.5Ki", "-0.0001Ki", "-1.1Ki",
	"1023Mi", "1024Mi", "1048576Ki", "999", "1000", "1001", "1000k", "1000m", "1500m", "1001m", "999999999n", "1000000000n", "1000000001n", "0.000000001", "0.0000000001",
	"123456789.123456789", "123456789.1234567891", "9223372036854775807.999999999", "9223372036854775.807", "9223372036854775807m", "9223372036854775808m", "9223372036854775807k",
	"99999999999999999999999999999", "100000000000000000000000000000", "170141183460469231731687303715.884105727", "170141183460469231731687303715.884105728", "1701411834604692317316873037158.84105727",
	"00000000000000000000000000000000000000000001", "0.00000000000000000000000000000000000001", "1.00000000000000000000000000000000000001", "1.000", "1.500", "01", "+1", "+1Ki", "01Ki", "1.0Ki",
	strings.Repeat("9", 400), strings.Repeat("9", 400) + "Ki", "0." + strings.Repeat("0", 400) + "1", "1" + strings.Repeat("0", 400), strings.Repeat("9", 40) + "." + strings.Repeat("9", 40) + "Ki",
}

func (t *table) digits(most int) string {
	var out strings.Builder
	for n := t.random.Intn(most + 1); n > 0; n-- {
		if t.chance(1, 3) {
			out.WriteByte('0')
		} else {
			out.WriteByte(byte('0' + t.random.Intn(10)))
		}
	}
	return out.String()
}

func (t *table) quantity() string {
	if t.chance(1, 20) {
		return t.pick(nastyQuantities...)
	}
	text := t.pick("", "", "", "", "-", "-", "+") + t.digits([]int{2, 4, 6, 12, 20, 32}[t.random.Intn(6)])
	if t.chance(1, 2) {
		text += "." + t.digits([]int{3, 6, 12, 24}[t.random.Intn(4)])
	}
	switch t.random.Intn(6) {
	case 0:
		text += t.pick("e", "E") + t.pick("", "", "+", "-") + t.pick("0", "1", "2", "3", "5", "6", "7", "9", "12", "18", "19", "20", "27", "30", "33", "60")
	case 1, 2:
		text += t.pick("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
	case 3, 4:
		text += t.pick("n", "u", "m", "k", "M", "G", "T", "P", "E")
	}
	if t.chance(1, 12) {
		text = t.mutated(text, "0123456789.+-eEinumkKMGTP xX\x00")
	}
	return text
}

// Exponents that would make apimachinery build a number of billions of digits, or that wrap in its int32.
func absurd(text string) bool {
	at := strings.IndexAny(text, "eE")
	return at >= 0 && len(strings.Trim(text[at+1:], "+-0")) > 3
}

// value / 10^scale rounded away from zero and held at the ends of int64: what Value and MilliValue promise but do not
// keep once they overflow.
func exact(value *inf.Dec, scale int) string {
	rounded := new(inf.Dec).Round(value, inf.Scale(-scale), inf.RoundUp)
	unscaled := rounded.UnscaledBig()
	if unscaled.IsInt64() {
		return unscaled.String()
	}
	if unscaled.Sign() < 0 {
		return big.NewInt(math.MinInt64).String()
	}
	return big.NewInt(math.MaxInt64).String()
}

// More digits than our 128 bits hold.
func tooFine(value *inf.Dec) bool {
	nanos := new(inf.Dec).Round(value, 9, inf.RoundUp).UnscaledBig()
	if nanos.BitLen() <= 127 {
		return false
	}
	return len(strings.TrimRight(new(big.Int).Abs(nanos).String(), "0")) > 38
}

func decimal(q resource.Quantity) *inf.Dec {
	copied := q.DeepCopy()
	return copied.AsDec()
}

func canonical(q resource.Quantity) string {
	number, suffix := q.CanonicalizeBytes(nil)
	return string(number) + string(suffix)
}

// Whether what is printed reads as the same amount. It does not beyond E and Ei, for which no suffix exists.
func readsBack(q resource.Quantity) bool {
	again, err := resource.ParseQuantity(canonical(q))
	return err == nil && again.Cmp(q) == 0
}

func formatOf(q resource.Quantity) string {
	return map[resource.Format]string{resource.DecimalSI: "D", resource.BinarySI: "B", resource.DecimalExponent: "E"}[q.Format]
}

// one: text, then "!" or canonical form, format, value, milli value, and marks where apimachinery itself is wrong:
// v, m: it answers another (milli) value; c: its canonical form reads as another amount; d: too many digits for us.
func (t *table) one(text string) {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		t.row("one", text, "!")
		return
	}
	value, milli := exact(decimal(q), 0), exact(decimal(q), -3)
	marks := ""
	if big.NewInt(q.Value()).String() != value {
		marks += "v"
	}
	if big.NewInt(q.MilliValue()).String() != milli {
		marks += "m"
	}
	if !readsBack(q) {
		marks += "c"
	}
	if tooFine(decimal(q)) {
		marks += "d"
	}
	t.row("one", text, canonical(q), formatOf(q), value, milli, marks)
}

// two: texts, order of the first to the second, canonical sum and difference, and marks as above.
func (t *table) two(a, b string) {
	x, errX := resource.ParseQuantity(a)
	y, errY := resource.ParseQuantity(b)
	if errX != nil || errY != nil || tooFine(decimal(x)) || tooFine(decimal(y)) {
		return
	}
	sum, difference := x.DeepCopy(), x.DeepCopy()
	sum.Add(y.DeepCopy())
	difference.Sub(y.DeepCopy())
	marks := ""
	if !readsBack(sum) || !readsBack(difference) {
		marks += "c"
	}
	if tooFine(decimal(sum)) || tooFine(decimal(difference)) {
		marks += "d"
	}
	t.row("two", a, b, x.Cmp(y), canonical(sum), canonical(difference), marks)
}

func quantities(t *table) {
	for _, text := range nastyQuantities {
		t.one(text)
	}
	for n := 0; n < 11000; {
		if text := t.quantity(); !absurd(text) {
			t.one(text)
			n++
		}
	}
	for n := 0; n < 4000; {
		a, b := t.quantity(), t.quantity()
		if t.chance(1, 5) {
			b = t.mutated(a, "0123456789nuKi.")
		}
		if !absurd(a) && !absurd(b) {
			t.two(a, b)
			n++
		}
	}
}
