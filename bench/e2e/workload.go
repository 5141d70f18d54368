//go:build linux

package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// kind is what a scenario measures.
type kind string

const (
	kindPost   kind = "post"   // buffered answers, as fast as they come
	kindStream kind = "stream" // event streams, one after the other
	kindHold   kind = "hold"   // many event streams that stay open
)

// scenario is one load that every target is put under.
type scenario struct {
	Name  string
	Title string
	Kind  kind
	Conns int // clients, or open streams of kindHold
	Body  int // bytes of a request
	Want  want
	Each  time.Duration // how long a round puts a target under it
}

// want is what the engine is asked to answer, in the query of the target URI,
// which every proxy passes on.
type want struct {
	Events int           // 0: one JSON answer
	Pace   time.Duration // between two events
	Size   int           // of the JSON answer
}

const (
	kib        = 1 << 10
	answerSize = kib
)

// scenarios returns the loads, in the order of the report.
func scenarios(quick bool) []scenario {
	each, streamEach := 2*time.Second, 3*time.Second
	counts := []int{1000, 5000}
	if quick {
		each, streamEach = time.Second, time.Second
		counts = counts[:1]
	}
	var list []scenario
	for _, p := range []struct{ body, conns int }{
		{kib, 64},
		{16 * kib, 64},
		{128 * kib, 16},
		{220 * kib, 16},
		{4096 * kib, 4},
	} {
		list = append(list, scenario{
			Name: fmt.Sprintf("post-%s", size(p.body)), Kind: kindPost, Conns: p.conns, Body: p.body,
			Title: fmt.Sprintf("POST of %s, %d clients", sizeText(p.body), p.conns),
			Want:  want{Size: answerSize}, Each: each,
		})
	}
	const streams, rate = 64, 12000
	list = append(list,
		scenario{
			Name: "sse-unpaced", Kind: kindStream, Conns: 16, Body: kib, Want: want{Events: 500}, Each: streamEach,
			Title: "Event streams of 500 events, unpaced, 16 clients",
		},
		scenario{
			Name: "sse-paced", Kind: kindStream, Conns: streams, Body: kib, Each: streamEach,
			Want:  want{Events: 200, Pace: streams * time.Second / rate},
			Title: "Event streams of 200 events, paced to 12,000 events/s, 64 clients",
		})
	for _, n := range counts {
		list = append(list, scenario{
			Name: fmt.Sprintf("hold-%d", n), Kind: kindHold, Conns: n, Body: kib, Each: streamEach,
			Want:  want{Events: 600, Pace: time.Second},
			Title: fmt.Sprintf("%d open event streams, one event a second each", n),
		})
	}
	return list
}

func size(n int) string {
	if n >= 1024*kib {
		return strconv.Itoa(n/kib/kib) + "MiB"
	}
	return strconv.Itoa(n/kib) + "KiB"
}

func sizeText(n int) string {
	return strings.Replace(strings.Replace(size(n), "KiB", " KiB", 1), "MiB", " MiB", 1)
}

// target is the target URI that asks the engine for w.
func (w want) target() string {
	return fmt.Sprintf("/v1/chat/completions?events=%d&pace=%d&size=%d", w.Events, w.Pace, w.Size)
}

// parseWant reads what target has written.
func parseWant(target string) (w want, err error) {
	_, query, _ := strings.Cut(target, "?")
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		n, err := strconv.Atoi(value)
		if err != nil {
			return w, fmt.Errorf("malformed target %q", target)
		}
		switch name {
		case "events":
			w.Events = n
		case "pace":
			w.Pace = time.Duration(n)
		case "size":
			w.Size = n
		}
	}
	return w, nil
}

// model is the only one that the router serves.
const model = "bench"

// request returns the bytes of one request of s. The contract of the router
// that has one adds a member to the body and checks another.
func (s *scenario) request(host string) []byte {
	stream := s.Want.Events > 0
	head := fmt.Sprintf(`{"model":%q,"top_p":0.95,"stream":%t,"messages":[{"role":"user","content":"`, model, stream)
	const tail = `"}]}`
	words := strings.Repeat("lorem ipsum dolor ", max(s.Body-len(head)-len(tail), 0)/18+1)
	body := head + words[:max(s.Body-len(head)-len(tail), 0)] + tail
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"+
		"Authorization: Bearer 0123456789abcdef\r\nUser-Agent: bench-e2e\r\nAccept: */*\r\nContent-Length: %d\r\n\r\n%s",
		s.Want.target(), host, len(body), body)
}

// event is one event as an engine sends it. The last member is when it was sent,
// on the monotonic clock of the machine, in hexadecimal digits of a fixed number
// that appendEvent fills in.
const (
	eventHead = `data: {"id":"chatcmpl-0123456789","object":"chat.completion.chunk","created":1790000000,` +
		`"model":"bench","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}],"sent":"`
	eventTail = "\"}\n\n"
	stamp     = 16
	eventSize = len(eventHead) + stamp + len(eventTail)
	lastEvent = "data: [DONE]\n\n"
)

func appendEvent(dst []byte, sent int64) []byte {
	dst = append(dst, eventHead...)
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, "0123456789abcdef"[sent>>shift&15])
	}
	return append(dst, eventTail...)
}

// sentAt reads the time from an event with its blank line, or returns false
// where there is none.
func sentAt(event []byte) (int64, bool) {
	if len(event) != eventSize {
		return 0, false
	}
	var n int64
	for _, c := range event[len(eventHead) : len(eventHead)+stamp] {
		d := int64(c) - '0'
		if c >= 'a' {
			d = int64(c) - 'a' + 10
		}
		n = n<<4 | d&15
	}
	return n, true
}
