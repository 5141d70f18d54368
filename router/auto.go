package router

import (
	"time"

	"github.com/valyala/fasthttp"

	"sluice/policy"
	"sluice/probe"
	"sluice/upstream"
	"sluice/upstream/h1"
)

const (
	// countTimeout bounds the time that a worker has to count the tokens of a
	// prompt.
	countTimeout = 2 * time.Second
	// maxCounted bounds its answer, which lists the tokens: 7 bytes each for a
	// million of them.
	maxCounted = 16 << 20
)

// countPath is where each engine counts tokens. What is only said to speak the
// OpenAI API has no such path.
var countPath = map[policy.Engine]string{
	policy.EngineVLLM:   "/tokenize",
	policy.EngineSGLang: "/v1/tokenize",
}

// giveLimit adds the output limit of a request whose decision has it counted
// (default_max_tokens: auto) and that gives none: what the context window leaves
// after the prompt. The tokens of the prompt are counted by the worker that has
// been chosen or, where it cannot, estimated.
func (q *request) giveLimit() *refusal {
	if !q.params.WantsLimit || q.target.window == 0 {
		return nil
	}
	tokens, ok := q.countTokens()
	switch {
	case ok:
	case q.route.exact:
		return &refusal{fasthttp.StatusBadGateway, codeUnreachable, "the tokens of the prompt cannot be counted", ""}
	default:
		tokens = q.facts.Tokens()
	}
	// Of a prompt that leaves no room the engine itself says so.
	room := max(q.target.window-tokens, 1)
	if q.judge.GiveLimit(room, &q.scan, q.endpoint.surface, q.dest.engine, &q.plan, &q.room) {
		q.splice(&q.intake)
		q.prepare()
	}
	return nil
}

// countTokens has the worker count the tokens of the prompt.
func (q *request) countTokens() (n int, ok bool) {
	path := countPath[q.dest.engine]
	body := q.countBody()
	if path == "" || body == nil {
		return 0, false
	}
	var x upstream.Exchange
	defer x.Close()
	q.arm(&x)
	timer := time.AfterFunc(countTimeout, x.Cancel)
	defer timer.Stop()
	if q.mustStop() {
		x.Cancel()
	}
	req := upstream.Request{
		Method: []byte(fasthttp.MethodPost),
		Target: []byte(path),
		Fields: q.pool.up.EditFields([]h1.Field{
			{Name: nameContentType, Value: []byte("application/json")},
			{Name: nameRequestID, Value: q.id},
		}),
		Body: body,
	}
	for _, s := range body {
		req.Length += int64(len(s))
	}
	if err := x.Do(q.worker, &req); err != nil || x.Status() != fasthttp.StatusOK {
		return 0, false
	}
	var answer []byte
	for len(answer) <= maxCounted {
		p, err := x.Next()
		if err != nil {
			break // at the end of it, or short of it, which Scan sees
		}
		answer = append(answer, p...)
	}
	return readCount(answer)
}

// countBody returns the body of the question: the prompt as the client wrote it.
// It is nil where no engine takes what the surface calls a prompt.
func (q *request) countBody() [][]byte {
	model := []byte(`{"model":`)
	name := q.renamed(&q.intake)
	switch m := q.scan.Last(probe.FieldModel); {
	case name != nil:
		model = append(model, name.literal.Value()...)
	case m != nil:
		model = append(model, m.Val.Of(q.body)...)
	default:
		model = append(model, `""`...)
	}
	part := func(key string, m *probe.Member) [][]byte {
		return [][]byte{model, []byte(`,"` + key + `":`), m.Val.Of(q.body)}
	}
	end := []byte{'}'}
	switch q.endpoint.surface {
	case probe.SurfaceChat:
		m := q.member("messages")
		if m == nil || m.Kind != probe.KindArray {
			return nil
		}
		body := part("messages", m)
		if tools := q.member("tools"); tools != nil && tools.Kind == probe.KindArray {
			body = append(body, []byte(`,"tools":`), tools.Val.Of(q.body))
		}
		return append(body, end)
	case probe.SurfaceCompletions, probe.SurfaceGenerate:
		m := q.member(map[probe.Surface]string{probe.SurfaceCompletions: "prompt", probe.SurfaceGenerate: "text"}[q.endpoint.surface])
		if m == nil || m.Kind != probe.KindString {
			return nil
		}
		return append(part("prompt", m), end)
	}
	return nil
}

// readCount returns the count of an answer of /tokenize.
func readCount(answer []byte) (n int, ok bool) {
	var b probe.Body
	if probe.Scan(answer, probe.SurfaceTokenize, 0, &b) != probe.FaultNone {
		return 0, false
	}
	for i := range b.Members {
		if m := &b.Members[i]; probe.EqualKey(m.Key.Of(answer), "count") && m.Kind == probe.KindNumber {
			count, whole, huge := probe.ReadWhole(m.Val.Of(answer), m.Kind)
			return int(count), whole && !huge && count >= 0
		}
	}
	return 0, false
}
