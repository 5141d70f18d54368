package sim

import "strings"

// tokenize is POST /tokenize (vLLM) and /v1/tokenize (SGLang). Both take a prompt
// or messages; SGLang takes lists of prompts and answers in lists.
func (x *exchange) tokenize() {
	o := x.obj
	sglang := strings.HasPrefix(x.r.URL.Path, "/v1/")
	var prompts []string
	if o.has("messages") {
		prompts = []string{o.conversation("messages")}
	} else {
		o.need("prompt")
		prompts = o.texts("prompt")
	}
	strs := o.flag("return_token_strs", false)
	x.model()
	list := sglang && o.has("prompt") && o.members["prompt"][0] == '['
	if len(prompts) != 1 && !list {
		o.fail("prompt", "string_type", "Input should be a valid string")
	}
	x.valid()
	if list {
		x.tokenizeList(prompts)
		return
	}
	tokens := tokenize(prompts[0])
	a := struct {
		Count       int      `json:"count"`
		MaxModelLen int      `json:"max_model_len"`
		Tokens      []int64  `json:"tokens"`
		Strings     []string `json:"token_strs,omitempty"`
	}{len(tokens), x.p.window(), tokenIDs(tokens), nil}
	if strs {
		a.Strings = tokens
	}
	x.replyPadded(a)
}

func (x *exchange) tokenizeList(prompts []string) {
	a := struct {
		Tokens      [][]int64 `json:"tokens"`
		Count       []int     `json:"count"`
		MaxModelLen int       `json:"max_model_len"`
	}{[][]int64{}, []int{}, x.p.window()}
	for _, p := range prompts {
		ids := tokenIDs(tokenize(p))
		a.Tokens, a.Count = append(a.Tokens, ids), append(a.Count, len(ids))
	}
	x.replyPadded(a)
}

// detokenize is POST /detokenize (vLLM: "prompt") and /v1/detokenize (SGLang:
// "text", a list for a list of lists).
func (x *exchange) detokenize() {
	o := x.obj
	o.need("tokens")
	var ids []int64
	var lists [][]int64
	one := o.decode("tokens", &ids)
	if !one && !o.decode("tokens", &lists) {
		o.fail("tokens", "list_type", "Input should be a valid list of integers")
	}
	x.model()
	sglang := strings.HasPrefix(x.r.URL.Path, "/v1/")
	if !one && !sglang {
		o.fail("tokens", "int_type", "Input should be a valid integer")
	}
	x.valid()
	switch {
	case !sglang:
		x.replyPadded(map[string]string{"prompt": detokenize(ids)})
	case one:
		x.replyPadded(map[string]string{"text": detokenize(ids)})
	default:
		texts := make([]string, len(lists))
		for i, ids := range lists {
			texts[i] = detokenize(ids)
		}
		x.replyPadded(map[string][]string{"text": texts})
	}
}
