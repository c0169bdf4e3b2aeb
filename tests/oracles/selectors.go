package main

import (
	"encoding/json"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// What the selectors are tried on. A node has the labels of the set and the name "n" and its number.
var labelSets = []labels.Set{
	{},
	{"a": "b"},
	{"a": ""},
	{"a": "c", "b": "a"},
	{"a": "5", "b": "10"},
	{"a": "6", "b": "-1"},
	{"a": "05", "b": "9223372036854775807"},
	{"a": "9223372036854775808"},
	{"x/y": "z", "a": "b", "in": "notin"},
	{"example.com/zone": "z1", "a": "c", "b": "c", "n0": "1"},
	{"notin": "in", "b": "", "x/y": "A_b.c-d"},
	{"a": "b", "b": "b", "c": "b", "n1": ""},
}

var words = []string{"a", "b", "c", "in", "notin", "x/y", "example.com/zone", "5", "6", "05", "10", "n0", "n1", "z1", "A_b.c-d", "z", ""}

var badWords = []string{"-a", "a-", "a/b/c", "/a", "a/", "A/b", "Example.com/zone", "a b", "a!", "é", "_", ".", "\xff", "+5", "-5", "9223372036854775808", "*", "a:b", strings.Repeat("a", 63),
	strings.Repeat("a", 64), strings.Repeat("a", 253) + "/a", strings.Repeat("a", 254) + "/a", "a..b/c", "a.-b/c"}

func (t *table) word() string {
	if t.chance(1, 25) {
		return t.pick(badWords...)
	}
	return t.pick(words...)
}

func (t *table) blank() string { return t.pick("", "", "", " ", "\t", "  ", "\n") }

func (t *table) requirement() string {
	key := t.blank() + t.word() + t.blank()
	switch t.random.Intn(8) {
	case 0:
		return key
	case 1:
		return "!" + key
	case 2, 3:
		var values []string
		for n := t.random.Intn(4); n > 0; n-- {
			values = append(values, t.blank()+t.word()+t.blank())
		}
		return key + " " + t.pick("in", "notin") + t.pick(" ", "") + "(" + strings.Join(values, ",") + ")"
	case 4:
		return key + t.pick(">", "<") + t.blank() + t.pick("5", "6", "10", "-1", "05", "x", "", "9223372036854775807", "9223372036854775808")
	default:
		return key + t.pick("=", "==", "!=") + t.blank() + t.word()
	}
}

func bits(matches func(int) bool) string {
	out := make([]byte, len(labelSets))
	for i := range labelSets {
		out[i] = '0'
		if matches(i) {
			out[i] = '1'
		}
	}
	return string(out)
}

func (t *table) selector(kind, text string, selector labels.Selector, err error) {
	if err != nil {
		t.row(kind, text, "!")
		return
	}
	t.row(kind, text, selector, bits(func(i int) bool { return selector.Matches(labelSets[i]) }))
}

// label: text, canonical form, matches. Texts with NUL are left out: to apimachinery they end there.
func labelSelectors(t *table) {
	fixed := []string{"", " ", ",", "a,", ",a", "a,,b", "!", "!!a", "! a", "a!", "=", "a=", "a==", "a!=", "a===b", "a=!b", "a!==b", "!a=b", "!a in (b)", "a in", "a in (", "a in ()", "a in (,)", "a in (,,)", "a in (b", "a in (b,", "a in (b c)",
		"a in (b)c", "a in (b) ,c", "a in b", "a notin (b,,c)", "in", "notin", "in in (in)", "notin notin (notin)", "in=in", "a in ((b))", "a in (b=c)", "a(b)", "a>5", "a<5", "a>=5", "a<=5", "a>", "a >5, a<7", "a>b", "a>5,5<a",
		"a=b=c", "a = b , c", "a\n=\tb", "x in (a,b),y,z notin ()", "a b", "a,b=c,!x/y", ">", "<5", "a=b,a=c", "a in (c,b,b)", "a!=b,a!=c", "()", "a in (!b)", "a in (in,notin)", "(a=b)", "a='b'", "a=\"b\"", strings.Repeat("a,", 11) + "a"}
	for _, text := range fixed {
		selector, err := labels.Parse(text)
		t.selector("label", text, selector, err)
	}
	for n := 0; n < 4500; {
		var requirements []string
		for k := 1 + t.random.Intn(3); k > 0; k-- {
			requirements = append(requirements, t.requirement())
		}
		text := strings.Join(requirements, ",")
		if t.chance(1, 6) {
			text = t.mutated(text, "ab=!(),<> in/.5")
		}
		selector, err := labels.Parse(text)
		t.selector("label", text, selector, err)
		n++
	}
}

// object: a LabelSelector as JSON, canonical form, matches.
func selectorObjects(t *table) {
	for n := 0; n < 800; n++ {
		var object metav1.LabelSelector
		for k := t.random.Intn(3); k > 0; k-- {
			if object.MatchLabels == nil {
				object.MatchLabels = map[string]string{}
			}
			object.MatchLabels[t.word()] = t.word()
		}
		for k := t.random.Intn(3); k > 0; k-- {
			requirement := metav1.LabelSelectorRequirement{Key: t.word(), Operator: metav1.LabelSelectorOperator(t.pick("In", "NotIn", "Exists", "DoesNotExist", "In", "NotIn", "Gt", "", "in"))}
			for _, value := range unique(t, 3) {
				requirement.Values = append(requirement.Values, value)
			}
			if t.chance(2, 3) && strings.HasSuffix(string(requirement.Operator), "xist") || requirement.Operator == "Exists" && t.chance(2, 3) {
				requirement.Values = nil
			}
			object.MatchExpressions = append(object.MatchExpressions, requirement)
		}
		text, _ := json.Marshal(object)
		var again metav1.LabelSelector
		json.Unmarshal(text, &again)
		selector, err := metav1.LabelSelectorAsSelector(&again)
		t.selector("object", string(text), selector, err)
	}
}

func unique(t *table, most int) []string {
	var out []string
	seen := map[string]bool{}
	for k := t.random.Intn(most + 1); k > 0; k-- {
		if word := t.word(); !seen[word] {
			seen[word] = true
			out = append(out, word)
		}
	}
	return out
}

// field: text, canonical form, matches.
func fieldSelectors(t *table) {
	parts := []string{"a", "b", "=", "==", "!=", ",", "\\", "\\,", "\\=", "\\\\", "c", "!", "x/y", "z", "in", " ", "5"}
	for n := 0; n < 1500; n++ {
		text := ""
		for k := t.random.Intn(9); k > 0; k-- {
			text += t.pick(parts...)
		}
		if t.chance(1, 2) {
			text = t.word() + t.pick("=", "==", "!=") + fields.EscapeValue(t.pick("b", "c", "", "a,b", "a=b", "a\\b")) + t.pick("", ","+text)
		}
		selector, err := fields.ParseSelector(text)
		if err != nil {
			t.row("field", text, "!")
			continue
		}
		t.row("field", text, selector, bits(func(i int) bool { return selector.Matches(fields.Set(labelSets[i])) }))
	}
}

func nodeRequirements(t *table, most int, fieldsOnly bool) []v1.NodeSelectorRequirement {
	var out []v1.NodeSelectorRequirement
	for k := t.random.Intn(most + 1); k > 0; k-- {
		r := v1.NodeSelectorRequirement{Key: t.word(), Operator: v1.NodeSelectorOperator(t.pick("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "In", "NotIn", "gt", "Equals"))}
		switch {
		case fieldsOnly:
			r.Key = t.pick("metadata.name", "metadata.name", "metadata.name", "metadata.namespace", "")
			r.Operator = v1.NodeSelectorOperator(t.pick("In", "In", "NotIn", "NotIn", "Exists", ""))
			r.Values = []string{t.pick("n0", "n1", "n2", "n8", "", "metadata.name")}
			if t.chance(1, 10) {
				r.Values = append(r.Values, "n3")
			}
		case r.Operator == "Gt" || r.Operator == "Lt":
			r.Key, r.Values = t.pick("a", "b"), []string{t.pick("5", "6", "10", "05", "x", "", "-1", "9223372036854775807", "9223372036854775808")}
		case r.Operator == "Exists" || r.Operator == "DoesNotExist":
			if t.chance(1, 10) {
				r.Values = []string{"a"}
			}
		default:
			r.Values = unique(t, 3)
		}
		out = append(out, r)
	}
	return out
}

// node: terms as JSON, matches of nodes, whether an error is reported for the first node.
func nodeSelectors(t *table) {
	for n := 0; n < 1500; n++ {
		var selector v1.NodeSelector
		for k := t.random.Intn(4); k > 0; k-- {
			selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, v1.NodeSelectorTerm{MatchExpressions: nodeRequirements(t, 2, false), MatchFields: nodeRequirements(t, 1, true)})
		}
		text, _ := json.Marshal(selector.NodeSelectorTerms)
		var again v1.NodeSelector
		json.Unmarshal(text, &again.NodeSelectorTerms)
		lazy := nodeaffinity.NewLazyErrorNodeSelector(&again)
		_, err := nodeaffinity.NewNodeSelector(&again)
		fault := "understood"
		if err != nil {
			fault = "fault"
		}
		t.row("node", string(text), bits(func(i int) bool {
			node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n" + string(rune('0'+i)), Labels: labelSets[i]}}
			match, _ := lazy.Match(node)
			return match
		}), fault)
	}
}

// taint: key, value and effect of a taint; key, operator, value and effect of a toleration; 1 when it tolerates.
func tolerations(t *table) {
	for n := 0; n < 1200; n++ {
		taint := v1.Taint{Key: t.pick("a", "b"), Value: t.pick("", "v", "5"), Effect: v1.TaintEffect(t.pick("NoSchedule", "NoExecute", "PreferNoSchedule"))}
		toleration := v1.Toleration{Key: t.pick("", "a", "a", "b"), Operator: v1.TolerationOperator(t.pick("", "Equal", "Exists", "Lt", "Gt", "exists")), Value: t.pick("", "v", "5", "6"),
			Effect: v1.TaintEffect(t.pick("", "", "NoSchedule", "NoExecute", "PreferNoSchedule"))}
		tolerates := 0
		if toleration.ToleratesTaint(klog.Background(), &taint, false) {
			tolerates = 1
		}
		t.row("taint", taint.Key, taint.Value, taint.Effect, toleration.Key, toleration.Operator, toleration.Value, toleration.Effect, tolerates)
	}
}

func selectors(t *table) {
	for _, set := range labelSets {
		text, _ := json.Marshal(set)
		t.row("set", string(text))
	}
	labelSelectors(t)
	selectorObjects(t)
	fieldSelectors(t)
	nodeSelectors(t)
	tolerations(t)
}
