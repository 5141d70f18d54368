package router

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"sluice/probe"
)

// recorded is a request as a line holds it. Its slices refer to the line or to
// memory of its own, until the next line is read.
type recorded struct {
	target, method []byte
	header         fasthttp.RequestHeader
	body           []byte

	scan, fields probe.Body // of the line, and of its headers
	texts        [5][]byte  // of strings that had to be un-escaped, by what they are
}

// What recorded.texts hold.
const (
	textTarget = iota
	textMethod
	textBody
	textName
	textValue
)

// read reads a line and returns what is wrong with it, or nothing.
func (c *recorded) read(line []byte) string {
	c.target, c.method, c.body = nil, methodPost, nil
	c.header.Reset()
	if probe.Scan(line, probe.SurfaceNone, 0, &c.scan) != probe.FaultNone {
		return "is no JSON object"
	}
	for i := range c.scan.Members {
		m := &c.scan.Members[i]
		key, val := m.Key.Of(line), m.Val.Of(line)
		switch {
		case m.Field != probe.FieldNone, m.Kind == probe.KindNull:
		case probe.EqualKey(key, "path"), probe.EqualKey(key, "url"): // as in files of OpenAI's batch API
			if m.Kind != probe.KindString {
				return "has a path that is no string"
			}
			c.target = c.text(textTarget, val)
		case probe.EqualKey(key, "method"):
			if m.Kind != probe.KindString {
				return "has a method that is no string"
			}
			c.method = c.text(textMethod, val)
		case probe.EqualKey(key, "headers"):
			if m.Kind != probe.KindObject || !c.readHeaders(val) {
				return "has headers that are no object of strings and lists of strings"
			}
		case probe.EqualKey(key, "body") && m.Kind == probe.KindString:
			c.body = c.text(textBody, val)
		case probe.EqualKey(key, "body"):
			c.body = val
		}
	}
	if len(c.target) == 0 {
		return "has no path"
	}
	return ""
}

var methodPost = []byte(fasthttp.MethodPost)

// text returns what a JSON string reads as, until the next text of the same use.
func (c *recorded) text(use int, raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	t := &c.texts[use]
	*t = probe.AppendUnquoted((*t)[:0], raw)
	return *t
}

// readHeaders reads the object of header fields. Fields of the connection are left
// out: a line has no connection.
func (c *recorded) readHeaders(object []byte) bool {
	if probe.Scan(object, probe.SurfaceNone, 0, &c.fields) != probe.FaultNone {
		return false
	}
	for i := range c.fields.Members {
		m := &c.fields.Members[i]
		name, val := c.text(textName, m.Key.Of(object)), m.Val.Of(object)
		switch m.Kind {
		case probe.KindString:
			c.addField(name, c.text(textValue, val))
		case probe.KindArray:
			if !c.addFields(name, val) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func (c *recorded) addField(name, value []byte) {
	for _, other := range [...]string{"content-length", "transfer-encoding", "connection", "content-encoding"} {
		if len(name) == len(other) && bytes.EqualFold(name, []byte(other)) {
			return
		}
	}
	c.header.AddBytesKV(name, value)
}

// addFields adds a field for each string of a list, of which brackets and strings
// are known to be sound.
func (c *recorded) addFields(name, list []byte) bool {
	for i := 1; i < len(list)-1; i++ {
		switch list[i] {
		case ' ', '\t', '\r', '\n', ',':
		case '"':
			end := stringEnd(list, i)
			c.addField(name, c.text(textValue, list[i:end]))
			i = end - 1
		default:
			return false
		}
	}
	return true
}

// stringEnd returns the offset after the JSON string that begins at i. The string
// is known to end.
func stringEnd(b []byte, i int) int {
	for i++; ; i++ {
		i += bytes.IndexByte(b[i:], '"')
		n := 0
		for b[i-1-n] == '\\' {
			n++
		}
		if n%2 == 0 {
			return i + 1
		}
	}
}

// replayed is what one configuration makes of a request.
type replayed struct {
	in      *intake
	ruling  *ruling
	refused *refusal // nil: it would be sent, or answered locally
	local   bool     // the router answers it itself
	ruled   bool     // a decision was looked for
}

// replayWorker works on lines, one at a time.
type replayWorker struct {
	replay  *Replay
	block   []byte
	line    recorded
	intakes [2]intake
	rulings [2]ruling
	parsed  [2]*refusal // of the intakes
	sums    [2]*replaySums
	faults  []lineFault // the first ones
	bad     uint64      // malformed lines
	bodies  uint64      // bytes of bodies
	changes replayChanges
}

// lineFault is what is wrong with a line.
type lineFault struct {
	line    uint64
	problem string
}

// maxLineFaults is how many malformed lines are told of.
const maxLineFaults = 10

func newReplayWorker(p *Replay) *replayWorker {
	w := &replayWorker{replay: p, block: make([]byte, 0, replayBlock), changes: replayChanges{kinds: map[replayChange]*replayCount{}}}
	for i := range p.sides {
		w.sums[i] = newReplaySums(p.sides[i].rules)
	}
	return w
}

func (w *replayWorker) malformed(line uint64, problem string) {
	w.bad++
	if len(w.faults) < maxLineFaults { // a worker sees lines in their order
		w.faults = append(w.faults, lineFault{line, problem})
	}
}

// request works on one line.
func (w *replayWorker) request(text []byte, line uint64) {
	if problem := w.line.read(text); problem != "" {
		w.malformed(line, problem)
		return
	}
	w.bodies += uint64(len(w.line.body))
	var done [2]replayed
	for i := range w.replay.sides {
		done[i] = w.run(i)
		w.sums[i].add(&done[i], line)
	}
	if len(w.replay.sides) > 1 {
		w.changes.add(&done[1], &done[0], line)
	}
}

// run has one configuration rule on the line, as request.serve does.
func (w *replayWorker) run(i int) replayed {
	rules, in, g := w.replay.sides[i].rules, &w.intakes[i], &w.rulings[i]
	*in, *g = in.recycled(), g.recycled()
	if refused := in.locate(w.line.target, w.line.method, rules.passes); refused != nil {
		return replayed{in: in, refused: refused}
	}
	if in.endpoint.kind > kindPass {
		return replayed{in: in, local: true}
	}
	if i > 0 && w.intakes[0].endpoint == in.endpoint && w.replay.sides[0].maxBody == w.replay.sides[i].maxBody {
		in, w.parsed[i] = &w.intakes[0], w.parsed[0] // Fast path: read already
	} else {
		w.parsed[i] = w.parse(in, w.replay.sides[i].maxBody)
	}
	if w.parsed[i] != nil {
		return replayed{in: in, refused: w.parsed[i]}
	}
	g.steady = true
	g.decide(rules, in, rules.asker(&w.line.header))
	refused := g.choose(rules, in)
	if refused == nil {
		refused = g.edit(in)
	}
	return replayed{in: in, ruling: g, refused: refused, ruled: true}
}

// parse reads the body.
func (w *replayWorker) parse(in *intake, maxBody int) *refusal {
	boundary, refused := in.accept(w.line.header.ContentType())
	if refused != nil {
		return refused
	}
	if len(w.line.body) > maxBody {
		return &refusal{fasthttp.StatusRequestEntityTooLarge, codePayloadTooLarge, tooLargeText, ""}
	}
	in.body = w.line.body
	return in.parse(boundary, w.replay.numbers)
}
