// What kube-apiserver makes of an object: one JSON object a line in; a line {"in", "out", "columns", "cells", "now"} out,
// where out is the object with defaults and cells is its row of the wide table. With the argument "validate": a line
// {"object", "causes"}, the object with defaults and what is wrong with it.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	"k8s.io/kubernetes/pkg/printers"
	printersinternal "k8s.io/kubernetes/pkg/printers/internalversion"
	printerstorage "k8s.io/kubernetes/pkg/printers/storage"
)

func main() {
	convertor := printerstorage.TableConvertor{TableGenerator: printers.NewTableGenerator().With(printersinternal.AddHandlers)}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	decoder := legacyscheme.Codecs.UniversalDeserializer()
	for in.Scan() {
		obj, gvk, err := decoder.Decode(in.Bytes(), nil, nil)
		if err != nil {
			out, _ := json.Marshal(map[string]any{"in": json.RawMessage(in.Bytes()), "error": err.Error()})
			fmt.Println(string(out))
			continue
		}
		legacyscheme.Scheme.Default(obj)
		internal, err := legacyscheme.Scheme.ConvertToVersion(obj, runtime.InternalGroupVersioner)
		if err != nil {
			panic(err)
		}
		back, err := legacyscheme.Scheme.ConvertToVersion(internal, gvk.GroupVersion())
		if err != nil {
			panic(err)
		}
		defaulted, err := json.Marshal(back)
		if err != nil {
			panic(err)
		}
		line := map[string]any{"in": json.RawMessage(in.Bytes()), "out": json.RawMessage(defaulted)}
		if len(os.Args) > 1 && os.Args[1] == "validate" {
			print(map[string]any{"object": json.RawMessage(defaulted), "causes": causes(internal)})
			continue
		}
		line["now"] = time.Now().UTC().Format(time.RFC3339Nano)
		table, err := convertor.ConvertToTable(nil, internal, &metav1.TableOptions{})
		if err == nil && len(table.Rows) == 1 {
			line["cells"] = table.Rows[0].Cells
			var names []string
			for _, c := range table.ColumnDefinitions {
				names = append(names, c.Name)
			}
			line["columns"] = names
		}
		print(line)
	}
}

func print(line any) {
	out, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(out))
}
