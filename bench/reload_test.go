package bench

import (
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/configs"
	"sluice/router"
	"sluice/upstream/sim"
)

var reloadRounds = flag.Int("reloads", 60, "how many reloads TestReloadsUnderLoad makes (make soak: 1000)")

// TestReloadsUnderLoad replaces the configuration again and again under clients
// that stream and leave: no request fails, no stream is cut, what is known of the
// workers stays known, and neither goroutines nor probes nor connections grow.
func TestReloadsUnderLoad(t *testing.T) {
	engines := startEngines(t, 2)
	down, failing := sim.New(sim.Options{}), sim.New(sim.Options{Fail: sim.Failure{Kind: sim.FailStatus, Status: 500}})
	for _, e := range []*sim.Engine{down, failing} {
		if _, err := e.Start("127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		defer closeEngine(t, e)
	}
	for _, e := range engines {
		e.Update(func(o *sim.Options) { o.Pace = 2 * time.Millisecond })
		defer closeEngine(t, e)
	}
	down.SetHealth(503)
	r, data, admin := startReloading(t, engines, down, failing)
	url := "http://" + data
	defer http.DefaultClient.CloseIdleConnections()

	// A breaker opens, as soon as chance chooses its worker, and a worker is found
	// to be down.
	for failing.Stats().ByPath["/v1/chat/completions"] == 0 {
		post(t, url, `{"model":"b","messages":[]}`)
	}
	before := waitForWorkers(t, admin, down.URL(), failing.URL())
	goroutines, connected, probed, begun := runtime.NumGoroutine(), connections(engines), probes(engines), time.Now()
	picked := failing.Stats().ByPath["/v1/chat/completions"]

	ctx, stop := context.WithCancel(context.Background())
	var c chaos
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() { c.client(ctx, t, uint64(i), url) })
	}
	for i := range *reloadRounds {
		if _, err := r.Reload(reloadConfig(i, engines, down, failing)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond) // so that streams live through several
	}
	stop()
	all.Wait()
	if c.failed.Load() > 0 || c.broken.Load() > 0 || c.answered.Load()+c.left.Load() != c.sent.Load() || c.whole.Load() == 0 {
		t.Errorf("of %d requests %d failed and %d streams were cut", c.sent.Load(), c.failed.Load(), c.broken.Load())
	}

	// Probes come as often as before: a reload that began anew would look at once.
	const probers = 3 // one of the two engines is in both pools
	most := 2*probers + int(time.Since(begun)/reloadProbes)*probers*3/2
	if n := probes(engines) - probed; n > most {
		t.Errorf("%d probes in %v; want at most %d", n, time.Since(begun), most)
	}
	// The clients come in at most 8 at once, whatever they leave behind.
	if n := connections(engines) - connected; n > *reloadRounds {
		t.Errorf("%d connections were made to %d workers", n, len(engines))
	}
	after := workerStates(t, admin)
	for _, url := range []string{down.URL(), failing.URL()} {
		if before[url] != after[url] {
			t.Errorf("what is known of a worker has changed from %+v to %+v", before[url], after[url])
		}
	}
	post(t, url, `{"model":"b","messages":[]}`)
	if n := failing.Stats().ByPath["/v1/chat/completions"]; n != picked {
		t.Errorf("%d requests went to a worker whose breaker is open", n-picked)
	}
	checkIdle(t, "http://"+admin)
	settled := func() bool { return runtime.NumGoroutine() <= goroutines+16 } // fasthttp's own rest for ten seconds
	for end := time.Now().Add(30 * time.Second); !settled(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines at the end, %d at the start", runtime.NumGoroutine(), goroutines)
		}
	}
	t.Logf("%d reloads under %d requests, of which %d were left by their clients", *reloadRounds, c.sent.Load(), c.left.Load())
}

// reloadProbes is the time between two probes of a worker.
const reloadProbes = 50 * time.Millisecond

// reloadConfig is the i-th configuration: each differs from the one before.
func reloadConfig(i int, engines []*sim.Engine, down, failing *sim.Engine) *configs.Config {
	cfg := chaosConfig(engines)
	p := &cfg.Pools[0]
	p.Timeouts = configs.DefaultPool().Timeouts
	p.Limits.MaxInflightPerWorker = 64 + i&3
	p.Limits.QueueTimeout = 10 * time.Second
	p.Health.Interval = reloadProbes
	second := *p
	second.Name, second.Models = "b", []string{"b"}
	second.Health.HealthyAfter = 2
	second.Breaker = configs.Breaker{Failures: 1, Cooldown: time.Hour}
	second.Workers = []configs.Worker{{URL: down.URL()}, {URL: failing.URL()}, {URL: engines[0].URL()}}
	cfg.Pools = append(cfg.Pools, second)
	cfg.Server.MaxBody = configs.Bytes(2<<20 + i)
	cfg.Contract = &configs.SamplingContract{OnConflict: "reject", Params: map[string]any{"temperature": 1, "top_k": 1 + i&1}}
	return cfg
}

func startReloading(t *testing.T, engines []*sim.Engine, down, failing *sim.Engine) (r *router.Router, data, admin string) {
	t.Helper()
	r, err := router.New(reloadConfig(-1, engines, down, failing), router.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dl, al := listen(t), listen(t)
	served := make(chan error, 1)
	go func() { served <- r.Serve(dl, al) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := r.Shutdown(ctx); err != nil {
			t.Errorf("cannot shut down: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("unexpected error of Serve: %v", err)
		}
	})
	return r, dl.Addr().String(), al.Addr().String()
}

func closeEngine(t *testing.T, e *sim.Engine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := e.Close(ctx); err != nil {
		t.Errorf("cannot close an engine: %v", err)
	}
}

func post(t *testing.T, url, body string) {
	t.Helper()
	var c chaos
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err == nil {
		err = c.read(resp)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func probes(engines []*sim.Engine) (n int) {
	for _, e := range engines {
		n += e.Stats().ByPath["/health"]
	}
	return n
}

func connections(engines []*sim.Engine) (n int) {
	for _, e := range engines {
		n += e.Stats().Connections
	}
	return n
}

// workerState is what a reload must not forget.
type workerState struct {
	URL, State, Breaker string
	Since               time.Time
	Healthy             bool
}

func workerStates(t *testing.T, admin string) map[string]workerState {
	t.Helper()
	resp, err := http.Get("http://" + admin + "/workers")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var view struct{ Workers []workerState }
	if err := json.NewDecoder(resp.Body).Decode(&view); err != nil {
		t.Fatal(err)
	}
	states := map[string]workerState{}
	for _, w := range view.Workers {
		states[w.URL] = w
	}
	return states
}

// waitForWorkers waits until one worker is known to be down, and the breaker of
// another one to be open.
func waitForWorkers(t *testing.T, admin, down, failing string) map[string]workerState {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		states := workerStates(t, admin)
		if !states[down].Healthy && states[failing].Breaker == "open" {
			return states
		}
		if time.Now().After(end) {
			t.Fatalf("unexpected workers %+v", states)
		}
	}
}
