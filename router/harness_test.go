package router

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sluice/configs"
	"sluice/upstream/sim"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// fasthttp keeps the first for the life of the process, the second for
		// up to ten seconds after a server has ended.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
	)
}

const simModel = "sim-8b"

// stand is a router between real sockets: simulated engines behind it, and
// whatever client a test brings.
type stand struct {
	t      *testing.T
	router *Router
	addr   string
	admin  string
	engine *sim.Engine // the first one
	access *syncBuffer
	log    *syncBuffer
	client *http.Client
	served chan error
}

// startStand starts a router with one pool named sim over one engine, after
// change has had its say.
func startStand(t *testing.T, change func(*configs.Config)) *stand {
	t.Helper()
	return startStandWith(t, sim.Options{Models: []string{simModel}, Words: 5}, change)
}

func startStandWith(t *testing.T, opts sim.Options, change func(*configs.Config)) *stand {
	t.Helper()
	e := sim.New(opts)
	url, err := e.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = e.Close(ctx) // what is left of its connections is cut
	})
	s := startRouter(t, url, change)
	s.engine = e
	return s
}

// startRouter starts a router whose only worker is at url.
func startRouter(t *testing.T, url string, change func(*configs.Config)) *stand {
	t.Helper()
	cfg := configs.Default()
	pool := configs.DefaultPool()
	pool.Name = "sim"
	pool.Models = []string{simModel}
	pool.Aliases = map[string]string{"small": simModel}
	pool.Workers = []configs.Worker{{URL: url}}
	pool.Breaker.Failures = 0
	pool.Protocol = "http1"
	pool.Health.Interval = 0 // probes would be among the requests that the engine has seen
	cfg.Pools = []configs.Pool{pool}
	if change != nil {
		change(cfg)
	}
	return serveConfig(t, cfg)
}

// startPools starts a router with the YAML configuration text, in which ENGINE0,
// ENGINE1 and so on stand for the URLs of engines that serve any model.
func startPools(t *testing.T, engines int, text string) (*stand, []*sim.Engine) {
	t.Helper()
	fleet := make([]*sim.Engine, engines)
	for i := range fleet {
		fleet[i] = sim.New(sim.Options{Words: 3})
		url, err := fleet[i].Start("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = fleet[i].Close(ctx)
		})
		text = strings.ReplaceAll(text, fmt.Sprintf("ENGINE%d", i), url)
	}
	return serveConfig(t, loadConfig(t, text)), fleet
}

// loadConfig loads a YAML configuration, with pools whose workers are not probed.
func loadConfig(t testing.TB, text string) *configs.Config {
	t.Helper()
	name := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := configs.Load(configs.Options{Files: []string{name}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range cfg.Pools {
		cfg.Pools[i].Health.Interval = 0
	}
	return cfg
}

// serveConfig starts a router with cfg.
func serveConfig(t *testing.T, cfg *configs.Config) *stand {
	t.Helper()
	s := &stand{t: t, access: &syncBuffer{}, log: &syncBuffer{}, served: make(chan error, 1)}
	r, err := New(cfg, Options{
		Log:     slog.New(slog.NewTextHandler(s.log, nil)),
		Access:  slog.NewJSONHandler(s.access, nil),
		Version: "test",
	})
	if err != nil {
		t.Fatal(err)
	}
	s.router = r
	data, admin := listen(t), listen(t)
	s.addr, s.admin = data.Addr().String(), admin.Addr().String()
	go func() { s.served <- r.Serve(data, admin) }()
	s.client = &http.Client{Transport: &http.Transport{DisableCompression: true}}
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := r.Shutdown(ctx); err != nil {
			t.Errorf("cannot shut down: %v", err)
		}
		if err := <-s.served; err != nil {
			t.Errorf("unexpected error of Serve: %v", err)
		}
		if n := r.InFlight(); n != 0 {
			t.Errorf("unexpected requests in flight at the end: %d", n)
		}
	})
	return s
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// reply is an answer, read to its end.
type reply struct {
	status int
	header http.Header
	body   string
	close  bool // says Connection: close
}

// send sends a request with header fields given as "name: value".
func (s *stand) send(method, path, body string, fields ...string) reply {
	s.t.Helper()
	req, err := http.NewRequest(method, "http://"+s.addr+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		req.Header.Set(name, value)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("%s %s: cannot read the answer: %v", method, path, err)
	}
	return reply{resp.StatusCode, resp.Header, string(b), resp.Close}
}

// chat posts body to the chat surface.
func (s *stand) chat(body string, fields ...string) reply {
	s.t.Helper()
	return s.send("POST", "/v1/chat/completions", body, fields...)
}

// received returns the bodies that the engine has received since the last
// call.
func (s *stand) received() []sim.Request {
	list := s.engine.Requests()
	s.engine.Reset()
	return list
}

// dial opens a raw connection, closed with the test.
func (s *stand) dial() *rawConn {
	s.t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return &rawConn{t: s.t, Conn: c, r: bufio.NewReader(c)}
}

type rawConn struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func (c *rawConn) write(s string) *rawConn {
	c.t.Helper()
	if _, err := io.WriteString(c.Conn, s); err != nil {
		c.t.Fatalf("cannot write: %v", err)
	}
	return c
}

// read reads one answer.
func (c *rawConn) read() reply {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		c.t.Fatalf("cannot read an answer: %v", err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatalf("cannot read the body of the answer: %v", err)
	}
	return reply{resp.StatusCode, resp.Header, string(b), resp.Close}
}

// closed checks that the router closes the connection and sends nothing more.
func (c *rawConn) closed() {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	b, err := io.ReadAll(c.r)
	if err != nil && !isReset(err) {
		c.t.Fatalf("connection is not closed: %v", err)
	}
	if len(b) > 0 {
		c.t.Fatalf("unexpected bytes before the end: %q", b)
	}
}

func isReset(err error) bool { return strings.Contains(err.Error(), "connection reset") }

// eventually waits until ok holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("still waiting for: %s", what)
}

// metric returns the value of a metric as the admin listener shows it, or "".
func (s *stand) metric(name string) string {
	s.t.Helper()
	resp, err := s.client.Get("http://" + s.admin + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// syncBuffer is a bytes.Buffer for concurrent use.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func contract(onConflict string, params map[string]any) func(*configs.Config) {
	return func(c *configs.Config) {
		c.Contract = &configs.SamplingContract{OnConflict: onConflict, Params: params}
	}
}
