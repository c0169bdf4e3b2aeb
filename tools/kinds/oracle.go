package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"reflect"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/randfill"
	"time"
)

// Test data made by Kubernetes' own code: "patch" and "protobuf" print one case a line,
// "objects" and "mutations" objects for tests/oracles/kubernetes.
func runOracle(name string) {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	switch name {
	case "patch":
		patchCases(out)
	case "protobuf":
		protobufCases(out)
	case "objects":
		objects(out)
	case "mutations":
		mutations(out)
	default:
		panic("no oracle " + name)
	}
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.Intn(len(from))] }

func fillerOf(seed int64, nilChance float64, words ...string) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(nilChance).NumElements(1, 3).MaxDepth(12).Funcs(
		func(s *string, c randfill.Continue) { *s = pick(c.Rand, words...) },
		func(i *int32, c randfill.Continue) { *i = pick[int32](c.Rand, 0, 1, 2, 80, -7) },
		func(i *int64, c randfill.Continue) { *i = pick[int64](c.Rand, 0, 1, 2, 1<<40, -7) },
		func(f *float64, c randfill.Continue) { *f = pick(c.Rand, 0, 0.5, 2) },
		func(t *meta.Time, c randfill.Continue) {
			*t = pick(c.Rand, meta.Unix(1700000000, 0), meta.Unix(0, 0), meta.Unix(951782400, 0))
		},
		func(t *meta.MicroTime, c randfill.Continue) {
			t.Time = time.Unix(1700000000, pick[int64](c.Rand, 0, 123456000))
		},
		func(d *meta.Duration, c randfill.Continue) {
			d.Duration = time.Duration(pick(c.Rand, 0, 1, 3600)) * time.Second
		},
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse(pick(c.Rand, "0", "1", "500m", "2Gi", "1e3"))
		},
		func(v *intstr.IntOrString, c randfill.Continue) {
			*v = pick(c.Rand, intstr.FromInt32(0), intstr.FromInt32(8080), intstr.FromString("25%"))
		},
		func(b *[]byte, c randfill.Continue) { *b = []byte(pick(c.Rand, "x", "yz")) },
		func(r *runtime.RawExtension, c randfill.Continue) { r.Raw = []byte(`{"a":[1,"b"]}`) },
		func(f *meta.FieldsV1, c randfill.Continue) { f.Raw = []byte(`{"f:metadata":{"f:labels":{}}}`) },
		func(j *apiextensions.JSON, c randfill.Continue) {
			j.Raw = []byte(pick(c.Rand, `1`, `"x"`, `{"a":true}`))
		},
		func(s *apiextensions.JSONSchemaProps, c randfill.Continue) {
			*s = apiextensions.JSONSchemaProps{Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{
				"n": {Type: "integer", Maximum: func() *float64 { f := 9.5; return &f }()},
				"l": {Type: "array", Items: &apiextensions.JSONSchemaPropsOrArray{Schema: &apiextensions.JSONSchemaProps{Type: "string"}}},
				"m": {Type: "object", AdditionalProperties: &apiextensions.JSONSchemaPropsOrBool{Allows: true}},
			}}
		},
	)
}

// Lists that merge by a key hold each key once, as the API requires.
func uniqueKeys(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			uniqueKeys(v.Elem())
		}
	case reflect.Slice:
		for i := 0; i < v.Len(); i++ {
			uniqueKeys(v.Index(i))
		}
	case reflect.Struct:
		for i := 0; i < v.NumField(); i++ {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			uniqueKeys(v.Field(i))
			if strings.Contains(f.Tag.Get("patchStrategy"), "merge") && f.Type.Kind() == reflect.Slice {
				unique(v.Field(i), f.Tag.Get("patchMergeKey"))
			}
		}
	}
}

func unique(list reflect.Value, key string) {
	seen := map[string]bool{}
	kept := reflect.MakeSlice(list.Type(), 0, list.Len())
	for i := 0; i < list.Len(); i++ {
		text, _ := json.Marshal(list.Index(i).Interface())
		id := string(text)
		if key != "" {
			var m map[string]any
			json.Unmarshal(text, &m)
			value, ok := m[key]
			if !ok {
				continue
			}
			id = fmt.Sprint(value)
		}
		if !seen[id] {
			seen[id] = true
			kept = reflect.Append(kept, list.Index(i))
		}
	}
	if kept.Len() == 0 && list.Len() > 0 {
		kept = reflect.Zero(list.Type())
	}
	list.Set(kept)
}

func apiVersionOf(t reflect.Type) schema.GroupVersion {
	groups := map[string]string{"core.v1": "", "events.v1": "events.k8s.io", "storage.v1": "storage.k8s.io",
		"scheduling.v1": "scheduling.k8s.io", "resource.v1": "resource.k8s.io", "rbac.v1": "rbac.authorization.k8s.io",
		"coordination.v1": "coordination.k8s.io", "networking.v1": "networking.k8s.io", "discovery.v1": "discovery.k8s.io",
		"apiextensions.v1": "apiextensions.k8s.io", "apiregistration.v1": "apiregistration.k8s.io",
		"authorization.v1": "authorization.k8s.io", "authentication.v1": "authentication.k8s.io",
		"admissionregistration.v1": "admissionregistration.k8s.io", "metrics.v1beta1": "metrics.k8s.io", "meta.v1": ""}
	name := packageName(t.PkgPath())
	group, version, _ := strings.Cut(name, ".")
	if g, ok := groups[name]; ok {
		group = g
	}
	return schema.GroupVersion{Group: group, Version: version}
}

