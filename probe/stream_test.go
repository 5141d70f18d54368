package probe

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
)

// seen is what a Stream says, without its buffers.
type seen struct {
	Events                  int
	Done, Failed, UsageOnly bool
	Usage                   Usage
}

func (s *Stream) seen() seen {
	return seen{s.Events, s.Done, s.Failed, s.UsageOnly, s.Usage}
}

// streamCase is a stream, with LF line ends, and what is seen in it.
type streamCase struct {
	name    string
	surface Surface
	text    string
	want    seen
}

func usage(prompt, cached, completion int64, finish string) Usage {
	return Usage{PromptTokens: prompt, CachedPromptTokens: cached, CompletionTokens: completion, Seen: true, Finish: finish}
}

var streamCases = []streamCase{
	{"chat", SurfaceChat, `data: {"id":"1","choices":[{"delta":{"role":"assistant"},"finish_reason":null}],"usage":null}

data: {"id":"1","choices":[{"delta":{"content":"\"usage\": {\"prompt_tokens\":9}"},"finish_reason":null}]}

data: {"id":"1","choices":[{"delta":{},"finish_reason":"stop"}]}

data: {"id":"1","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10,"prompt_tokens_details":{"cached_tokens":4}}}

data: [DONE]

`, seen{5, true, false, false, usage(7, 4, 3, "stop")}},
	{"chat, usage last", SurfaceChat, `data: {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}

`, seen{1, false, false, true, usage(7, 0, 3, "")}},
	{"chat, continuous usage", SurfaceChat, `data: {"choices":[{}],"usage":{"prompt_tokens":7,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":4}}}

data: {"choices":[{}],"usage":{"prompt_tokens":7,"completion_tokens":2,"prompt_tokens_details":null}}

data: {"choices":[{"finish_reason":"length"}],"usage":null}

data:[DONE]

`, seen{4, true, false, false, usage(7, 0, 2, "length")}},
	{"completions", SurfaceCompletions, `data: {"choices":[{"text":"a","finish_reason":"weird"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}

data: [DONE]

`, seen{2, true, false, false, usage(1, 0, 2, "other")}},
	{"messages", SurfaceMessages, `event: message_start
data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":25,"cache_read_input_tokens":5,"output_tokens":1}}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"message_stop"}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":15}}

event: message_stop
data: {"type":"message_stop"}

`, seen{5, true, false, false, usage(25, 5, 15, "end_turn")}},
	{"messages without names", SurfaceMessages, `data: {"message":{"usage":{"input_tokens":25}},"type":"message_start"}

data: {"type":"message_delta","usage":{"output_tokens":15}}

data: {"type":"message_stop"}

`, seen{3, true, false, false, usage(25, 0, 15, "")}},
	{"messages, error", SurfaceMessages, `event: error
data: {"type":"error","error":{"type":"overloaded_error"}}

`, seen{1, false, true, false, Usage{}}},
	{"responses", SurfaceResponses, `event: response.created
data: {"type":"response.created","response":{"status":"in_progress","usage":null,"error":null}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","delta":"x"}

event: response.completed
data: {"response":{"status":"completed","error":null,"usage":{"input_tokens":11,"input_tokens_details":{"cached_tokens":2},"output_tokens":6}},"type":"response.completed"}

`, seen{3, true, false, false, usage(11, 2, 6, "completed")}},
	{"responses without names", SurfaceResponses, `data: {"response":{"status":"incomplete","usage":{"input_tokens":11,"output_tokens":6}},"type":"response.incomplete"}

`, seen{1, true, false, false, usage(11, 0, 6, "incomplete")}},
	{"responses, failed", SurfaceResponses, `event: response.failed
data: {"response":{"status":"failed","error":{"code":"server_error"}},"type":"response.failed"}

`, seen{1, true, true, false, Usage{Finish: "failed"}}},
	{"generate", SurfaceGenerate, `data: {"text":"a","meta_info":{"id":"x","finish_reason":null,"prompt_tokens":5,"completion_tokens":1,"cached_tokens":3}}

data: {"text":"ab","meta_info":{"id":"x","finish_reason":{"type":"length","length":2},"prompt_tokens":5,"completion_tokens":2,"cached_tokens":3}}

data: [DONE]

`, seen{3, true, false, false, usage(5, 3, 2, "length")}},
	{"B32: no space, multi-byte", SurfaceChat, `data:{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2},"x":"é€😀"}

data:[DONE]

`, seen{2, true, false, false, usage(1, 0, 2, "")}},
	{"B32: odd events", SurfaceChat, `data: 

data

event: ping

data: 42

data: "usage"

data: {"usage":

id: 1
retry: 10
data: [DONE]

`, seen{6, true, false, false, Usage{}}},
	{"B33: comments", SurfaceChat, `: OPENROUTER PROCESSING

:data: {"error":{}}

: "usage"
`, seen{}},
	{"B42: error object", SurfaceChat, `data: {"error":{"code":502}}

`, seen{1, false, true, false, Usage{}}},
	{"B42: error string", SurfaceCompletions, `data: {"error":"boom"}

`, seen{1, false, true, false, Usage{}}},
	{"B42: event error", SurfaceChat, `event: error
data: oops

`, seen{1, false, true, false, Usage{}}},
	{"B42: event error alone", SurfaceChat, `event: error

`, seen{0, false, true, false, Usage{}}},
	{"vLLM's flat error", SurfaceChat, `data: {"object":"error","message":"m"}

`, seen{1, false, true, false, Usage{}}},
	{"no error", SurfaceChat, `data: {"error":null,"choices":[{"delta":{"content":"\"error\":{}"},"x":{"error":"y"}}]}

event:error2
data: {"error":false}

`, seen{2, false, false, false, Usage{}}},
	{"B39: broken off", SurfaceChat, `data: {"choices":[{"delta":{"content":"x"}}]}

data: {"choices":[{"delta":{"content"`, seen{2, false, false, false, Usage{}}},
	{"end without an empty line", SurfaceChat, `data: {"choices":[{"finish_reason":"stop"}]}

data: [DONE]`, seen{2, true, false, false, Usage{Finish: "stop"}}},
	{"data over several lines", SurfaceChat, `data: {
data:   "choices": [],
: comment
data:   "usage": {"prompt_tokens": 1,
data: "completion_tokens": 2}
data: }

`, seen{1, false, false, true, usage(1, 0, 2, "")}},
	{"insane numbers", SurfaceChat, `data: {"choices":[],"usage":{"prompt_tokens":-1,"completion_tokens":1.5}}

data: {"choices":[],"usage":{"prompt_tokens":1e30,"completion_tokens":"5","total_tokens":9}}

`, seen{2, false, false, false, Usage{}}},
	{"names of other surfaces", SurfaceChat, `event: message_stop
data: {"type":"response.completed","response":{"usage":{"input_tokens":1}},"message":{"usage":{"input_tokens":1}},"meta_info":{"prompt_tokens":1}}

`, seen{1, false, false, false, Usage{}}},
	{"escaped keys", SurfaceGenerate, `data: {"meta\u005finfo":{"prompt\u005ftokens":1},"\u0065rror":"x"}

`, seen{1, false, true, false, usage(1, 0, 0, "")}},
	{"byte order mark", SurfaceChat, "\uFEFFdata: [DONE]\n\n", seen{1, true, false, false, Usage{}}},
	{"byte order mark in the middle", SurfaceChat, "\n\uFEFFdata: [DONE]\n\n", seen{}},
	{"empty", SurfaceChat, "", seen{}},
	{"empty lines", SurfaceChat, "\n\n\n", seen{}},
	{"other fields", SurfaceChat, "Data: x\n\ndatax: y\n\n data: z\n\ndat: \n\na-very-long-field-name: data: x\n\n", seen{}},
}

