package policy

import (
	"fmt"
	"testing"

	"sluice/probe"
)

func TestChanges(t *testing.T) {
	lit := func(key, value string) *Literal {
		l, err := NewLiteral(key, []byte(value))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	f := func(surface probe.Surface, body string, edit func(p *Plan, b *probe.Body), want ...string) {
		t.Helper()
		var b probe.Body
		if fault := probe.Scan([]byte(body), surface, 0, &b); fault != probe.FaultNone {
			t.Fatalf("Scan(%s): %v", body, fault)
		}
		var p Plan
		p.Reset(&b)
		edit(&p, &b)
		var got []string
		for _, c := range p.Changes([]byte(body)) {
			got = append(got, fmt.Sprintf("%s %s at %d: %s > %s", c.Op, c.Param, c.At, c.Before, c.After))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("unexpected changes of %s\n got %q\nwant %q", body, got, want)
		}
	}
	f(probe.SurfaceChat, `{"a":1}`, func(*Plan, *probe.Body) {})
	f(probe.SurfaceChat, `{"temper\u0061ture":1,"b":[2],"c":3}`, func(p *Plan, b *probe.Body) {
		p.Replace(&b.Members[0], lit("temperature", "0.5"))
		p.Remove(&b.Members[1])
		p.Inject(Top, lit("n", "1"))
	}, "inject n at 1:  > 1", "replace temperature at 1: 1 > 0.5", "remove b at 22: [2] > ")
	f(probe.SurfaceGenerate, `{"sampling_params":[{"n":1},{"n":2}]}`, func(p *Plan, b *probe.Body) {
		p.Replace(&b.Inner[1], lit("n", "1"))
		p.Inject(0, lit("top_k", "-1"))
	}, "inject sampling_params[0].top_k at 21:  > -1", "replace sampling_params[1].n at 29: 2 > 1")
	f(probe.SurfaceGenerate, `{"text":"a","sampling_params":null}`, func(p *Plan, _ *probe.Body) {
		p.Inject(Made, lit("top_k", "-1"))
	}, "inject sampling_params.top_k at 30:  > -1")
	f(probe.SurfaceGenerate, `{"sampling_params":{"n":1}}`, func(p *Plan, b *probe.Body) {
		p.Replace(&b.Inner[0], lit("n", "2"))
		p.Remove(&b.Members[0])
	}, `remove sampling_params at 1: {"n":1} > `)
}
