// Prints src/model/kinds/types.tbl: the types of Kubernetes' API kinds as the struct tags and markers of k8s.io/api
// state them. Names, types and numbers only.
//
//	tools/kinds/refresh
package main

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"
)

const head = `# Printed by tools/kinds; do not edit. The types of the API kinds: one line a type, below it one line a field:
#   name type number marks
# number: the protobuf field number (0: not on the wire). Marks:
#   p pointer, o omitempty, z omitzero, r required, inline (members stand in the parent's JSON object),
#   merge:KEY patch:STRATEGY (strategic merge patch), list:atomic|set|map:KEY,KEY map:atomic (server-side apply);
#   on a type: atomic (server-side apply replaces it as a whole).
`

// Types with a form of their own in JSON or protobuf.
var special = map[string]string{
	"meta.v1.Time": "Time", "meta.v1.MicroTime": "MicroTime", "meta.v1.Duration": "Duration",
	"meta.v1.FieldsV1": "FieldsV1", "resource.Quantity": "Quantity", "intstr.IntOrString": "IntOrString",
	"runtime.RawExtension": "RawExtension", "apiextensions.v1.JSON": "Any",
	"apiextensions.v1.JSONSchemaPropsOrBool":        "SchemaOrBool",
	"apiextensions.v1.JSONSchemaPropsOrArray":       "SchemaOrArray",
	"apiextensions.v1.JSONSchemaPropsOrStringArray": "SchemaOrStrings",
	"authentication.v1.ExtraValue":                  "Strings", "authorization.v1.ExtraValue": "Strings",
}

func packageName(path string) string {
	parts := strings.Split(path, "/")
	n := len(parts)
	if strings.HasPrefix(parts[n-1], "v1") || strings.HasPrefix(parts[n-1], "v2") {
		return parts[n-2] + "." + parts[n-1]
	}
	return parts[n-1]
}

func typeName(t reflect.Type) string { return packageName(t.PkgPath()) + "." + t.Name() }

type printer struct {
	lines map[string][]string
}

// The type's name in the table; struct types reached for the first time are added to it.
func (p *printer) name(t reflect.Type) string {
	if t.Name() != "" && t.PkgPath() != "" {
		if s, ok := special[typeName(t)]; ok {
			if s == "SchemaOrBool" || s == "SchemaOrArray" || s == "SchemaOrStrings" {
				p.add(t.Field(fieldIndex(t, "Schema")).Type.Elem())
			}
			return s
		}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return p.name(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + p.name(t.Elem())
	case reflect.Map:
		return "{}" + p.name(t.Elem())
	case reflect.Struct:
		p.add(t)
		return typeName(t)
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64:
		return t.Kind().String()
	case reflect.Float64:
		return "double"
	case reflect.Int:
		return "int64"
	}
	panic("no form for " + t.String())
}

func fieldIndex(t reflect.Type, name string) int {
	f, _ := t.FieldByName(name)
	return f.Index[0]
}

func (p *printer) add(t reflect.Type) {
	name := typeName(t)
	if _, ok := p.lines[name]; ok {
		return
	}
	p.lines[name] = nil
	title := name
	if markersOf(t.PkgPath(), t.Name()).one("structType") == "atomic" {
		title += " atomic"
	}
	lines := []string{title}
	for i := 0; i < t.NumField(); i++ {
		lines = append(lines, p.fields(t, t.Field(i))...)
	}
	p.lines[name] = lines
}

func (p *printer) fields(owner reflect.Type, f reflect.StructField) []string {
	tag := strings.Split(f.Tag.Get("json"), ",")
	if tag[0] == "-" {
		return nil
	}
	number := protobufNumber(f)
	if contains(tag, "inline") || (f.Anonymous && tag[0] == "") {
		if f.Name == "TypeMeta" {
			return []string{" kind string 0 o", " apiVersion string 0 o"}
		}
		return []string{fmt.Sprintf(" %s %s %d inline", strings.ToLower(f.Name[:1])+f.Name[1:], p.name(f.Type), number)}
	}
	m := markersOf(owner.PkgPath(), owner.Name()+"."+f.Name)
	marks := strings.Join(marksOf(f, tag, m), " ")
	return []string{strings.TrimRight(fmt.Sprintf(" %s %s %d %s", tag[0], p.name(f.Type), number, marks), " ")}
}

func marksOf(f reflect.StructField, tag []string, m markers) []string {
	var marks []string
	omit := contains(tag, "omitempty") || contains(tag, "omitzero")
	if f.Type.Kind() == reflect.Pointer {
		marks = append(marks, "p")
	}
	if omit {
		marks = append(marks, "o")
	}
	if contains(tag, "omitzero") {
		marks = append(marks, "z")
	}
	if !omit && !m.has("optional") {
		marks = append(marks, "r")
	}
	if key := f.Tag.Get("patchMergeKey"); key != "" {
		marks = append(marks, "merge:"+key)
	}
	if s := f.Tag.Get("patchStrategy"); s != "" {
		marks = append(marks, "patch:"+s)
	}
	if lt := m.one("listType"); lt == "map" {
		marks = append(marks, "list:map:"+strings.Join(m["listMapKey"], ","))
	} else if lt != "" {
		marks = append(marks, "list:"+lt)
	}
	if m.one("mapType") == "atomic" || m.one("structType") == "atomic" {
		marks = append(marks, "map:atomic")
	}
	return marks
}

func protobufNumber(f reflect.StructField) int {
	parts := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return 0
	}
	var n int
	fmt.Sscan(parts[1], &n)
	return n
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

func main() {
	if len(os.Args) > 1 {
		runOracle(os.Args[1])
		return
	}
	p := printer{lines: map[string][]string{}}
	for _, t := range rootTypes() {
		p.add(t)
	}
	var names []string
	for n := range p.lines {
		names = append(names, n)
	}
	sort.Strings(names)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	out.WriteString(head)
	for _, n := range names {
		out.WriteString(strings.Join(p.lines[n], "\n") + "\n")
	}
}
