package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// sglAnswer is an answer of SGLang's /generate, and an event of its stream.
type sglAnswer struct {
	Text      string  `json:"text"`
	OutputIDs []int64 `json:"output_ids"`
	MetaInfo  sglMeta `json:"meta_info"`
	Index     *int    `json:"index,omitempty"` // in streams of a batch
}

type sglMeta struct {
	ID            string     `json:"id"`
	FinishReason  *sglFinish `json:"finish_reason"`
	Prompt        int        `json:"prompt_tokens"`
	WeightVersion string     `json:"weight_version"`
	Completion    int        `json:"completion_tokens"`
	Cached        int        `json:"cached_tokens"`
	Latency       *float64   `json:"e2e_latency,omitempty"` // seconds, when finished
}

type sglFinish struct {
	Type    string `json:"type"`
	Matched any    `json:"matched,omitempty"`
	Length  int    `json:"length,omitempty"`
	Message string `json:"message,omitempty"`
}

// eosToken is the id that SGLang says to have matched when a text just ends.
const eosToken = 2

// defaultNewTokens is the limit of /generate where none is given.
const defaultNewTokens = 128

// sglBatch is a request to /generate taken apart: one generation for each prompt.
type sglBatch struct {
	ids   []string
	gens  []*generation
	list  bool // the answer is a list
	began time.Time
}

// sglGenerate is POST and PUT /generate.
func (x *exchange) sglGenerate() {
	o := x.obj
	prompts, list := o.sglPrompts()
	params := o.samplingParams(len(prompts))
	ids := x.sglIDs(len(prompts))
	stream := o.flag("stream", false)
	x.valid()
	b := &sglBatch{list: list, began: time.Now()}
	for i, prompt := range prompts {
		p := params[i]
		limit, n := p.positive("max_new_tokens"), p.integer("n", 1)
		if limit == 0 {
			limit = defaultNewTokens
		}
		p.sampling()
		stops := p.texts("stop")
		o.adopt(p)
		x.valid()
		b.gens = append(b.gens, x.generate([]string{prompt}, n, limit, stops))
		for range n {
			b.ids = append(b.ids, ids[i])
		}
		b.list = b.list || n > 1
	}
	if stream {
		x.streamGenerate(b)
		return
	}
	all := b.all()
	x.run(all, nil)
	answers := make([]sglAnswer, len(all.choices))
	for i := range all.choices {
		answers[i] = b.answer(all, i, len(all.choices[i].tokens))
	}
	if b.list {
		x.replyJSON(http.StatusOK, answers)
		return
	}
	x.replyJSON(http.StatusOK, answers[0])
}

// all joins the generations of the batch into one that runs at once.
func (b *sglBatch) all() *generation {
	all := &generation{}
	for _, g := range b.gens {
		all.choices = append(all.choices, g.choices...)
	}
	return all
}

// of returns the generation that the index-th choice of all belongs to.
func (b *sglBatch) of(index int) *generation {
	for _, g := range b.gens {
		if index < len(g.choices) {
			return g
		}
		index -= len(g.choices)
	}
	panic("BUG: a choice of no generation")
}

// answer tells the index-th choice as it is after its first n tokens.
func (b *sglBatch) answer(all *generation, index, n int) sglAnswer {
	c, g := &all.choices[index], b.of(index)
	part := choice{tokens: c.tokens[:n]}
	a := sglAnswer{
		Text: part.text(), OutputIDs: make([]int64, 0, n),
		MetaInfo: sglMeta{ID: b.ids[index], Prompt: g.prompt, WeightVersion: "default", Completion: n, Cached: g.cached},
	}
	for _, t := range part.tokens {
		a.OutputIDs = append(a.OutputIDs, tokenID(t[:min(len(t), maxToken)]))
	}
	if n < len(c.tokens) {
		return a
	}
	seconds := time.Since(b.began).Seconds()
	a.MetaInfo.Latency = &seconds
	f := &sglFinish{Type: c.finish}
	switch {
	case c.finish == finishLength:
		f.Length = n
	case c.finish == finishAbort:
		f.Message = "Abort by user"
	case c.matched != "":
		f.Matched = c.matched
	default:
		f.Matched = eosToken
	}
	a.MetaInfo.FinishReason = f
	return a
}

// streamGenerate writes cumulative texts. As in SGLang the last token of a choice
// comes with its finish reason, and a choice without tokens is one event.
func (x *exchange) streamGenerate(b *sglBatch) {
	s := x.stream()
	all := b.all()
	told := make([]bool, len(all.choices)) // the finish reason has gone out
	send := func(index, n int) {
		a := b.answer(all, index, n)
		if b.list {
			a.Index = &index
		}
		told[index] = a.MetaInfo.FinishReason != nil
		s.data(a)
	}
	x.run(all, func(index, i int) { send(index, i+1) })
	for i := range all.choices {
		if !told[i] {
			send(i, len(all.choices[i].tokens))
		}
	}
	s.end()
}

// sglPrompts returns the prompts of a request to /generate and whether they came
// as a list.
func (o *object) sglPrompts() (prompts []string, list bool) {
	var ids []int64
	switch {
	case o.has("text") == o.has("input_ids"):
		o.fail("text", "value_error", "Either text, input_ids or input_embeds should be provided.")
		return nil, false
	case o.has("text"):
		list = o.members["text"][0] == '['
		return o.texts("text"), list
	}
	list = !o.decode("input_ids", &ids)
	return o.prompts("input_ids"), list
}

// samplingParams returns the sampling_params of each of n prompts: one object
// for all of them, or a list of n.
func (o *object) samplingParams(n int) []*object {
	const key = "sampling_params"
	params := make([]*object, n)
	var list []map[string]json.RawMessage
	if o.has(key) && o.decode(key, &list) {
		if len(list) != n {
			o.fail(key, "value_error", fmt.Sprintf("the number of sampling_params (%d) is not that of the prompts (%d)", len(list), n))
			return nil
		}
		for i := range params {
			params[i] = &object{members: list[i]}
		}
		return params
	}
	one := o.child(key)
	for i := range params {
		params[i] = one
	}
	return params
}

// sglIDs returns the ids of n prompts: the client's, or fresh ones.
func (x *exchange) sglIDs(n int) []string {
	given := x.rids()
	if len(given) == n {
		return given
	}
	ids := make([]string, n)
	for i := range ids {
		if len(given) == 1 {
			ids[i] = fmt.Sprintf("%s_%d", given[0], i)
		} else {
			ids[i] = x.id("")[:24] + fmt.Sprintf("%08x", i)
		}
	}
	return ids
}
