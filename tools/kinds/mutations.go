package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"strconv"
	"strings"
)

const testdata = "../../src/model/kinds/testdata/"

// The objects of bases.jsonl as they are and with each change of mutations.txt.
func mutations(out *bufio.Writer) {
	bases := map[string][]byte{}
	for _, line := range lines(testdata + "bases.jsonl") {
		var head struct{ Kind string }
		check(json.Unmarshal([]byte(line), &head))
		bases[head.Kind] = []byte(line)
		out.WriteString(line + "\n")
	}
	for _, line := range lines(testdata + "mutations.txt") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.SplitN(line, " ", 4)
		var object any
		decoder := json.NewDecoder(bytes.NewReader(bases[words[0]]))
		decoder.UseNumber()
		check(decoder.Decode(&object))
		var value any
		if words[2] == "=" {
			check(json.Unmarshal([]byte(words[3]), &value))
		}
		change(object, steps(words[1]), value, words[2] == "delete")
		out.Write(append(must(json.Marshal(object)), '\n'))
	}
}

func lines(path string) []string {
	return strings.Split(strings.TrimSpace(string(must(os.ReadFile(path)))), "\n")
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// "spec.containers[0].name" -> spec, containers, 0, name
func steps(path string) []string {
	return strings.Split(strings.ReplaceAll(strings.ReplaceAll(path, "]", ""), "[", "."), ".")
}

func change(here any, path []string, value any, remove bool) {
	if list, ok := here.([]any); ok {
		i := must(strconv.Atoi(path[0]))
		if len(path) == 1 {
			list[i] = value
		} else {
			change(list[i], path[1:], value, remove)
		}
		return
	}
	object := here.(map[string]any)
	switch {
	case len(path) > 1:
		change(object[path[0]], path[1:], value, remove)
	case remove:
		delete(object, path[0])
	default:
		object[path[0]] = value
	}
}
