package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/configs"
	"sluice/router"
	"sluice/upstream/sim"
)

var chaosTime = flag.Duration("chaos", 2*time.Second, "how long TestChaos lasts")

// moods are what a worker may be like for a while.
var moods = []sim.Options{
	{},
	{},
	{},
	{Pace: 5 * time.Millisecond},
	{Fail: sim.Failure{Kind: sim.FailReset}},
	{Fail: sim.Failure{Kind: sim.FailCut, After: 2}},
	{Fail: sim.Failure{Kind: sim.FailStatus, Status: 503}},
	{Fail: sim.Failure{Kind: sim.FailStatus, Status: 500}},
	{Fail: sim.Failure{Kind: sim.FailSilence}},
	{Fail: sim.Failure{Kind: sim.FailGarbage}},
}

// TestChaos lets workers die, stall, reset, lie and come back at random under
// clients that stream, wait, and leave. At the end every request is accounted
// for and nothing is held. (-chaos 60s for the full time, see make chaos.)
func TestChaos(t *testing.T) {
	engines := startEngines(t, 6)
	cfg := chaosConfig(engines)
	var lines lineCounter
	r, err := router.New(cfg, router.Options{Access: slog.NewJSONHandler(&lines, nil)})
	if err != nil {
		t.Fatal(err)
	}
	data, admin := listen(t), listen(t)
	served := make(chan error, 1)
	go func() { served <- r.Serve(data, admin) }()

	ctx, stop := context.WithTimeout(context.Background(), *chaosTime)
	defer stop()
	var all sync.WaitGroup
	all.Go(func() { disturb(ctx, engines) })
	var c chaos
	for i := range clients {
		all.Go(func() { c.client(ctx, t, uint64(i), "http://"+data.Addr().String()) })
	}
	all.Wait()
	for _, e := range engines {
		e.Update(func(o *sim.Options) { o.Fail = sim.Failure{} })
	}
	for end := time.Now().Add(10 * time.Second); r.InFlight() > 0 || lines.n.Load() < c.answered.Load(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d requests in flight, %d lines for %d answers", r.InFlight(), lines.n.Load(), c.answered.Load())
		}
	}
	// A client that left may have done so before a byte was sent: what it wrote
	// last lay in its own buffer.
	seen := lines.n.Load()
	if seen < c.answered.Load() || seen > c.sent.Load() {
		t.Errorf("%d requests sent; %d answered, %d clients left, %d lines", c.sent.Load(), c.answered.Load(), c.left.Load(), seen)
	}
	if in, out := sumMetric(t, admin.Addr().String(), "sluice_requests_total"), sumMetric(t, admin.Addr().String(), "sluice_responses_total"); in != seen || out != seen {
		t.Errorf("%d lines for %d requests and %d answers", seen, in, out)
	}
	t.Logf("%d requests: %d whole, %d refused or failed with an answer, %d broken off with an error, %d clients left",
		c.sent.Load(), c.whole.Load(), c.failed.Load(), c.broken.Load(), c.left.Load())
	if c.whole.Load() == 0 || c.left.Load() == 0 {
		t.Error("the test exercised nothing")
	}
	checkIdle(t, "http://"+admin.Addr().String())
	end, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := r.Shutdown(end); err != nil {
		t.Errorf("cannot shut down: %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("unexpected error of Serve: %v", err)
	}
	for _, e := range engines {
		if err := e.Close(end); err != nil {
			t.Errorf("cannot close an engine: %v", err)
		}
	}
}