// lineEnds gives text other line ends: kind 0 LF, 1 CRLF, 2 CR, 3 a mix. A CR
// directly before an LF would be one line end of two, so that the mix never has
// them in that order.
func lineEnds(text string, kind int, rnd *rand.Rand) string {
	var b strings.Builder
	last := ""
	for _, r := range text {
		if r != '\n' {
			b.WriteRune(r)
			last = ""
			continue
		}
		end := []string{"\n", "\r\n", "\r"}[kind%3]
		if kind == 3 {
			end = []string{"\n", "\r\n", "\r"}[rnd.Intn(3)]
			if last == "\r" && end == "\n" {
				end = "\r\n"
			}
		}
		b.WriteString(end)
		last = end
	}
	return b.String()
}

// forms calls f with every case in every kind of line end.
func streamForms(f func(name string, c streamCase, text string)) {
	rnd := rand.New(rand.NewSource(1))
	for _, c := range streamCases {
		for kind, name := range []string{"LF", "CRLF", "CR", "mixed"} {
			f(c.name+"/"+name, c, lineEnds(c.text, kind, rnd))
		}
	}
}

func TestStream(t *testing.T) {
	streamForms(func(name string, c streamCase, text string) {
		var s Stream
		s.Reset(c.surface)
		s.Feed([]byte(text))
		s.End()
		if got := s.seen(); got != c.want {
			t.Errorf("unexpected result of %s\n got %+v\nwant %+v", name, got, c.want)
		}
	})
}

