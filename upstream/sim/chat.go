package sim

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// usage is the token count of vLLM, SGLang and OpenAI.
type usage struct {
	Prompt          int            `json:"prompt_tokens"`
	Total           int            `json:"total_tokens"`
	Completion      int            `json:"completion_tokens"`
	PromptDetails   *cachedTokens  `json:"prompt_tokens_details"`
	ReasoningTokens *reasoningUsed `json:"completion_tokens_details,omitempty"`
}

type cachedTokens struct {
	Cached int `json:"cached_tokens"`
}

type reasoningUsed struct {
	Reasoning int `json:"reasoning_tokens"`
}

func (x *exchange) usage(g *generation, completion int) *usage {
	u := &usage{Prompt: g.prompt, Completion: completion, Total: g.prompt + completion, PromptDetails: &cachedTokens{g.cached}}
	if x.p.Flavour == OpenAI {
		u.ReasoningTokens = &reasoningUsed{}
	}
	return u
}

// completionMeta is what chat and text completions have in common, whole and
// streamed.
type completionMeta struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
}

// ending says why a choice has ended. SGLang calls the stop string matched_stop,
// vLLM stop_reason, and OpenAI does not tell it.
type ending struct {
	Logprobs     json.RawMessage `json:"logprobs"`
	FinishReason *string         `json:"finish_reason"`
	StopReason   json.RawMessage `json:"stop_reason,omitempty"`
	MatchedStop  json.RawMessage `json:"matched_stop,omitempty"`
}

var null = json.RawMessage("null")

// open is the ending of a choice that goes on.
func (x *exchange) open() ending {
	e := ending{Logprobs: null}
	if x.p.Flavour == SGLang {
		e.MatchedStop = null
	}
	return e
}

func (x *exchange) ending(c *choice) ending {
	e := ending{Logprobs: null, FinishReason: &c.finish}
	matched := null
	if c.matched != "" {
		matched = marshal(c.matched)
	}
	switch x.p.Flavour {
	case VLLM:
		e.StopReason = matched
	case SGLang:
		e.MatchedStop = matched
	}
	return e
}

type chatAnswer struct {
	completionMeta
	Choices           []chatChoice    `json:"choices"`
	ServiceTier       json.RawMessage `json:"service_tier"`
	SystemFingerprint json.RawMessage `json:"system_fingerprint"`
	Usage             *usage          `json:"usage"`
}

type chatChoice struct {
	Index   int         `json:"index"`
	Message chatMessage `json:"message"`
	ending
}

type chatMessage struct {
	Role             string          `json:"role"`
	Content          string          `json:"content"`
	Refusal          json.RawMessage `json:"refusal"`
	ReasoningContent json.RawMessage `json:"reasoning_content,omitempty"`
}

type chatChunk struct {
	completionMeta
	Choices []chatDelta `json:"choices"`
	Usage   *usage      `json:"usage,omitempty"`
}

type chatDelta struct {
	Index int       `json:"index"`
	Delta deltaText `json:"delta"`
	ending
}

type deltaText struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

// chat is POST /v1/chat/completions.
func (x *exchange) chat() {
	o := x.obj
	prompt := o.conversation("messages")
	o.sampling()
	limit := o.positive("max_tokens")
	if n := o.positive("max_completion_tokens"); n > 0 {
		limit = n
	}
	stops, n, stream := o.texts("stop"), o.integer("n", 1), o.flag("stream", false)
	usage := x.streamUsage(stream)
	meta := completionMeta{x.answerID("chatcmpl-"), "chat.completion", time.Now().Unix(), x.model()}
	x.valid()
	g := x.generate([]string{prompt}, n, limit, stops)
	if stream {
		meta.Object = "chat.completion.chunk"
		x.streamChat(g, meta, usage)
		return
	}
	x.run(g, nil)
	a := chatAnswer{completionMeta: meta, ServiceTier: null, SystemFingerprint: null, Usage: x.usage(g, g.completion())}
	for i := range g.choices {
		c := &g.choices[i]
		m := chatMessage{Role: "assistant", Content: c.text(), Refusal: null}
		if x.p.Flavour != OpenAI {
			m.ReasoningContent = null
		}
		a.Choices = append(a.Choices, chatChoice{i, m, x.ending(c)})
	}
	x.replyJSON(http.StatusOK, a)
}

