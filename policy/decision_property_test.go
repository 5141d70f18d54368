package policy

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sluice/probe"
)

// ruleMaker makes random trees of rules over few names, so that they often hold.
type ruleMaker struct{ rand *rand.Rand }

func (r ruleMaker) pick(from ...string) string { return from[r.rand.IntN(len(from))] }

func (r ruleMaker) tree(depth int) RuleSpec {
	if depth == 0 || r.rand.IntN(3) == 0 {
		return r.leaf()
	}
	spec := RuleSpec{Operator: r.pick("AND", "AND", "OR", "NOT")}
	n := 1
	if spec.Operator != "NOT" {
		n += r.rand.IntN(3)
	}
	for range n {
		spec.Conditions = append(spec.Conditions, r.tree(depth-1))
	}
	return spec
}

func (r ruleMaker) leaf() RuleSpec {
	spec := RuleSpec{Type: r.pick("model", "model", "model", "surface", "surface", "path", "header", "tenant", "tenant", "stream", "context", "body")}
	flag := r.rand.IntN(2) == 0
	switch spec.Type {
	case "model":
		spec.Name = r.pick("a", "b", "c", "d")
	case "surface":
		spec.Name = r.pick("chat", "generate", "embeddings")
	case "tenant":
		spec.Name = r.pick("t", "u")
	case "path":
		if spec.Exact = "/v1/x"; flag {
			spec.Exact, spec.Prefix = "", r.pick("/", "/v1", "/v2")
		}
	case "header":
		spec.Name = r.pick("x-a", "X-B")
		switch r.rand.IntN(4) {
		case 0:
			spec.Exact = r.pick("1", "22")
		case 1:
			spec.Prefix = r.pick("1", "2")
		case 2:
			spec.Regex = r.pick("2", "^1$", "^$", "[13]+")
		default:
			spec.Present = &flag
		}
	case "stream":
		spec.Value = &flag
	case "context":
		spec.MinTokens = r.rand.IntN(8)
		spec.MaxTokens = spec.MinTokens + 1 + r.rand.IntN(8)
	case "body":
		spec.Name = r.pick("k", "seed", "n", "prompt")
		if spec.Present = &flag; r.rand.IntN(3) > 0 {
			spec.Present, spec.Equals = nil, []any{1, 2.5, "x", "1", true, false}[r.rand.IntN(6)]
		}
	}
	return spec
}

func (r ruleMaker) decisions(n int) []DecisionSpec {
	specs := make([]DecisionSpec, n)
	for i, name := range r.rand.Perm(n) {
		specs[i] = DecisionSpec{Name: fmt.Sprintf("d%d", name), Priority: r.rand.IntN(4)}
		if r.rand.IntN(20) > 0 {
			rule := r.tree(3)
			specs[i].Rules = &rule
		}
	}
	return specs
}

func (r ruleMaker) facts(tb testing.TB) *Facts {
	tb.Helper()
	value := func() string {
		return r.pick("1", "2.5", `"x"`, `"1"`, "true", "false", "null", `"yes"`, `"\u0078"`, "{}", "2")
	}
	key := func() string { return r.pick("k", `\u006b`, "seed", "K", "best_of") }
	f := &Facts{
		Surface: []probe.Surface{probe.SurfaceNone, probe.SurfaceChat, probe.SurfaceGenerate, probe.SurfaceEmbeddings, probe.SurfaceAudio}[r.rand.IntN(5)],
		Model:   []byte(r.pick("", "a", "b", "c", "x")),
		Tenant:  []byte(r.pick("", "t", "u", "v")),
		Path:    []byte(r.pick("/v1/x", "/v1/xy", "/v2", "")),
		Stream:  r.rand.IntN(2) == 0,
	}
	if r.rand.IntN(8) > 0 {
		f.Header = fields{"x-a": {r.pick("1", "22", ""), r.pick("1", "3")}, "x-b": nil}
	}
	if r.rand.IntN(8) > 0 {
		f.Src = []byte(fmt.Sprintf(`{"%s":%s,"%s":%s,"n":%s,"prompt":%q}`, key(), value(), key(), value(), value(), strings.Repeat("ab ", r.rand.IntN(8))))
		f.Body = new(probe.Body)
		if fault := probe.Scan(f.Src, probe.SurfaceChat, 0, f.Body); fault == probe.FaultDuplicate {
			return r.facts(tb)
		} else if fault != probe.FaultNone {
			tb.Fatalf("cannot scan %q: %v", f.Src, fault)
		}
	}
	return f
}

// twinMatch is Match without an index and without compiled conditions.
func twinMatch(specs []DecisionSpec, f *Facts) int {
	order := make([]int, len(specs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(specs[j].Priority-specs[i].Priority, strings.Compare(specs[i].Name, specs[j].Name))
	})
	for _, i := range order {
		if specs[i].Rules == nil || twinHolds(specs[i].Rules, f) {
			return i
		}
	}
	return -1
}

