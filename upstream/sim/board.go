package sim

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Outcome is how a request ended.
type Outcome string

// The outcomes.
const (
	// InFlight: not ended yet.
	InFlight Outcome = "in_flight"
	// Completed: the whole answer was written, whatever its status.
	Completed Outcome = "completed"
	// Cancelled: the client went away before the answer was whole.
	Cancelled Outcome = "cancelled"
	// Aborted: ended early by POST /abort_request; the client got that answer.
	Aborted Outcome = "aborted"
	// Failed: broken off by the engine on purpose, or by Close.
	Failed Outcome = "failed"
)

// Field is one header field.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Request is one request as the engine received it.
type Request struct {
	// Seq counts the requests of this engine from 1.
	Seq  uint64
	Time time.Time
	// Proto is "HTTP/1.1" or "HTTP/2.0".
	Proto  string
	Method string
	// Target is the request target, byte for byte as it came.
	Target string
	// Path is the decoded path.
	Path string
	// Header is in the order and spelling in which it came on HTTP/1.1, Host
	// included. On h2c, where net/http does not tell, it is sorted by name.
	Header []Field
	// Body holds the first Options.KeepBody bytes.
	Body []byte
	// Size and SHA256 (hex) are of the whole body.
	Size   int64
	SHA256 string
	// Remote is the address of the peer; a client connection has one.
	Remote string
	// Status is what was answered, 0 before the head.
	Status  int
	Outcome Outcome
}

// Get returns the first value of the header field name, in any case, or "".
func (r *Request) Get(name string) string {
	for _, f := range r.Header {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// MarshalJSON writes the request with its body as a string ("body") when the
// kept part is UTF-8, else in base64 ("body_base64").
func (r Request) MarshalJSON() ([]byte, error) {
	v := struct {
		Seq        uint64  `json:"seq"`
		Time       string  `json:"time"`
		Proto      string  `json:"proto"`
		Method     string  `json:"method"`
		Target     string  `json:"target"`
		Headers    []Field `json:"headers"`
		Body       *string `json:"body,omitempty"`
		BodyBase64 *string `json:"body_base64,omitempty"`
		Size       int64   `json:"body_size"`
		Truncated  bool    `json:"body_truncated"`
		SHA256     string  `json:"body_sha256"`
		Remote     string  `json:"remote"`
		Status     int     `json:"status"`
		Outcome    Outcome `json:"outcome"`
	}{
		Seq: r.Seq, Time: r.Time.UTC().Format(time.RFC3339Nano), Proto: r.Proto, Method: r.Method, Target: r.Target,
		Headers: r.Header, Size: r.Size, Truncated: int64(len(r.Body)) < r.Size, SHA256: r.SHA256,
		Remote: r.Remote, Status: r.Status, Outcome: r.Outcome,
	}
	body := string(r.Body)
	if utf8.Valid(r.Body) {
		v.Body = &body
	} else {
		body = base64.StdEncoding.EncodeToString(r.Body)
		v.BodyBase64 = &body
	}
	return json.Marshal(v)
}

// newRequest describes r, whose whole body is body and whose head came as head,
// if that is not nil.
func newRequest(seq uint64, r *http.Request, head, body []byte, keep int) *Request {
	sum := sha256.Sum256(body)
	return &Request{
		Seq: seq, Time: time.Now(), Proto: r.Proto, Method: r.Method, Target: r.RequestURI, Path: r.URL.Path,
		Header: headerOf(r, head), Body: slices.Clone(body[:min(keep, len(body))]), Size: int64(len(body)),
		SHA256: hex.EncodeToString(sum[:]), Remote: r.RemoteAddr, Outcome: InFlight,
	}
}

func headerOf(r *http.Request, head []byte) []Field {
	if head != nil {
		return parseHead(head)
	}
	fields := []Field{{Name: "host", Value: r.Host}}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		for _, v := range r.Header[name] {
			fields = append(fields, Field{Name: strings.ToLower(name), Value: v})
		}
	}
	return fields
}

// Stats are the counts of an engine.
type Stats struct {
	// Requests counts all but those to /sim/.
	Requests int `json:"requests"`
	InFlight int `json:"in_flight"`
	// The four ways to end; see Outcome.
	Completed int `json:"completed"`
	Cancelled int `json:"cancelled"`
	Aborted   int `json:"aborted"`
	Failed    int `json:"failed"`
	// Connections counts the accepted connections.
	Connections int `json:"connections"`
	// ByPath counts requests by path, those to unknown paths under "other".
	ByPath map[string]int `json:"by_path"`
	// ByProto counts requests by protocol.
	ByProto map[string]int `json:"by_proto"`
}

// board is what the engine shows: the latest requests and the counts. Safe for
// concurrent use after init.
type board struct {
	mu      sync.Mutex
	ring    []*Request // the latest, oldest at next when full
	next    int
	counts  Stats
	changed chan struct{} // closed and replaced when a count changes
}

func (b *board) init(history int) {
	b.ring = make([]*Request, 0, history)
	b.changed = make(chan struct{})
	b.counts = Stats{ByPath: map[string]int{}, ByProto: map[string]int{}}
}

func (b *board) changedLocked() {
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *board) connected() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts.Connections++
	b.changedLocked()
}

// begin shows a request. From here on its Status and Outcome are b's.
func (b *board) begin(r *Request, route string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.ring) < cap(b.ring) {
		b.ring = append(b.ring, r)
	} else {
		b.ring[b.next] = r
		b.next = (b.next + 1) % len(b.ring)
	}
	b.counts.Requests++
	b.counts.InFlight++
	b.counts.ByPath[route]++
	b.counts.ByProto[r.Proto]++
	b.changedLocked()
}

// status notes what is answered to r.
func (b *board) status(r *Request, status int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.Status = status
}

// end notes how r ended.
func (b *board) end(r *Request, o Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.Outcome = o
	b.counts.InFlight--
	switch o {
	case Completed:
		b.counts.Completed++
	case Cancelled:
		b.counts.Cancelled++
	case Aborted:
		b.counts.Aborted++
	case Failed:
		b.counts.Failed++
	default:
		panic(fmt.Sprintf("BUG: a request ended as %q", o))
	}
	b.changedLocked()
}

func (b *board) requests() []Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]Request, 0, len(b.ring))
	for i := range b.ring {
		list = append(list, *b.ring[(b.next+i)%len(b.ring)])
	}
	return list
}

func (b *board) stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.statsLocked()
}

func (b *board) statsLocked() Stats {
	s := b.counts
	s.ByPath, s.ByProto = maps.Clone(s.ByPath), maps.Clone(s.ByProto)
	return s
}

func (b *board) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ring, b.next = b.ring[:0], 0
	b.counts = Stats{InFlight: b.counts.InFlight, ByPath: map[string]int{}, ByProto: map[string]int{}}
	b.changedLocked()
}

func (b *board) wait(ctx context.Context, ok func(Stats) bool) error {
	for {
		b.mu.Lock()
		s, changed := b.statsLocked(), b.changed
		b.mu.Unlock()
		if ok(s) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w; stats are %+v", ctx.Err(), s)
		}
	}
}
