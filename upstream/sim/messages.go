package sim

import "net/http"

// message is the answer of Anthropic's POST /v1/messages.
type message struct {
	ID           string       `json:"id"`
	Type         string       `json:"type"`
	Role         string       `json:"role"`
	Model        string       `json:"model"`
	Content      []textBlock  `json:"content"`
	StopReason   *string      `json:"stop_reason"`
	StopSequence *string      `json:"stop_sequence"`
	Usage        messageUsage `json:"usage"`
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type messageUsage struct {
	Input         int `json:"input_tokens"`
	CacheCreation int `json:"cache_creation_input_tokens"`
	CacheRead     int `json:"cache_read_input_tokens"`
	Output        int `json:"output_tokens"`
}

// messages is Anthropic's POST /v1/messages.
func (x *exchange) messages() {
	o := x.obj
	prompt := o.content("system") + "\n" + o.conversation("messages")
	o.need("model")
	o.need("max_tokens")
	o.sampling()
	limit, stops, stream := o.positive("max_tokens"), o.texts("stop_sequences"), o.flag("stream", false)
	m := &message{ID: x.id("msg_"), Type: "message", Role: "assistant", Model: x.model(), Content: []textBlock{}}
	x.valid()
	g := x.generate([]string{prompt}, 1, limit, stops)
	m.Usage = messageUsage{Input: g.prompt - g.cached, CacheRead: g.cached}
	if stream {
		x.streamMessage(g, m)
		return
	}
	x.run(g, nil)
	m.finish(g)
	m.Content = []textBlock{{"text", g.choices[0].text()}}
	x.replyJSON(http.StatusOK, m)
}

// finish fills in how g has ended.
func (m *message) finish(g *generation) {
	c := &g.choices[0]
	reason := "end_turn"
	switch {
	case c.finish == finishLength:
		reason = "max_tokens"
	case c.matched != "":
		reason = "stop_sequence"
		m.StopSequence = &c.matched
	}
	m.StopReason = &reason
	m.Usage.Output = g.completion()
}

// messageEvent is any event of a streamed message; each type has some of the
// members.
type messageEvent struct {
	Type         string        `json:"type"`
	Message      *message      `json:"message,omitempty"`
	Index        *int          `json:"index,omitempty"`
	ContentBlock *textBlock    `json:"content_block,omitempty"`
	Delta        any           `json:"delta,omitempty"`
	Usage        *messageUsage `json:"usage,omitempty"`
}

func (x *exchange) streamMessage(g *generation, m *message) {
	s := x.stream()
	send := func(e messageEvent) { s.event(e.Type, e) }
	zero := 0
	m.Usage.Output = 1
	send(messageEvent{Type: "message_start", Message: m})
	send(messageEvent{Type: "content_block_start", Index: &zero, ContentBlock: &textBlock{Type: "text"}})
	send(messageEvent{Type: "ping"})
	x.run(g, func(_, i int) {
		send(messageEvent{Type: "content_block_delta", Index: &zero, Delta: textBlock{"text_delta", g.choices[0].tokens[i]}})
	})
	send(messageEvent{Type: "content_block_stop", Index: &zero})
	m.finish(g)
	send(messageEvent{Type: "message_delta", Delta: map[string]*string{
		"stop_reason": m.StopReason, "stop_sequence": m.StopSequence,
	}, Usage: &m.Usage})
	send(messageEvent{Type: "message_stop"})
	x.whole = true
}
