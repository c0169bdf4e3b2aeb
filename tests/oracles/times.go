package main

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"time"
)

// RFC 3339 as written; Go also takes short hours, commas and offsets beyond a day, which we do not.
var strictTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// Go computes fractions in floating point; beyond nine digits it may be a nano off.
var longFraction = regexp.MustCompile(`\.\d{10,}`)

func (t *table) duration(text string) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		t.row("duration", text, "!")
	case !longFraction.MatchString(text):
		t.row("duration", text, int64(d), d.String())
	}
}

// time: text, nanoseconds held at the ends of int64, and the same in seconds and micros as objects print it.
func (t *table) time(text string) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.row("time", text, "!")
		return
	}
	if !strictTime.MatchString(text) {
		return
	}
	nanos := new(big.Int).Mul(big.NewInt(at.Unix()), big.NewInt(1e9))
	nanos.Add(nanos, big.NewInt(int64(at.Nanosecond())))
	if !nanos.IsInt64() {
		held := int64(math.MaxInt64)
		if nanos.Sign() < 0 {
			held = math.MinInt64
		}
		nanos = big.NewInt(held)
		at = time.Unix(0, held)
	}
	t.row("time", text, nanos, at.UTC().Format(time.RFC3339), at.UTC().Format("2006-01-02T15:04:05.000000Z07:00"))
}

func times(t *table) {
	for _, text := range []string{"", "0", "-0", "+0", "0s", "1h30m", "24h", "-5s", "300ms", "1.5h", ".5s", "5.s", ".s", "s", "1", "1d", "1h1", "1us", "1µs", "1μs", "1ns", "-1ns",
		"9223372036854775807ns", "9223372036854775808ns", "-9223372036854775808ns", "-9223372036854775809ns", "2562047h47m16.854775807s", "2562047h47m16.854775808s", "99999999999h",
		"+5m", "--5m", "1h-5m", "1 h", "1H", "1m1m", "1s2h", "0.000000001s", "0.0000000001s", "1e3s", "٣s", "1\x00s", "18446744073709551616ns", "0.5ns"} {
		t.duration(text)
	}
	for i := 0; i < 1500; i++ {
		text := t.pick("", "", "-", "+")
		for n := 1 + t.random.Intn(3); n > 0; n-- {
			text += t.digits(5)
			if t.chance(1, 3) {
				text += "." + t.digits(9)
			}
			text += t.pick("h", "m", "s", "ms", "us", "µs", "ns")
		}
		if t.chance(1, 8) {
			text = t.mutated(text, "0123456789.+-hmsun ")
		}
		t.duration(text)
	}
	for i := 0; i < 500; i++ {
		d := time.Duration(t.random.Int63() >> t.random.Intn(63))
		t.duration(strconv.FormatInt(int64(d), 10) + "ns")
	}
	for _, text := range []string{"", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999999999Z", "1970-01-01T00:00:00Z", "1969-12-31T23:59:59.5Z",
		"2024-02-29T12:00:00Z", "2023-02-29T12:00:00Z", "2000-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z", "2026-01-32T00:00:00Z",
		"2026-01-01T24:00:00Z", "2026-01-01T23:60:00Z", "2026-01-01T23:59:60Z", "2026-01-01t00:00:00Z", "2026-01-01T00:00:00z", "2026-01-01 00:00:00Z", "2026-01-01T00:00:00", "2026-01-01",
		"2026-01-01T00:00:00+01:30", "2026-01-01T00:00:00-23:59", "2026-01-01T00:00:00+0130", "2026-01-01T00:00:00+01", "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00.1234567891Z",
		"2262-04-11T23:47:16.854775807Z", "2262-04-11T23:47:16.854775808Z", "1677-09-21T00:12:43.145224192Z", "1677-09-21T00:12:43.145224191Z", "10000-01-01T00:00:00Z", "-001-01-01T00:00:00Z", "2026-1-1T00:00:00Z", "2026-01-01T00:00:00ZZ", " 2026-01-01T00:00:00Z"} {
		t.time(text)
	}
	for i := 0; i < 1500; i++ {
		at := time.Unix(t.random.Int63n(12000000000)-3000000000, t.random.Int63n(1000000000))
		text := at.UTC().Format(t.pick("2006-01-02T15:04:05", "2006-01-02T15:04:05.000", "2006-01-02T15:04:05.000000", "2006-01-02T15:04:05.000000000"))
		text += t.pick("Z", "Z", fmt.Sprintf("%s%02d:%02d", t.pick("+", "-"), t.random.Intn(24), t.random.Intn(60)))
		if t.chance(1, 5) {
			text = t.mutated(text, "0123456789-:.TZ+ ")
		}
		t.time(text)
	}
}