func filled(f *randfill.Filler, t reflect.Type) runtime.Object {
	v := reflect.New(t)
	f.Fill(v.Interface())
	uniqueKeys(v)
	obj := v.Interface().(runtime.Object)
	obj.GetObjectKind().SetGroupVersionKind(apiVersionOf(t).WithKind(t.Name()))
	return obj
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

var patchKinds = []string{"Pod", "Node", "Service", "ServiceAccount", "ConfigMap", "Deployment", "PersistentVolumeClaim", "Endpoints", "Namespace", "Job"}

func patchCases(out *bufio.Writer) {
	for seed := int64(1); seed <= 600; seed++ {
		f := fillerOf(seed, 0.8, "a", "b", "c", "d")
		for _, t := range rootTypes() {
			if t.Name() != patchKinds[seed%int64(len(patchKinds))] || t.PkgPath() == "" {
				continue
			}
			live, from, to := must(json.Marshal(filled(f, t))), must(json.Marshal(filled(f, t))), must(json.Marshal(filled(f, t)))
			if seed%2 == 0 {
				from = live
			}
			zero := reflect.New(t).Elem().Interface()
			patch, err := strategicpatch.CreateTwoWayMergePatch(from, to, zero)
			if err != nil {
				continue
			}
			line := map[string]any{"document": json.RawMessage(live), "patch": json.RawMessage(patch)}
			if result, err := strategicpatch.StrategicMergePatch(live, patch, zero); err == nil {
				line["expected"] = json.RawMessage(result)
			}
			if text := must(json.Marshal(line)); len(text) < 2500 {
				out.Write(append(text, '\n'))
			}
		}
	}
}

// Members that Go prints as null mean nothing and are left out.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if e == nil {
				delete(v, k)
			} else {
				v[k] = withoutNulls(e)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutNulls(v[i])
		}
	}
	return v
}

func protobufCases(out *bufio.Writer) {
	scheme := runtime.NewScheme()
	encoder := protobuf.NewSerializer(scheme, scheme)
	for i, t := range rootTypes() {
		if _, ok := reflect.New(t).Interface().(runtime.Object); !ok {
			continue
		}
		for _, chance := range []float64{0.95, 0.8, 0.5} {
			f := fillerOf(int64(i+1), chance, "a", "bc", "", "ü")
			obj := filled(f, t)
			var body strings.Builder
			if err := encoder.Encode(obj, &body); err != nil {
				panic(err)
			}
			// Protobuf does not tell an empty list from none: what counts is what Kubernetes reads back.
			wire := obj.(interface{ Marshal() ([]byte, error) })
			back := reflect.New(t).Interface().(runtime.Object)
			if err := back.(interface{ Unmarshal([]byte) error }).Unmarshal(must(wire.Marshal())); err != nil {
				panic(err)
			}
			back.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
			var value any
			decoder := json.NewDecoder(strings.NewReader(string(must(json.Marshal(back)))))
			decoder.UseNumber()
			if err := decoder.Decode(&value); err != nil {
				panic(err)
			}
			line := map[string]any{"body": base64.StdEncoding.EncodeToString([]byte(body.String())), "expected": withoutNulls(value)}
			if text := must(json.Marshal(line)); len(text) < 12000 {
				out.Write(append(text, '\n'))
			}
		}
	}
}

var words = []string{"", "RollingUpdate", "ClientIP", "None", "LoadBalancer", "NodePort", "ClusterIP", "Container", "User", "True",
	"False", "Running", "Ready", "Complete", "Failed", "Resource", "ExactCount", "InternalIP", "ReadWriteOnce", "Bound"}

// Named string types take words that mean something to defaulting and printing.
func meaningful(v reflect.Value, r *rand.Rand) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			meaningful(v.Elem(), r)
		}
	case reflect.Slice:
		for i := 0; i < v.Len(); i++ {
			meaningful(v.Index(i), r)
		}
	case reflect.Struct:
		for i := 0; i < v.NumField(); i++ {
			if v.Type().Field(i).IsExported() {
				meaningful(v.Field(i), r)
			}
		}
	case reflect.String:
		if v.Type().PkgPath() != "" && v.CanSet() {
			v.SetString(pick(r, words...))
		}
	}
}

func objects(out *bufio.Writer) {
	for i, t := range rootTypes() {
		switch packageName(t.PkgPath()) {
		case "meta.v1", "metrics.v1beta1", "apiextensions.v1", "apiregistration.v1", "authentication.v1", "authorization.v1", "autoscaling.v1":
			continue
		}
		for n := 0; n < 12; n++ {
			seed := int64(i*100 + n)
			f := fillerOf(seed, 0.45+0.04*float64(n), "a", "bc", "d:latest", "x/y:1")
			v := reflect.New(t)
			f.Fill(v.Interface())
			meaningful(v, rand.New(rand.NewSource(seed)))
			uniqueKeys(v)
			obj := v.Interface().(runtime.Object)
			obj.GetObjectKind().SetGroupVersionKind(apiVersionOf(t).WithKind(t.Name()))
			if text := must(json.Marshal(obj)); len(text) < 3500 {
				out.Write(append(text, '\n'))
			}
		}
	}
}