func (x *exchange) streamChat(g *generation, meta completionMeta, want usageWanted) {
	s := x.stream()
	chunk := func(index int, d deltaText, e ending, done int) {
		c := chatChunk{completionMeta: meta, Choices: []chatDelta{{index, d, e}}}
		if want.always {
			c.Usage = x.usage(g, done)
		}
		s.data(c)
	}
	empty := ""
	for i := range g.choices {
		chunk(i, deltaText{Role: "assistant", Content: &empty}, x.open(), 0)
	}
	done := 0
	x.run(g, func(index, i int) {
		done++
		chunk(index, deltaText{Content: &g.choices[index].tokens[i]}, x.open(), done)
	})
	for i := range g.choices {
		chunk(i, deltaText{}, x.ending(&g.choices[i]), done)
	}
	if want.last {
		s.data(chatChunk{meta, []chatDelta{}, x.usage(g, done)})
	}
	s.end()
}

// usageWanted is what stream_options asks for.
type usageWanted struct {
	last   bool // include_usage: in an event of its own before [DONE]
	always bool // continuous_usage_stats: in every event
}

// streamUsage reads stream_options, which vLLM and OpenAI allow in streams only.
func (x *exchange) streamUsage(stream bool) usageWanted {
	const key = "stream_options"
	if x.obj.has(key) && !stream && x.p.Flavour != SGLang && x.obj.err == nil {
		x.obj.err = badRequest(key, "Stream options can only be defined when `stream=True`.")
	}
	options := x.obj.child(key)
	w := usageWanted{last: options.flag("include_usage", false), always: options.flag("continuous_usage_stats", false)}
	w.always = w.always && w.last
	x.obj.adopt(options)
	return w
}

// answerID names an answer: after the client's rid (SGLang), after its
// X-Request-Id (vLLM), or freely.
func (x *exchange) answerID(prefix string) string {
	if rids := x.rids(); x.p.Flavour == SGLang && len(rids) > 0 {
		return rids[0]
	}
	if id := x.r.Header.Get("X-Request-Id"); x.p.Flavour == VLLM && id != "" {
		return prefix + id
	}
	return x.id(prefix)
}

// conversation renders a list of messages as the prompt that a chat template
// would make of it.
func (o *object) conversation(key string) string {
	o.need(key)
	var list []json.RawMessage
	if o.has(key) && !o.decode(key, &list) {
		o.fail(key, "list_type", "Input should be a valid list")
	}
	var s strings.Builder
	for _, raw := range list {
		m := &object{}
		if json.Unmarshal(raw, &m.members) != nil {
			o.fail(key, "dict_type", "Input should be a valid dictionary")
			continue
		}
		m.need("role")
		s.WriteString(m.text("role"))
		s.WriteByte('\n')
		s.WriteString(m.content("content"))
		s.WriteByte('\n')
		o.adopt(m)
	}
	s.WriteString("assistant\n")
	return s.String()
}

// content returns the text of a member that is a string or a list of parts.
// Parts that are not text stand for one word.
func (o *object) content(key string) string {
	var text string
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	switch {
	case !o.has(key), o.decode(key, &text):
		return text
	case !o.decode(key, &parts):
		o.fail(key, "string_type", "Input should be a valid string or list of parts")
	}
	var s strings.Builder
	for _, p := range parts {
		if p.Text == "" {
			p.Text = " <" + p.Type + ">"
		}
		s.WriteString(p.Text)
	}
	return s.String()
}