func twinHolds(r *RuleSpec, f *Facts) bool {
	holds := func(c RuleSpec) bool { return twinHolds(&c, f) }
	switch r.Operator + r.Type {
	case "AND":
		return !slices.ContainsFunc(r.Conditions, func(c RuleSpec) bool { return !holds(c) })
	case "OR":
		return slices.ContainsFunc(r.Conditions, holds)
	case "NOT":
		return !holds(r.Conditions[0])
	case "model":
		return r.Name == string(f.Model)
	case "tenant":
		return r.Name == string(f.Tenant)
	case "surface":
		return r.Name == f.Surface.String()
	case "path":
		if r.Prefix != "" {
			return strings.HasPrefix(string(f.Path), r.Prefix)
		}
		return string(f.Path) == r.Exact
	case "stream":
		return *r.Value == f.Stream
	case "context":
		n := 0
		if f.Body != nil {
			n = EstimateTokens(f.Src, f.Body)
		}
		return n >= r.MinTokens && n <= r.MaxTokens
	case "header":
		h, _ := f.Header.(fields)
		values := h[strings.ToLower(r.Name)]
		if r.Present != nil {
			return len(values) > 0 == *r.Present
		}
		return slices.ContainsFunc(values, func(v string) bool {
			return r.Exact != "" && v == r.Exact || r.Prefix != "" && strings.HasPrefix(v, r.Prefix) ||
				r.Regex != "" && regexp.MustCompile(r.Regex).MatchString(v)
		})
	case "body":
		return twinBody(r, f)
	}
	panic("unknown rule")
}

// twinBody compares the decoded text of a value with a list.
func twinBody(r *RuleSpec, f *Facts) bool {
	value := "null"
	if f.Body != nil {
		for _, m := range f.Body.Members {
			if strings.Trim(strings.ReplaceAll(string(m.Key.Of(f.Src)), `\u006b`, "k"), `"`) == r.Name {
				value = strings.ReplaceAll(string(m.Val.Of(f.Src)), `\u0078`, "x")
			}
		}
	}
	if r.Present != nil {
		return (value != "null") == *r.Present
	}
	switch want := r.Equals.(type) {
	case int:
		return slices.Contains([]string{"1", `"1"`, "true"}, value)
	case float64:
		return value == "2.5"
	case string:
		return value == `"`+want+`"`
	case bool:
		if want {
			return slices.Contains([]string{"1", `"1"`, "true", `"yes"`}, value)
		}
		return value == "false"
	}
	panic("unknown value")
}

func TestDecisionProperty(t *testing.T) {
	r := ruleMaker{rand.New(rand.NewPCG(6, 1))}
	hits := make(map[bool]int)
	for range 200 {
		checkDecisions(t, r, r.decisions(1+r.rand.IntN(40)), hits)
		if t.Failed() {
			return
		}
	}
	if hits[true] < 1000 || hits[false] < 100 {
		t.Fatalf("the test does not try enough: %d hits, %d misses", hits[true], hits[false])
	}
}

// checkDecisions compares Match and Trace with the twin.
func checkDecisions(t *testing.T, r ruleMaker, specs []DecisionSpec, hits map[bool]int) {
	t.Helper()
	m := matcher(t, specs)
	for range 20 {
		f := r.facts(t)
		got, want := m.Match(f), twinMatch(specs, f)
		if got != want {
			t.Errorf("unexpected decision; got %d; want %d\nfacts %+v\nspecs %+v", got, want, f, specs)
			return
		}
		hits[got >= 0]++
		for range min(3, len(specs)) {
			i := r.rand.IntN(len(specs))
			steps := m.Trace(f, i)
			if specs[i].Rules == nil {
				if steps != nil {
					t.Errorf("unexpected steps of a decision without rules: %+v", steps)
				}
				continue
			}
			if left := checkSteps(t, steps, specs[i].Rules, "rules", f); len(left) > 0 {
				t.Errorf("unexpected steps at the end: %+v", left)
			}
		}
	}
}

// checkSteps wants that steps begin with those of rule, and returns the others.
func checkSteps(t *testing.T, steps []Step, rule *RuleSpec, path string, f *Facts) []Step {
	t.Helper()
	if len(steps) == 0 || steps[0].Path != path || steps[0].Holds != twinHolds(rule, f) {
		t.Fatalf("unexpected steps for %s; got %+v; want %v of %+v", path, steps, twinHolds(rule, f), rule)
	}
	steps = steps[1:]
	for i := range rule.Conditions {
		steps = checkSteps(t, steps, &rule.Conditions[i], fmt.Sprintf("%s.conditions[%d]", path, i), f)
	}
	return steps
}

// FuzzDecisions compares Match with the twin over trees that a seed makes.
func FuzzDecisions(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, uint8(seed*8))
	}
	f.Fuzz(func(t *testing.T, seed uint64, n uint8) {
		r := ruleMaker{rand.New(rand.NewPCG(seed, 2))}
		checkDecisions(t, r, r.decisions(int(n%64)), make(map[bool]int))
	})
}

// FuzzTokens wants that the estimate of any body is within its bounds.
func FuzzTokens(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"messages":[{"role":"user","content":"a\u00e9\ud83d\ude00\n"}]}`, `{"prompt":[1,2.5e3,[]],"tools":[{"a":"\\"}]}`,
		`{"input":"data:image/png;base64,AAAA"}`, `{"prompt":"\ud800"}`, `{"pr\u006fmpt":"x","prompt":null}`,
		`{"text":"` + strings.Repeat("QUJD", 300) + `"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		var b probe.Body
		if probe.Scan(src, probe.SurfaceChat, 0, &b) != probe.FaultNone {
			return
		}
		got := EstimateTokens(src, &b)
		blobs := strings.Count(string(src), "data:") + len(src)/minBlob
		if got < 0 || got > 3*len(src)+blobs*blobTokens {
			t.Fatalf("unexpected estimate of %d bytes; got %d", len(src), got)
		}
		if again := (&Facts{Src: src, Body: &b}).Tokens(); again != got {
			t.Fatalf("unexpected estimate of the same body; got %d; want %d", again, got)
		}
	})
}
