package router

import (
	"bytes"
	"strings"

	"sluice/policy"
)

// replayChange is one way in which a request fares otherwise under another
// configuration.
type replayChange struct{ what, param, from, to string }

// maxReplayChanges bounds the kinds of changes: names of members may be the
// clients' own.
const maxReplayChanges = 1000

// replayChanges count them.
type replayChanges struct {
	requests replayCount // that fare otherwise in any way
	kinds    map[replayChange]*replayCount
}

// add compares what two configurations make of a request.
func (c *replayChanges) add(from, to *replayed, line uint64) {
	if same(from, to) {
		return // Fast path
	}
	c.requests.add(line)
	if a, b := verdictOf(from), verdictOf(to); a != b {
		c.note(replayChange{"outcome", "", a, b}, line)
	}
	if !from.ruled || !to.ruled {
		return
	}
	if a, b := from.ruling.route.name, to.ruling.route.name; a != b {
		c.note(replayChange{"decision", "", orNone(a), orNone(b)}, line)
	}
	if a, b := poolOf(from), poolOf(to); a != b {
		c.note(replayChange{"pool", "", a, b}, line)
	}
	if from.refused == nil && to.refused == nil && !sameBytes(from.ruling.segments, to.ruling.segments) {
		c.addEdits(from, to, line)
	}
}

// same reports whether nothing differs that the client, the engine or the metrics
// of a decision would see.
func same(from, to *replayed) bool {
	if from.local != to.local || from.ruled != to.ruled || (from.refused == nil) != (to.refused == nil) {
		return false
	}
	if r := from.refused; r != nil && (r.code != to.refused.code || r.param != to.refused.param) {
		return false
	}
	if !from.ruled {
		return true
	}
	if from.ruling.route.name != to.ruling.route.name || poolOf(from) != poolOf(to) {
		return false
	}
	return from.refused != nil || sameBytes(from.ruling.segments, to.ruling.segments)
}

// verdictOf returns what the client sees of the rules.
func verdictOf(d *replayed) string {
	switch {
	case d.local:
		return "answered by the router"
	case d.refused == nil:
		return "sent"
	case d.refused.param == "":
		return string(d.refused.code)
	}
	return string(d.refused.code) + " " + d.refused.param
}

func poolOf(d *replayed) string {
	if d.ruling.dest == nil {
		return noPool
	}
	return d.ruling.dest.name
}

func orNone(name string) string {
	if name == "" {
		return "none"
	}
	return name
}

// sameBytes reports whether two bodies in segments are the same. Where both refer
// to the client's bytes, these need not be looked at.
func sameBytes(a, b [][]byte) bool {
	var x, y []byte
	for {
		for len(x) == 0 && len(a) > 0 {
			x, a = a[0], a[1:]
		}
		for len(y) == 0 && len(b) > 0 {
			y, b = b[0], b[1:]
		}
		if len(x) == 0 || len(y) == 0 {
			return len(x) == len(y)
		}
		n := min(len(x), len(y))
		if &x[0] != &y[0] && !bytes.Equal(x[:n], y[:n]) {
			return false
		}
		x, y = x[n:], y[n:]
	}
}

// addEdits notes each member that is edited otherwise.
func (c *replayChanges) addEdits(from, to *replayed, line uint64) {
	if !from.in.json() || !to.in.json() {
		c.note(replayChange{"body", "model", "", ""}, line)
		return
	}
	a, b := editsOf(from), editsOf(to)
	noted := false
	note := func(param, from, to string) {
		if from != to {
			c.note(replayChange{"body", param, from, to}, line)
			noted = true
		}
	}
	for param, edit := range a {
		note(param, edit, orAsSent(b[param]))
	}
	for param, edit := range b {
		if a[param] == "" {
			note(param, asSent, edit)
		}
	}
	if !noted { // the same edits in another order, or of another copy
		c.note(replayChange{"body", "", "", ""}, line)
	}
}

const asSent = "as sent"

func orAsSent(edit string) string {
	if edit == "" {
		return asSent
	}
	return edit
}

// editsOf returns what is done to each member. Those of a list of sampling_params
// are one.
func editsOf(d *replayed) map[string]string {
	edits := map[string]string{}
	for _, e := range d.ruling.plan.Changes(d.in.body) {
		param := e.Param
		if i := strings.IndexByte(param, '['); i >= 0 && strings.HasPrefix(param, "sampling_params[") {
			param = "sampling_params[]" + param[strings.IndexByte(param, ']')+1:]
		}
		edits[param] = editText(&e)
	}
	return edits
}

func editText(e *policy.Change) string {
	if e.After == "" {
		return e.Op
	}
	const limit = 60
	after := e.After
	if len(after) > limit {
		after = strings.ToValidUTF8(after[:limit], "") + "…"
	}
	return e.Op + " " + after
}

func (c *replayChanges) note(k replayChange, line uint64) { c.count(k, replayCount{1, line}) }

func (c *replayChanges) count(k replayChange, n replayCount) {
	found := c.kinds[k]
	if found == nil {
		if len(c.kinds) >= maxReplayChanges {
			k = replayChange{what: "other"}
		}
		if found = c.kinds[k]; found == nil {
			found = &replayCount{}
			c.kinds[k] = found
		}
	}
	found.merge(n)
}
