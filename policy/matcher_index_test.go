package policy

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"sluice/probe"
)

// candidates returns the ranks that Match looks at for f, in no order.
func candidates(m *Matcher, f *Facts) []int32 {
	files := &m.surfaces[f.Surface]
	return slices.Concat(files.models[string(f.Model)], files.tenants[string(f.Tenant)], files.others)
}

// A request costs what its candidates cost, not what all decisions do.
func TestMatcherCandidates(t *testing.T) {
	m := matcher(t, tiers(1000))
	f := func(want int, f Facts) {
		t.Helper()
		if got := len(candidates(m, &f)); got != want {
			t.Errorf("unexpected number of candidates for %+v; got %d; want %d", f, got, want)
		}
	}
	f(1, Facts{Surface: probe.SurfaceChat, Model: []byte("model-7")})
	f(0, Facts{Surface: probe.SurfaceGenerate, Model: []byte("model-7")})
	f(0, Facts{Surface: probe.SurfaceChat, Model: []byte("model-x")})

	tenant := func(name string) RuleSpec { return RuleSpec{Type: "tenant", Name: name} }
	header := RuleSpec{Type: "header", Name: "a", Exact: "b"}
	for _, tc := range []struct {
		rule                  RuleSpec
		models, tenants       []string
		anyModels, anyTenants bool
	}{
		{rule: model("m"), models: []string{"m"}, anyTenants: true},
		{rule: tenant("t"), tenants: []string{"t"}, anyModels: true},
		{rule: header, anyModels: true, anyTenants: true},
		{rule: and(header, model("m"), tenant("t")), models: []string{"m"}, tenants: []string{"t"}},
		{rule: or(model("n"), model("m"), model("n")), models: []string{"m", "n"}, anyTenants: true},
		{rule: or(model("m"), header), anyModels: true, anyTenants: true},
		{rule: or(model("m"), tenant("t")), anyModels: true, anyTenants: true},
		{rule: and(or(model("m"), model("n")), or(model("n"), model("o"))), models: []string{"n"}, anyTenants: true},
		{rule: and(model("m"), model("n")), anyTenants: true},
		{rule: or(and(model("m"), header), and(tenant("t"), model("n"))), models: []string{"m", "n"}, anyTenants: true},
		{rule: not(model("m")), anyModels: true, anyTenants: true},
		{rule: and(not(model("m")), model("n")), models: []string{"n"}, anyTenants: true},
	} {
		d := &matcher(t, []DecisionSpec{{Name: "d", Rules: &tc.rule}}).decisions[0]
		models, tenants := d.rule.demand(kindModel), d.rule.demand(kindTenant)
		if models.any != tc.anyModels || !slices.Equal(models.names, tc.models) {
			t.Errorf("unexpected models of %+v; got %+v; want %v, any %v", tc.rule, models, tc.models, tc.anyModels)
		}
		if tenants.any != tc.anyTenants || !slices.Equal(tenants.names, tc.tenants) {
			t.Errorf("unexpected tenants of %+v; got %+v; want %v, any %v", tc.rule, tenants, tc.tenants, tc.anyTenants)
		}
	}
}

// The tokens are estimated only where nothing cheaper settles the matter,
// wherever the condition stands.
func TestMatcherEstimatesLast(t *testing.T) {
	long := RuleSpec{Type: "context", MinTokens: 1}
	f := func(estimated bool, rule RuleSpec) {
		t.Helper()
		facts := facts(t, `{"prompt":"hello"}`)
		matcher(t, []DecisionSpec{{Name: "d", Rules: &rule}}).Match(facts)
		if got := facts.tokens != 0; got != estimated {
			t.Errorf("unexpected estimate for %+v; got %v; want %v", rule, got, estimated)
		}
	}
	f(true, long)
	f(true, and(long, model("llama")))
	f(false, and(long, model("other")))
	f(false, and(not(long), RuleSpec{Type: "header", Name: "x-tier", Regex: "^x$"}))
	f(false, or(and(long, long), RuleSpec{Type: "stream", Value: ptr(false)}))
	f(false, and(or(long, not(model("llama"))), RuleSpec{Type: "body", Name: "prompt", Equals: "bye"}))
}

func TestMatcherConcurrency(t *testing.T) {
	rule := RuleSpec{Type: "header", Name: "x-tier", Regex: "^(f|g).*e$"}
	m := matcher(t, append(tiers(50), DecisionSpec{Name: "rest", Priority: -1, Rules: &rule}))
	var wg sync.WaitGroup
	for g := range 4 {
		f := facts(t, `{}`)
		f.Model, f.Header = []byte(fmt.Sprintf("model-%d", 49-g)), tier{[]byte("free")}
		if g == 3 {
			f.Model = nil
		}
		wg.Go(func() {
			for range 200 {
				want := 49 - g
				if g == 3 {
					want = 50
				}
				if got := m.Match(f); got != want {
					t.Errorf("unexpected decision; got %d; want %d", got, want)
					return
				}
			}
		})
	}
	wg.Wait()
}