// TestB35_EverySplit also covers B30: the split behind a CR is among them.
func TestB35_EverySplit(t *testing.T) {
	var s Stream
	streamForms(func(name string, c streamCase, text string) {
		feed := func(parts ...string) {
			t.Helper()
			s.Reset(c.surface)
			buf := make([]byte, len(text))
			for _, part := range parts {
				n := copy(buf, part)
				s.Feed(buf[:n])
				for i := range buf[:n] {
					buf[i] = '#' // Feed must not have kept it
				}
			}
			s.End()
			if got := s.seen(); got != c.want {
				lens := []int{}
				for _, p := range parts {
					lens = append(lens, len(p))
				}
				t.Fatalf("unexpected result of %s, parts of %d bytes\n got %+v\nwant %+v", name, lens, got, c.want)
			}
		}
		for i := range len(text) {
			feed(text[:i], text[i:])
			feed(text[:i], "", text[i:min(i+1, len(text))], text[min(i+1, len(text)):])
			feed(text[:i], text[i:min(i+7, len(text))], text[min(i+7, len(text)):])
		}
		feed(strings.Split(text, "")...)
	})
}

func TestB30_SplitBehindCR(t *testing.T) {
	var s Stream
	s.Reset(SurfaceChat)
	for _, part := range []string{"data: A\r", "\ndata: B\r\n", "\r\n"} {
		s.Feed([]byte(part))
	}
	if s.Events != 1 {
		t.Errorf("unexpected number of events over a split CRLF; got %d; want 1", s.Events)
	}
	s.Reset(SurfaceChat)
	s.Feed([]byte("data: A\r\rdata: B\r\r"))
	if s.Events != 2 {
		t.Errorf("unexpected number of events with CR alone; got %d; want 2", s.Events)
	}
}

func TestB36_OversizedLine(t *testing.T) {
	for _, size := range []int{65_537, MaxEvent - 100, MaxEvent, MaxEvent + 1, 8 << 20} {
		text := `data: {"choices":[{"delta":{"content":"` + strings.Repeat("x", size) + `"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}` +
			"\n\n" + `data: {"choices":[],"usage":{"prompt_tokens":2,"completion_tokens":3}}` + "\n\n"
		first, want := usage(1, 0, 1, ""), usage(2, 0, 3, "")
		if strings.Index(text, "\n") > MaxEvent {
			first = Usage{}
		}
		for _, step := range []int{len(text), 4096, 65_536, 1_000_003} {
			var s Stream
			s.Reset(SurfaceChat)
			for rest := text; len(rest) > 0; {
				n := min(step, len(rest))
				s.Feed([]byte(rest[:n]))
				rest = rest[n:]
				if got := cap(s.line) + cap(s.data); got > 4*MaxEvent {
					t.Fatalf("unexpected buffers for a line of %d bytes: %d bytes", size, got)
				}
				if s.Events == 1 && s.Usage != first {
					t.Fatalf("unexpected usage after a line of %d bytes in steps of %d; got %+v; want %+v", size, step, s.Usage, first)
				}
			}
			if s.Events != 2 || s.Usage != want || !s.UsageOnly {
				t.Fatalf("unexpected result for a line of %d bytes in steps of %d: %+v", size, step, s.seen())
			}
			if cap(s.line)+cap(s.data) > 2*keepEvent {
				t.Fatalf("unexpected buffers kept after a line of %d bytes: %d bytes", size, cap(s.line)+cap(s.data))
			}
		}
	}
}

func TestStreamOversizedOther(t *testing.T) {
	long := strings.Repeat("x", MaxEvent+1)
	for _, line := range []string{": " + long, "event: " + long, "id: " + long, long} {
		for _, step := range []int{1 << 21, 5000} {
			var s Stream
			s.Reset(SurfaceChat)
			for rest := line + "\n\ndata: [DONE]\n\n"; len(rest) > 0; {
				n := min(step, len(rest))
				s.Feed([]byte(rest[:n]))
				rest = rest[n:]
			}
			if s.Events != 1 || !s.Done {
				t.Errorf("unexpected result after the line %.10q…: %+v", line, s.seen())
			}
		}
	}
	// The data of one event over many lines.
	var s Stream
	s.Reset(SurfaceChat)
	for range MaxEvent/1000 + 10 {
		s.Feed([]byte("data: " + long[:1000] + "\n"))
		if cap(s.data) > 2*MaxEvent {
			t.Fatalf("unexpected buffer: %d bytes", cap(s.data))
		}
	}
	s.Feed([]byte("\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":2,\"completion_tokens\":3}}\n\n"))
	if s.Events != 2 || s.Usage != usage(2, 0, 3, "") {
		t.Errorf("unexpected result: %+v", s.seen())
	}
}

