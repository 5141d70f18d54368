package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/configs"
	"sluice/router"
)

// path is one way of a request through the whole router, from a client's
// socket to a worker's and back: with the contract, an alias, the metrics and
// the access log on.
type path struct {
	name   string
	answer string // of the worker, raw
	// allocs is the budget: how many allocations a request may cost.
	allocs float64
	// change has the last word on the configuration. Nil changes nothing.
	change func(*configs.Config)
}

var paths = []path{
	{"buffered", buffered, 2, nil},
	{"streamed", streamed, 6, nil},
	{"buffered with rules", buffered, 2, withRules},
	{"streamed with rules and records", streamed, 6, func(c *configs.Config) { withRules(c); withRecords(c) }},
}

var buffered = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1024\r\n\r\n" +
	`{"model":"model-8b","usage":{"prompt_tokens":7,"completion_tokens":9},"x":"` + padding

var (
	padding  = strings.Repeat("x", 1024-len(`{"model":"model-8b","usage":{"prompt_tokens":7,"completion_tokens":9},"x":""}`)) + `"}`
	streamed = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" +
		chunk("data: {\"model\":\"model-8b\",\"choices\":[{\"delta\":{\"content\":\"hello\"}}]}\n\n") +
		chunk("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":9}}\n\n") +
		chunk("data: [DONE]\n\n") + "0\r\n\r\n"
)

// withRules adds a decision with every kind of edit.
func withRules(c *configs.Config) {
	limit, n, def := 500, 1, configs.TokenLimit(400)
	c.Pools[0].ExtraBody = `{"separate_reasoning":true}`
	c.Routing.Decisions = []configs.Decision{{
		Name: "all",
		Rules: &configs.Rule{Operator: "AND", Conditions: []configs.Rule{
			{Type: "model", Name: "small"}, {Type: "header", Name: "user-agent", Prefix: "ben"},
		}},
		Force: `{"seed":1}`,
		Plugins: []configs.Plugin{{Type: configs.RequestParams, Configuration: configs.PluginConfiguration{
			BlockedParams: []string{"logprobs"}, DefaultMaxTokens: &def, MaxTokensLimit: &limit, MaxN: &n, StripUnknown: true,
		}}},
	}}
}

// withRecords records to a database that is not there, so that what its driver
// allocates is not counted.
func withRecords(c *configs.Config) {
	c.Records.Store, c.Records.DSN, c.Records.Queue = "postgres", "postgres://127.0.0.1:1/none", 1
}

func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

// body is a chat request of about n bytes that the contract has to edit.
func body(n int) string {
	const head, tail = `{"model":"small","top_p":0.95,"stream":true,"n":1,"messages":[{"role":"user","content":"`, `"}]}`
	return head + string(bytes.Repeat([]byte("lorem ips "), max(n-len(head)-len(tail), 0)/10)) + tail
}

// startPath starts a worker and a router and returns the router's address.
func startPath(tb testing.TB, p path) string {
	tb.Helper()
	pool := configs.DefaultPool()
	pool.Name = "bench"
	pool.Protocol = "http1"
	pool.Health.Interval = 0 // the worker answers nothing but the bench
	pool.Models = []string{"model-8b"}
	pool.Aliases = map[string]string{"small": "model-8b"}
	pool.Workers = []configs.Worker{{URL: "http://" + startWorker(tb, p.answer)}}
	cfg := configs.Default()
	cfg.Pools = []configs.Pool{pool}
	cfg.Contract = &configs.SamplingContract{OnConflict: "reject", Params: map[string]any{
		"temperature": 1, "top_p": map[string]any{"min": 0.9, "max": 1.0},
	}}
	if p.change != nil {
		p.change(cfg)
	}
	if err := cfg.Validate(); err != nil {
		tb.Fatal(err)
	}
	r, err := router.New(cfg, router.Options{Access: slog.NewJSONHandler(io.Discard, nil)})
	if err != nil {
		tb.Fatal(err)
	}
	l := listen(tb)
	served := make(chan error, 1)
	go func() { served <- r.Serve(l, nil) }()
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := r.Shutdown(ctx); err != nil {
			tb.Errorf("cannot shut down: %v", err)
		}
		if err := <-served; err != nil {
			tb.Errorf("unexpected error of Serve: %v", err)
		}
	})
	return l.Addr().String()
}

func listen(tb testing.TB) net.Listener {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// startWorker starts a worker that answers the same bytes to every request and
// allocates nothing.
func startWorker(tb testing.TB, answer string) (addr string) {
	l := listen(tb)
	tb.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answerAll(c, []byte(answer))
		}
	}()
	return l.Addr().String()
}

// answerAll serves one connection until it fails.
func answerAll(c net.Conn, answer []byte) {
	defer func() { _ = c.Close() }()
	r := bufio.NewReaderSize(c, 64<<10)
	for {
		n := 0
		for {
			line, err := r.ReadSlice('\n')
			if err != nil {
				return
			}
			if v, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
				for _, d := range bytes.TrimSpace(v) {
					n = 10*n + int(d-'0')
				}
			}
			if len(line) == 2 {
				break
			}
		}
		if _, err := r.Discard(n); err != nil {
			return
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

// caller is a client that repeats one request and allocates nothing.
type caller struct {
	conn    net.Conn
	r       *bufio.Reader
	request []byte
	answer  []byte
}

// newCaller sends the request once and learns the length of its answer, which
// is the same from then on.
func newCaller(tb testing.TB, addr, body string) *caller {
	tb.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	c := &caller{conn: conn, r: bufio.NewReader(conn)}
	c.request = []byte("POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer key\r\nUser-Agent: bench\r\n" +
		"Accept: */*\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
	if _, err := conn.Write(c.request); err != nil {
		tb.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		tb.Fatal(err)
	}
	first, _ := io.ReadAll(c.r) // until the deadline: the connection stays open
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		tb.Fatal(err)
	}
	if !bytes.HasPrefix(first, []byte("HTTP/1.1 200 ")) {
		tb.Fatalf("unexpected answer %q", first)
	}
	c.answer = first
	return c
}

func (c *caller) call(tb testing.TB) {
	if _, err := c.conn.Write(c.request); err != nil {
		tb.Fatal(err)
	}
	if _, err := io.ReadFull(c.r, c.answer); err != nil {
		tb.Fatal(err)
	}
}
