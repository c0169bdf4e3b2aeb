// Prints what Kubernetes' own libraries answer, as tables that our tests compare with (tests/data, see README.md).
//
// A table has one case per line, fields separated by tabs. Bytes outside '!'..'~', and '%', are written %XX; an empty
// field is written "%". "!" alone stands for a refusal.
package main

import (
	"bufio"
	"fmt"
	"math/rand"
	"os"
	"strings"
)

var tables = map[string]func(*table){
	"quantities": quantities,
	"selectors":  selectors,
	"times":      times,
	"yaml":       yamls,
}

type table struct {
	out    *bufio.Writer
	random *rand.Rand
}

func (t *table) row(fields ...any) {
	for i, field := range fields {
		if i > 0 {
			t.out.WriteByte('\t')
		}
		t.out.WriteString(escape(fmt.Sprint(field)))
	}
	t.out.WriteByte('\n')
}

func escape(text string) string {
	if text == "" {
		return "%"
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if c := text[i]; c < '!' || c > '~' || c == '%' {
			fmt.Fprintf(&out, "%%%02X", c)
		} else {
			out.WriteByte(c)
		}
	}
	return out.String()
}

func (t *table) pick(texts ...string) string { return texts[t.random.Intn(len(texts))] }

func (t *table) chance(numerator, denominator int) bool {
	return t.random.Intn(denominator) < numerator
}

// One to three small edits with letters of an alphabet.
func (t *table) mutated(text, alphabet string) string {
	bytes := []byte(text)
	for n := 1 + t.random.Intn(3); n > 0; n-- {
		at := t.random.Intn(len(bytes) + 1)
		letter := alphabet[t.random.Intn(len(alphabet))]
		switch {
		case at == len(bytes) || t.chance(1, 3):
			bytes = append(bytes[:at], append([]byte{letter}, bytes[at:]...)...)
		case t.chance(1, 2):
			bytes[at] = letter
		default:
			bytes = append(bytes[:at], bytes[at+1:]...)
		}
	}
	return string(bytes)
}

func main() {
	if len(os.Args) != 2 || tables[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: oracles quantities|selectors|times|yaml > ../data/TABLE.tsv")
		os.Exit(2)
	}
	t := &table{bufio.NewWriter(os.Stdout), rand.New(rand.NewSource(20261115))}
	tables[os.Args[1]](t)
	t.out.Flush()
}