func TestStreamNext(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", "\r"} {
		events := []string{
			": x\n\ndata: 1\n\n", "data: 2\n\n", "event: e\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\n", "data: [DONE]\n\n",
		}
		for i := range events {
			events[i] = strings.ReplaceAll(events[i], "\n", end)
		}
		rest := []byte(strings.Join(events, "") + "data: unfinished")
		var s Stream
		s.Reset(SurfaceChat)
		for i, want := range events {
			n, event := s.Next(rest)
			if !event || string(rest[:n]) != want {
				t.Fatalf("unexpected event %d; got %q; want %q", i, rest[:n], want)
			}
			if s.UsageOnly != (i == 2) {
				t.Fatalf("unexpected UsageOnly at event %d: %v", i, s.UsageOnly)
			}
			rest = rest[n:]
		}
		if n, event := s.Next(rest); event || n != len(rest) {
			t.Fatalf("unexpected event at the end: %d, %v", n, event)
		}
	}
}

func TestStreamReset(t *testing.T) {
	var s Stream
	s.Reset(SurfaceChat)
	s.Feed([]byte("data: {\"error\":{}}\n\ndata: [DONE]\n\nevent: error\ndata: x\r"))
	s.Reset(SurfaceChat)
	if got := s.seen(); got != (seen{}) {
		t.Fatalf("unexpected result after Reset: %+v", got)
	}
	s.Feed([]byte("\n\uFEFFdata: x\n\n")) // no BOM in the second line
	if got := s.seen(); got != (seen{}) {
		t.Fatalf("unexpected result after Reset: %+v", got)
	}
}

func TestReadUsage(t *testing.T) {
	f := func(body string, surface Surface, want Usage, ok bool) {
		t.Helper()
		got, gotOK := ReadUsage([]byte(body), surface)
		if got != want || gotOK != ok {
			t.Errorf("unexpected usage of %s; got %+v, %v; want %+v, %v", body, got, gotOK, want, ok)
		}
	}
	f(`{"choices":[{"message":{"content":"x"},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2}} `, SurfaceChat, usage(1, 0, 2, "tool_calls"), true)
	f("\xef\xbb\xbf{\"usage\":{\"prompt_tokens\":1,\"total_tokens\":1}}", SurfaceEmbeddings, usage(1, 0, 0, ""), true)
	f(`{"content":[],"stop_reason":"max_tokens","usage":{"input_tokens":3,"cache_read_input_tokens":1,"output_tokens":4}}`, SurfaceMessages, usage(3, 1, 4, "max_tokens"), true)
	f(`{"status":"completed","usage":{"input_tokens":3,"output_tokens":4,"input_tokens_details":{"cached_tokens":2}}}`, SurfaceResponses, usage(3, 2, 4, "completed"), true)
	f(`{"text":"x","meta_info":{"finish_reason":{"type":"stop","matched":2},"prompt_tokens":3,"completion_tokens":4,"cached_tokens":1}}`, SurfaceGenerate, usage(3, 1, 4, "stop"), true)
	f(` [{"meta_info":{"prompt_tokens":3,"completion_tokens":4}},{"meta_info":{"finish_reason":{"type":"abort"},"prompt_tokens":5,"completion_tokens":6,"cached_tokens":1}}]`, SurfaceGenerate, usage(8, 1, 10, "abort"), true)
	f(`[{"usage":{"prompt_tokens":1}}]`, SurfaceChat, Usage{}, false)
	f(`{"usage":{"prompt_tokens":1}`, SurfaceChat, Usage{}, false)
	f(`{"usage":{"prompt_tokens":1}} x`, SurfaceChat, Usage{}, false)
	f(`[{"meta_info":{"prompt_tokens":1}}`, SurfaceGenerate, Usage{}, false)
	f(`{"usage":null}`, SurfaceChat, Usage{}, false)
	f(`{"usage":{}}`, SurfaceChat, Usage{}, false)
	f(`{"usage":[1]}`, SurfaceChat, Usage{}, false)
	f(`{"usage":{"prompt_tokens":true}}`, SurfaceChat, Usage{}, false)
	f(`{"x":{"usage":{"prompt_tokens":1}}}`, SurfaceChat, Usage{}, false)
	f(`{,}`, SurfaceChat, Usage{}, false)
	f(``, SurfaceGenerate, Usage{}, false)
	f(`oops`, SurfaceChat, Usage{}, false)
}

func TestFinishWords(t *testing.T) {
	for _, word := range []string{
		"stop", "length", "tool_calls", "function_call", "content_filter", "abort", "end_turn", "max_tokens",
		"stop_sequence", "tool_use", "refusal", "pause_turn", "completed", "incomplete", "failed", "cancelled",
	} {
		body := fmt.Sprintf(`{"usage":{"prompt_tokens":1},"choices":[{"finish_reason":null},{"finish_reason":%q}]}`, word)
		if got, _ := ReadUsage([]byte(body), SurfaceChat); got.Finish != word {
			t.Errorf("unexpected finish; got %q; want %q", got.Finish, word)
		}
	}
}
