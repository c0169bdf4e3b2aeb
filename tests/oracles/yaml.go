package main

import (
	"strings"

	"sigs.k8s.io/yaml"
)

var scalars = []string{"y", "Y", "yes", "Yes", "YES", "yEs", "n", "N", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF", "true", "True", "TRUE", "tRue", "false", "False", "FALSE", "null", "Null", "NULL", "nULL", "~", "",
	"0", "-0", "+0", "1", "-1", "+1", "007", "010", "08", "-010", "0o17", "0O17", "0x1F", "0X1f", "-0x1F", "0b101", "-0b101", "0b102", "1_000", "_1", "1__0", "0x_1", "1_000.5", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
	"18446744073709551615", "18446744073709551616", "0.1", ".5", "5.", ".", "..", "+.5", "-.5", "1.5e3", "1e3", "1E3", "1e+3", "1e-3", "1e", "e3", "1e999", "1e-999", "1.0", "100000000000000000000000", "1e21", "1e20", "123456789.5", "0.000001", "0.0000001", "1.5e", "1.2.3", "0x1p4", ".e5", ".5e3", "1_0e1_0",
	".nan", ".NaN", ".inf", "-.inf", "+.inf", ".infinity", "NaN", "inf", "Infinity", "12:30:45", "190:20:30", "2001-12-14", "2001-12-14T21:59:43.10-05:00", "2001-12-14 21:59:43", "2001", "2001-1", "1Gi", "500m", "1e3Mi", "0755", "0888", "1,000", "=", "<<",
	"a", "a b", "-", "--", "-a", "?", "?a", ":a", "a:b", "a#b", "'y'", "\"y\"", "'1'", "\"1\"", "'null'", "'~'", "''", "\"\"", "\"\\u00e9\\n\"", "\"\\x41\"", "é", "日本", "!!str 5", "!!str y", "!!int '5'", "!!int 5", "!!int x", "!!float 5", "!!float '5'", "!!bool y", "!!bool 'true'", "!!null ''", "!!null x", "!!binary aGVsbG8=",
	"!!binary '?'", "! 5", "! '5'", "!foo 5", "!!timestamp 2001-01-01", "[1, y, ~]", "{a: 1, b: [x, {c: d}]}", "[]", "{}", "[a, b,]", "{a, b: c}", "[,]", "{a: }", "*x", "&x 5", "&x y", "%a", "@a", "`a`", "|", ">", "a: b: c", "[", "{", "]", "'", "\"", "\"\\q\"", "\t"}

var documents = []string{"a: 1\nb: 2\n", "- 1\n- 2\n", "- a: 1\n  b: 2\n- c\n", "a:\n- 1\n- 2\n", "a: |\n  x\n  y\n", "a: >\n  x\n  y\n\n  z\n", "a: |-\n  x\n", "a: |+\n  x\n\n", "a: \"x\n  y\"\n", "a: 'it''s'\n", "a: x # comment\n", "# only a comment\n", "",
	"a: &x {b: 1}\nc: *x\n", "a: &x [1, 2]\nc: [*x, *x]\n", "a: &x 1\nb: &x 2\nc: *x\n", "a: *x\n", "a: &x [*x]\n", "&x a: *x\n", "base: &b {k: 1, l: 2}\nd:\n  <<: *b\n  l: 3\n", "base: &b {k: 1}\nother: &o {k: 2, m: 3}\nd:\n  <<: [*b, *o]\n", "d:\n  <<: {k: 1}\n  j: 2\n",
	"d:\n  <<: 5\n", "d:\n  <<: [1]\n", "base: &b [1]\nd:\n  <<: *b\n", "d:\n  '<<': {k: 1}\n", "d:\n  \"<<\": 5\n", "1: a\n", "1.5: a\n", "1.50: a\n", "1e10: a\n", "1234567.5: a\n", "0.00001: a\n", "y: a\n", "true: a\n", "off: a\n", "0x10: a\n", "~: a\n", "? [a]\n: b\n", "? {a: b}\n: c\n", "? a\n: b\n", "? a\n", "-5: a\n",
	"2001-01-01: a\n", "a: b\n c: d\n", "a: b\nc\n", "a:\n\tb: c\n", "a:\tb\n", "- a\nb: c\n", "a: [1,\n2]\n", "a: {b: 1,\n c: 2}\n", "'a': 1\n", "\"a b\": 1\n", "a: !!str 1\n", "!!map {a: b}\n", "!!seq [a]\n", "!foo {a: b}\n", "!!str {a: b}\n", "a: !!set {b, c}\n", "a: b\n...\n", "%YAML 1.1\n---\na: b\n", "--- a\n", "--- >\n x\n",
	"a: \x01\n", "a: \xff\n", "\ufeffa: b\n", "a: b\r\nc: d\r\n", "{\"a\": \"b\", \"c\": [1, 2.5, true, null]}", "{\"a\":1}", "key with spaces: v\n", "a: - b\n", "a: b c d\n", "a: 'x\n\n  y'\n", "a: >-\n  folded\n  text\nb: |2\n   two\n", "<<: {a: 1}\na: 2\n", "a: 1\nb: {}\nc: []\nd: ''\ne:\n"}

// text, then "!" or JSON. Duplicate keys are left out (we refuse them), and so are merges after the key that they set:
// go-yaml v2 lets the merge win, the specification the key.
func yamls(t *table) {
	convert := func(text string) {
		if out, err := yaml.YAMLToJSON([]byte(text)); err != nil {
			t.row("yaml", text, "!")
		} else {
			t.row("yaml", text, strings.TrimSpace(string(out)))
		}
	}
	for _, text := range scalars {
		convert("v: " + text + "\n")
		convert("- " + text + "\n")
	}
	for _, text := range documents {
		convert(text)
	}
}
