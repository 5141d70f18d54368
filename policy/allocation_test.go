//go:build !race

package policy

import (
	"strings"
	"testing"

	"sluice/probe"
)

// pipeline is the state of one request, used again and again.
type pipeline struct {
	src      []byte
	body     probe.Body
	plan     Plan
	attempt  Plan
	segments [][]byte
	out      []byte
	message  []byte
}

func (q *pipeline) scan(tb testing.TB, c *Contract, surface probe.Surface) {
	tb.Helper()
	if fault := probe.Scan(q.src, surface, c.Numbers(), &q.body); fault != probe.FaultNone {
		tb.Fatalf("cannot scan %q: %v", q.src, fault)
	}
}

// run is what the router does with a scanned body.
func (q *pipeline) run(c *Contract, surface probe.Surface) {
	q.plan.Reset(&q.body)
	v := c.Judge(&q.body, surface, &q.plan)
	q.message = v.AppendMessage(q.message[:0])
	q.attempt.CopyFrom(&q.plan)
	if q.attempt.Empty() {
		q.segments = append(q.segments[:0], q.src)
		return
	}
	q.segments = q.attempt.AppendSegments(q.segments[:0], q.src)
	q.out = q.attempt.AppendTo(q.out[:0], q.src)
}

func TestAllocations(t *testing.T) {
	f := func(name string, c *Contract, surface probe.Surface, body string) {
		t.Helper()
		q := &pipeline{src: []byte(body)}
		q.scan(t, c, surface)
		q.run(c, surface)
		if n := testing.AllocsPerRun(200, func() { q.run(c, surface) }); n != 0 {
			t.Fatalf("%s: unexpected number of allocations; got %v; want 0", name, n)
		}
	}
	reject := contract(t, "reject", all)
	replace := contract(t, "replace", all)
	f("off", nil, probe.SurfaceChat, `{"temperature":5}`)
	f("untouched", contract(t, "reject", map[string]any{"temperature": 1}), probe.SurfaceChat, `{"temperature":1.0}`)
	f("injected", reject, probe.SurfaceChat, `{"model":"m"}`)
	f("refused", reject, probe.SurfaceChat, `{"model":"m","temperature":0.1234567,"n":"x"}`)
	f("replaced", replace, probe.SurfaceChat, `{"model":"m","temperature":5,"top_p":"x","n":2,"n2":1,"top_k":NaN}`)
	f("made", reject, probe.SurfaceGenerate, `{"text":"a"}`)
	f("batch", replace, probe.SurfaceGenerate, `{"sampling_params":[`+strings.Repeat(`{"temperature":5,"temperature":4},`, 100)+`{}]}`)
	f("observed", contract(t, "observe", all), probe.SurfaceChat, `{"temperature":0.5}`)
}

func TestModelReplacementAllocations(t *testing.T) {
	q := &pipeline{src: []byte(`{"messages":[],"model":"alias"}`)}
	q.scan(t, nil, probe.SurfaceChat)
	model := literal(t, "model", `"meta/Llama"`)
	replace := func() {
		q.plan.Reset(&q.body)
		q.plan.Replace(q.body.Last(probe.FieldModel), model)
		q.segments = q.plan.AppendSegments(q.segments[:0], q.src)
	}
	replace()
	if n := testing.AllocsPerRun(200, replace); n != 0 {
		t.Fatalf("unexpected number of allocations; got %v; want 0", n)
	}
}
