//go:build !race

package router

import (
	"strings"
	"testing"
)

// Once its memory has grown, a replay allocates nothing for a request that is
// sent, whatever is done to it, and for one that fares the same under both
// configurations.
func TestReplay_AllocatesNothing(t *testing.T) {
	old := strings.Replace(replayConfig, "max_n: 2", "max_n: 3", 1)
	for name, texts := range map[string][]string{"alone": {replayConfig}, "against": {replayConfig, old}} {
		p := newReplay(t, 1, texts...)
		p.files = []string{"f"}
		w := p.workers[0]
		block := []byte(strings.Join([]string{
			`{"path":"/v1/chat/completions","method":"POST","headers":{"x-tier":["free"],"x-session-id":"s"},"body":{"model":"alias","temperature":0.5,"max_tokens":100,"logprobs":true,"zz":1,"messages":[{"role":"user","content":"Hi"}]}}`,
			`{"path":"\/v1/chat/completions","headers":{"x-tenant":"t"},"body":{"model":"m","max_tokens":100,"user":"u"}}`,
			`{"path":"/generate","body":"{\"model\":\"m\",\"sampling_params\":[{},{\"temperature\":2}]}"}`,
			`{"path":"/v1/models","method":"GET"}`,
			``,
		}, "\n"))
		w.lines(block, 1)
		if rep := p.Report(); rep.Totals.Of("rejected", false) != 0 || rep.Requests != 4 || rep.Changed != nil && rep.Changed.Count != 0 {
			t.Fatalf("unexpected report: %+v", rep)
		}
		if n := testing.AllocsPerRun(100, func() { w.lines(block, 1) }); n != 0 {
			t.Errorf("unexpected allocations of a replay %s: %v", name, n)
		}
	}
}
