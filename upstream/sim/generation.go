package sim

import (
	"math"
	"strings"
)

// The reasons to end, in OpenAI's words.
const (
	finishStop   = "stop"
	finishLength = "length"
	finishAbort  = "abort"
)

// generation is what a model would have made of one request.
type generation struct {
	choices []choice
	prompt  int // tokens of the prompts
	cached  int // those of them that were in the prefix cache
	limit   int // the most tokens of one choice
}

// choice is one text of a generation.
type choice struct {
	tokens  []string
	finish  string
	matched string // the stop string that ended it, or ""
}

func (c *choice) text() string { return strings.Join(c.tokens, "") }

// completion returns the number of generated tokens.
func (g *generation) completion() (n int) {
	for i := range g.choices {
		n += len(g.choices[i].tokens)
	}
	return n
}

// maxChoices bounds what one request can ask for, as OpenAI's n does.
const maxChoices = 128

// generate makes n choices for each prompt, of at most limit tokens (0: what
// the context window leaves), ended early by one of stops.
func (x *exchange) generate(prompts []string, n, limit int, stops []string) *generation {
	if n < 1 || n > maxChoices {
		x.refuse(badRequest("n", "n must be between 1 and %d, got %d.", maxChoices, n))
	}
	g := &generation{limit: limit}
	if limit <= 0 {
		g.limit = math.MaxInt
	}
	for _, prompt := range prompts {
		tokens, cached := x.e.cache.see(prompt)
		g.prompt += tokens
		g.cached += cached
		if window := x.p.MaxModelLen; window > 0 {
			if tokens >= window {
				x.refuse(badRequest("", "This model's maximum context length is %d tokens. However, your request has %d input tokens. "+
					"Please reduce the length of the input messages.", window, tokens))
			}
			g.limit = min(g.limit, window-tokens)
		}
	}
	for i := range len(prompts) * n {
		g.choices = append(g.choices, x.choice(i, g.limit, stops))
	}
	return g
}

func (x *exchange) choice(index, limit int, stops []string) choice {
	text := x.p.Text
	if text == "" {
		text = words(x.p.Words, index)
	}
	c := choice{tokens: tokenize(text), finish: finishStop}
	if len(c.tokens) > limit {
		c.tokens, c.finish = c.tokens[:limit], finishLength
	}
	text = c.text()
	for _, stop := range stops {
		if at := strings.Index(text, stop); stop != "" && at >= 0 {
			text, c.matched = text[:at], stop
		}
	}
	if c.matched != "" {
		c.tokens, c.finish = tokenize(text), finishStop
	}
	if x.p.pad > 0 {
		if len(c.tokens) == 0 {
			c.tokens = []string{""}
		}
		c.tokens[len(c.tokens)-1] += strings.Repeat("x", x.p.pad)
	}
	return c
}

// run lets the time pass in which g is generated and calls emit, if not nil, for
// each token when it is there: the i-th ones of all choices, then the next ones.
// If the request is aborted, g ends where it is.
func (x *exchange) run(g *generation, emit func(index, i int)) {
	steps := 0
	for i := range g.choices {
		steps = max(steps, len(g.choices[i].tokens))
	}
	if !x.begun {
		x.begun = true
		if !x.sleep(x.p.TTFB) {
			g.abort(0)
			return
		}
	}
	for i := range steps {
		wait := x.p.Pace
		if i == 0 {
			wait = x.p.TTFT
		}
		if !x.sleep(wait) {
			g.abort(i)
			return
		}
		for index := range g.choices {
			if emit != nil && i < len(g.choices[index].tokens) {
				emit(index, i)
			}
		}
	}
}

// abort ends every choice after its first n tokens.
func (g *generation) abort(n int) {
	for i := range g.choices {
		if c := &g.choices[i]; len(c.tokens) > n {
			c.tokens, c.finish, c.matched = c.tokens[:n], finishAbort, ""
		}
	}
}
