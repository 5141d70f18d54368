package sim

import (
	"encoding/json"
	"net/http"
	"time"
)

type textAnswer struct {
	completionMeta
	Choices           []textChoice    `json:"choices"`
	SystemFingerprint json.RawMessage `json:"system_fingerprint,omitempty"`
	Usage             *usage          `json:"usage,omitempty"`
}

type textChoice struct {
	Index int    `json:"index"`
	Text  string `json:"text"`
	ending
}

// defaultCompletionTokens is the limit of /v1/completions where none is given.
const defaultCompletionTokens = 16

// completions is POST /v1/completions.
func (x *exchange) completions() {
	o := x.obj
	o.need("prompt")
	prompts := o.prompts("prompt")
	o.sampling()
	limit := o.positive("max_tokens")
	if limit == 0 {
		limit = defaultCompletionTokens
	}
	stops, n, stream := o.texts("stop"), o.integer("n", 1), o.flag("stream", false)
	usage := x.streamUsage(stream)
	meta := completionMeta{x.answerID("cmpl-"), "text_completion", time.Now().Unix(), x.model()}
	x.valid()
	g := x.generate(prompts, n, limit, stops)
	if stream {
		x.streamCompletions(g, meta, usage)
		return
	}
	x.run(g, nil)
	a := textAnswer{completionMeta: meta, SystemFingerprint: null, Usage: x.usage(g, g.completion())}
	for i := range g.choices {
		a.Choices = append(a.Choices, textChoice{i, g.choices[i].text(), x.ending(&g.choices[i])})
	}
	x.replyJSON(http.StatusOK, a)
}

func (x *exchange) streamCompletions(g *generation, meta completionMeta, want usageWanted) {
	s := x.stream()
	done := 0
	chunk := func(index int, text string, e ending) {
		c := textAnswer{completionMeta: meta, Choices: []textChoice{{index, text, e}}}
		if want.always {
			c.Usage = x.usage(g, done)
		}
		s.data(c)
	}
	x.run(g, func(index, i int) {
		done++
		chunk(index, g.choices[index].tokens[i], x.open())
	})
	for i := range g.choices {
		chunk(i, "", x.ending(&g.choices[i]))
	}
	if want.last {
		s.data(textAnswer{completionMeta: meta, Choices: []textChoice{}, Usage: x.usage(g, done)})
	}
	s.end()
}

// prompts returns a member that is a string, a list of strings, a list of token
// ids or a list of such lists.
func (o *object) prompts(key string) []string {
	var (
		one   string
		list  []string
		ids   []int64
		lists [][]int64
	)
	switch {
	case !o.has(key):
		return nil
	case o.decode(key, &one):
		return []string{one}
	case o.decode(key, &list):
	case o.decode(key, &ids):
		return []string{detokenize(ids)}
	case o.decode(key, &lists):
		list = list[:0] // what the failed reading as strings has left
		for _, ids := range lists {
			list = append(list, detokenize(ids))
		}
	default:
		o.fail(key, "list_type", "Input should be a valid string, list of strings, list of integers or list of lists of integers")
	}
	if len(list) == 0 {
		o.fail(key, "too_short", "Input should have at least one item")
	}
	return list
}
