package policy

import (
	"encoding/json"
	"maps"
	"testing"

	"sluice/probe"
)

// decoded returns the members of a body as engines read them: the last copy of
// each, without nulls.
func decoded(t testing.TB, body string) map[string]string {
	t.Helper()
	read := map[string]string{}
	for _, m := range members(t, body) {
		delete(read, m.key)
		if m.raw != "null" {
			read[m.key] = m.raw
		}
	}
	return read
}

// TestLayersEqualTwin compares layers with the same on a decoded map: force sets,
// extra_body and then thinking fill in. The keys have one name each.
func TestLayersEqualTwin(t *testing.T) {
	force := `{"seed":"force","response_format":{"a": 1},"}":[]}`
	extra := `{"seed":"extra","temperature":0,"logit_bias":{},"é":1,"new":[1, 2]}`
	think := `{"new":"thinking","temperature":9,"chat_template_kwargs":{"enable_thinking":false}}`
	d := newDocuments(8)
	compared := 0
	for compared < 2000 {
		body := d.body(probe.SurfaceChat)
		var b probe.Body
		if !json.Valid([]byte(body)) || probe.Scan([]byte(body), probe.SurfaceChat, 0, &b) != probe.FaultNone {
			continue
		}
		compared++
		want := decoded(t, body)
		forced, added := d.rand.IntN(2) == 0, d.rand.IntN(2) == 0
		var stages []func([]byte, *probe.Body, *Plan)
		if forced {
			stages = append(stages, stage(t, LayerForce, probe.SurfaceChat, force))
			maps.Copy(want, decoded(t, force))
		}
		if added {
			stages = append(stages, stage(t, LayerExtraBody, probe.SurfaceChat, extra))
			fill(want, decoded(t, extra))
		}
		stages = append(stages, stage(t, LayerThinking, probe.SurfaceChat, think))
		fill(want, decoded(t, think))
		out := applied(t, probe.SurfaceChat, body, stages...)
		if got := decoded(t, out); !maps.Equal(got, want) {
			t.Fatalf("force %v, extra_body %v: %s\nbecame %s\nthat is %v\nwant    %v", forced, added, body, out, got, want)
		}
	}
}

// fill adds the members that are not there.
func fill(to, from map[string]string) {
	for key, val := range from {
		if _, ok := to[key]; !ok {
			to[key] = val
		}
	}
}