// startEngines starts engines that serve any model.
func startEngines(t *testing.T, n int) []*sim.Engine {
	t.Helper()
	engines := make([]*sim.Engine, n)
	for i := range engines {
		engines[i] = sim.New(sim.Options{Words: 8})
		if _, err := engines[i].Start("127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	return engines
}

// chaosConfig is a pool of engines, from which a router notices soon what they do
// to it, under a contract.
func chaosConfig(engines []*sim.Engine) *configs.Config {
	pool := configs.DefaultPool()
	pool.Name, pool.Models = "chaos", []string{"m"}
	for _, e := range engines {
		pool.Workers = append(pool.Workers, configs.Worker{URL: e.URL()})
	}
	pool.Timeouts = configs.Timeouts{Connect: time.Second, FirstByte: 300 * time.Millisecond, BetweenEvents: 300 * time.Millisecond, Total: 5 * time.Second}
	pool.Health = configs.Health{Path: "/health", Interval: 50 * time.Millisecond, Timeout: 500 * time.Millisecond, UnhealthyAfter: 2, HealthyAfter: 1}
	pool.Breaker = configs.Breaker{Failures: 4, Cooldown: 100 * time.Millisecond}
	pool.Retry = configs.Retry{Attempts: 3, Budget: 1}
	pool.Limits = configs.Limits{MaxInflightPerWorker: 8, MaxQueue: 32, QueueTimeout: 500 * time.Millisecond}
	cfg := configs.Default()
	cfg.Pools = []configs.Pool{pool}
	cfg.Contract = &configs.SamplingContract{OnConflict: "reject", Params: map[string]any{"temperature": 1}}
	return cfg
}

// chatRequest is what chaos sends if nothing else is said.
func chatRequest(r *rand.Rand) (path, body string) {
	return "/v1/chat/completions", fmt.Sprintf(`{"model":"m","stream":%v,"messages":[{"role":"user","content":"%d"}]}`, r.IntN(2) == 0, r.Uint64())
}

// disturb changes the moods of the engines, but for the first one.
func disturb(ctx context.Context, engines []*sim.Engine) {
	for ctx.Err() == nil {
		mood := moods[rand.IntN(len(moods))]
		e := engines[1+rand.IntN(len(engines)-1)]
		e.Update(func(o *sim.Options) { o.Fail, o.Pace = mood.Fail, mood.Pace })
		e.SetHealth([]int{200, 200, 503}[rand.IntN(3)])
		time.Sleep(20 * time.Millisecond)
	}
}

// chaos counts what the clients see.
type chaos struct {
	next func(*rand.Rand) (path, body string) // nil: chatRequest

	sent, answered, left  atomic.Int64
	whole, failed, broken atomic.Int64
}

func (c *chaos) client(ctx context.Context, t *testing.T, seed uint64, url string) {
	r := rand.New(rand.NewPCG(seed, 7))
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	next := c.next
	if next == nil {
		next = chatRequest
	}
	for ctx.Err() == nil {
		path, body := next(r)
		call, cancel := context.WithCancel(context.Background())
		leaves := r.IntN(10) == 0
		if leaves {
			time.AfterFunc(time.Duration(r.IntN(40))*time.Millisecond, cancel)
		}
		req, err := http.NewRequestWithContext(call, "POST", url+path, strings.NewReader(body))
		if err != nil {
			t.Error(err)
		}
		var wrote atomic.Bool
		req = req.WithContext(httptrace.WithClientTrace(call, &httptrace.ClientTrace{
			WroteRequest: func(info httptrace.WroteRequestInfo) { wrote.Store(info.Err == nil) },
		}))
		resp, err := client.Do(req)
		if err == nil {
			err = c.read(resp)
		}
		switch {
		case !wrote.Load(): // nothing of it was sent
		case err == nil:
			c.sent.Add(1)
			c.answered.Add(1)
		case leaves && errors.Is(err, context.Canceled):
			c.sent.Add(1)
			c.left.Add(1)
		default:
			t.Errorf("a request without an answer: %v", err)
		}
		cancel()
	}
}

// read reads an answer to its end and says how it ended.
func (c *chaos) read(resp *http.Response) error {
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(bufio.NewReader(resp.Body))
	switch {
	case err != nil:
		return err
	case resp.StatusCode != 200:
		c.failed.Add(1)
	case strings.Contains(string(b), `"error"`):
		c.broken.Add(1)
	default:
		c.whole.Add(1)
	}
	return nil
}

// lineCounter counts the lines of the access log.
type lineCounter struct{ n atomic.Int64 }

func (c *lineCounter) Write(p []byte) (int, error) {
	c.n.Add(int64(bytes.Count(p, []byte("\n"))))
	return len(p), nil
}

// sumMetric adds up a counter over its labels, as the admin listener tells it.
func sumMetric(t *testing.T, admin, name string) (sum int64) {
	t.Helper()
	resp, err := http.Get("http://" + admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if labels, value, ok := strings.Cut(strings.TrimSpace(line), "} "); ok && strings.HasPrefix(labels, name+"{") {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				t.Fatalf("cannot read %q: %v", line, err)
			}
			sum += n
		}
	}
	return sum
}

// checkIdle checks that no worker is loaded, as the admin listener tells.
func checkIdle(t *testing.T, admin string) {
	t.Helper()
	resp, err := http.Get(admin + "/workers")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var view struct {
		Workers []struct {
			URL  string
			Load int
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&view); err != nil || len(view.Workers) == 0 {
		t.Fatalf("cannot read the workers: %v", err)
	}
	for _, w := range view.Workers {
		if w.Load != 0 {
			t.Errorf("worker %s has load %d at the end", w.URL, w.Load)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
