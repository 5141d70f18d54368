package upstream

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// specOf returns the spec of a pool of workers that are never talked to.
func specOf(urls ...string) PoolSpec {
	spec := withBalance(PoolSpec{Name: "p", Balance: RoundRobin, Breaker: Breaker{Failures: 3, Cooldown: time.Hour}})
	for _, u := range urls {
		spec.Workers = append(spec.Workers, WorkerSpec{URL: u})
	}
	return spec
}

func mustChange(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantMembers holds the workers to "url weight source state", in any order.
func wantMembers(t *testing.T, p *Pool, want ...string) {
	t.Helper()
	var got []string
	for _, w := range slices.Concat(p.Workers(), p.Leaving()) {
		state, since := w.State()
		if since.IsZero() || since.After(time.Now()) {
			t.Errorf("unexpected time of %s: %v", w.URL(), since)
		}
		got = append(got, fmt.Sprintf("%s %d %s %s", w.URL(), w.Weight(), w.Source(), state))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("unexpected members; got %q; want %q", got, want)
	}
}

func TestApply_KeepsWorkers(t *testing.T) {
	a, b, c := play(t, always(okAnswer)), play(t, always(okAnswer)), play(t, always(okAnswer))
	p := newTestPool(t, specOf(a.url, b.url))
	var x Exchange
	mustDo(t, &x, p.Workers()[0], "ok")
	old := p.Workers()[0]
	for range 3 {
		p.Report(p.Workers()[1], Failure)
	}
	held := p.Pick()
	if held != old {
		t.Fatalf("unexpected worker %s", held.URL())
	}
	spec := specOf(c.url, a.url, b.url)
	spec.Timeouts.Total = time.Hour
	spec.Balance = PowerOfTwo
	mustChange(t, p.Apply(spec))
	w := p.Workers()[1]
	_, idle := w.Connections()
	if w.URL() != a.url || w.Load() != 1 || w.Picks() != 1 || idle != 1 || w.timeouts.Total != time.Hour {
		t.Errorf("unexpected worker %s: load %d, %d picks, %d idle, %v", w.URL(), w.Load(), w.Picks(), idle, w.timeouts)
	}
	if old.timeouts.Total != 0 {
		t.Error("the limits of a request under way have changed")
	}
	if got := p.Breaker(p.Workers()[2]); got != BreakerOpen || p.Usable() != 2 {
		t.Errorf("unexpected breaker %v, %d usable", got, p.Usable())
	}
	mustDo(t, &x, w, "ok")
	wantAccepted(t, a, 1)
	mustDo(t, &x, p.Workers()[0], "ok")
	if joined, left := p.MembershipChanges(); joined != 3 || left != 0 {
		t.Errorf("unexpected changes; got %d joined, %d left", joined, left)
	}
	held.Release()
}

// A retry of a request that began under other settings goes elsewhere, too.
func TestApply_RetryAvoidsTheFailed(t *testing.T) {
	spec := specOf("http://127.0.0.1:1", "http://127.0.0.1:2")
	spec.Retry = Retry{Attempts: 100, Budget: 1}
	p := newTestPool(t, spec)
	failed := p.Pick()
	spec.Timeouts.Total = time.Hour
	mustChange(t, p.Apply(spec))
	for range 4 {
		w := p.Retry(2, failed, nil)
		if w == nil || w.URL() == failed.URL() {
			t.Fatalf("unexpected worker %v", w)
		}
		w.Release()
	}
	failed.Release()
}

func TestApply_RefusedChangesNothing(t *testing.T) {
	p := newTestPool(t, specOf("http://127.0.0.1:1"))
	conf, workers := p.conf.Load(), p.Workers()
	f := func(change func(s *PoolSpec), want string) {
		t.Helper()
		spec := specOf("http://127.0.0.1:1", "http://127.0.0.1:2")
		change(&spec)
		for _, change := range []func(PoolSpec) error{p.Apply, p.Check} {
			if err := change(spec); err == nil || err.Error() != `pool "p": `+want {
				t.Errorf("unexpected error; got %v; want %s", err, want)
			}
		}
		if p.conf.Load() != conf || !slices.Equal(p.Workers(), workers) {
			t.Error("a spec that is refused has an effect")
		}
	}
	f(func(s *PoolSpec) { s.Name = "q" }, `a pool keeps its name, got "q"`)
	f(func(s *PoolSpec) { s.Workers = nil }, "no workers")
	f(func(s *PoolSpec) { s.Workers[1].URL = "w" }, `worker url must be http://host:port or https://host:port, got "w"`)
	f(func(s *PoolSpec) { s.Protocol = "h3" }, `unknown protocol "h3"; want one of ["auto" "http1" "h2c"]`)
	f(func(s *PoolSpec) { s.Health.Interval = time.Second }, "probes must have a timeout")
	f(func(s *PoolSpec) { s.Balance, s.LoadFactor = ConsistentHash, 0.5 }, "load factor must be at least 1, got 0.5")
	f(func(s *PoolSpec) { s.Balance, s.Prefix = PrefixAware, Prefix{} }, "prefixes must have blocks and memory, got {MaxBytes:0 Block:0}")
	mustChange(t, p.Check(specOf("http://127.0.0.1:1", "http://127.0.0.1:2")))
	if p.conf.Load() != conf || !slices.Equal(p.Workers(), workers) {
		t.Error("a spec that is only checked has an effect")
	}
	if err := p.SetMembers("file", nil); !errors.Is(err, ErrUnknownSource) {
		t.Errorf("unexpected error %v", err)
	}
	if err := p.Remove("http://127.0.0.1:9"); !errors.Is(err, ErrNotMember) {
		t.Errorf("unexpected error %v", err)
	}
	if err := p.Drain("http://127.0.0.1:9"); !errors.Is(err, ErrNotMember) {
		t.Errorf("unexpected error %v", err)
	}
}

func TestApply_Closed(t *testing.T) {
	p, err := NewPool(specOf("http://127.0.0.1:1"))
	mustChange(t, err)
	p.Close()
	if err := p.Apply(specOf("http://127.0.0.1:1")); !errors.Is(err, ErrClosed) {
		t.Errorf("unexpected error %v", err)
	}
}

// TestB79_StreamOutlivesItsWorker removes a worker in every way there is while
// it streams, with another connection at rest.
func TestB79_StreamOutlivesItsWorker(t *testing.T) {
	ways := map[string]func(p *Pool, url string) error{
		"apply": func(p *Pool, _ string) error {
			spec := specOf("http://127.0.0.1:1")
			spec.Protocol = p.conf.Load().protocol
			return p.Apply(spec)
		},
		"remove":  func(p *Pool, url string) error { return p.Remove(url) },
		"sources": func(p *Pool, _ string) error { return p.SetMembers("dns", nil) },
		"protocol": func(p *Pool, url string) error {
			spec := specOf("http://127.0.0.1:1", url)
			spec.Protocol = map[string]string{HTTP1: H2C, H2C: HTTP1}[p.conf.Load().protocol]
			return p.Apply(spec)
		},
	}
	for way, remove := range ways {
		for _, protocol := range []string{HTTP1, H2C} {
			t.Run(way+"/"+protocol, func(t *testing.T) { testStreamOutlives(t, way, protocol, remove) })
		}
	}
}

func testStreamOutlives(t *testing.T, way, protocol string, remove func(p *Pool, url string) error) {
	more := make(chan string)
	e := startH2(t, "127.0.0.1:0", "http1 h2c", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(200)
			_ = http.NewResponseController(w).Flush()
			for piece := range more {
				_, _ = io.WriteString(w, piece)
				_ = http.NewResponseController(w).Flush()
			}
		}
	})
	spec := specOf("http://127.0.0.1:1")
	spec.Protocol = protocol
	spec.Sources = []string{"dns"}
	spec.Health = Health{Path: "/health", Interval: time.Millisecond, Timeout: patience, UnhealthyAfter: 1, HealthyAfter: 1, FailOpen: true}
	if way != "sources" {
		spec.Workers = append(spec.Workers, WorkerSpec{URL: e.url})
	}
	p := newTestPool(t, spec)
	if way == "sources" {
		mustChange(t, p.SetMembers("dns", []WorkerSpec{{URL: e.url}}))
	}
	w := p.member(e.url)
	waitFor(t, "the other worker to be found down", func() bool { s, _ := p.Workers()[0].State(); return s == StateDown })
	if got := p.Pick(); got != w {
		t.Fatalf("unexpected worker %s", got.URL())
	}
	var x, rested Exchange
	if err := x.Do(w, post("{}")); err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if _, _, err := do(&rested, w, &Request{Method: []byte("GET"), Target: []byte("/"), Length: -1}); err != nil {
		t.Fatal(err)
	}
	mustChange(t, remove(p, e.url))
	if s, _ := w.State(); s != StateLeaving || len(p.Leaving()) != 1 {
		t.Fatalf("unexpected state %v, %d leave", s, len(p.Leaving()))
	}
	for range 10 { // the rest fails open
		got := p.Pick()
		if got == nil || got.backend == w.backend {
			t.Fatalf("unexpected worker %v", got)
		}
		got.Release()
	}
	for i := range 5 {
		more <- fmt.Sprint(i)
		if b, err := x.Next(); err != nil || string(b) != fmt.Sprint(i) {
			t.Fatalf("unexpected piece %q, %v", b, err)
		}
	}
	close(more)
	if _, err := x.Next(); err != io.EOF {
		t.Fatalf("unexpected end: %v", err)
	}
	p.Report(w, Success)
	x.Close()
	w.Release()
	waitFor(t, "the worker to be gone", func() bool { return len(p.Leaving()) == 0 })
	waitFor(t, "its connections to be closed", func() bool {
		open, idle := w.Connections()
		return open+idle+w.Streams() == 0
	})
	want := uint64(1)
	if way == "protocol" { // both are others
		want = 2
	}
	if _, left := p.MembershipChanges(); left != want {
		t.Errorf("unexpected number of workers that left: %d", left)
	}
}

// A worker that comes back before it has gone is the same.
func TestMembers_LeaverComesBack(t *testing.T) {
	spec := specOf()
	spec.Sources = []string{"dns"}
	p := newTestPool(t, spec)
	one := []WorkerSpec{{URL: "http://127.0.0.1:1"}}
	mustChange(t, p.SetMembers("dns", one))
	w := p.Pick()
	mustChange(t, p.SetMembers("dns", nil))
	if _, err := p.Acquire(nil); !errors.Is(err, ErrNoWorkers) {
		t.Fatalf("unexpected error %v", err)
	}
	mustChange(t, p.SetMembers("dns", one))
	wantMembers(t, p, "http://127.0.0.1:1 1 dns up")
	if got := p.Workers()[0]; got.Load() != 1 {
		t.Errorf("unexpected load %d", got.Load())
	}
	w.Release()
	p.retireLeavers()
	p.Pick().Release()
}

func TestMembers_SourcesAndHand(t *testing.T) {
	const a, b, c, d = "http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3", "http://127.0.0.1:4"
	spec := specOf(a)
	spec.Sources = []string{"file", "dns"}
	p := newTestPool(t, spec)
	mustChange(t, p.SetMembers("dns", []WorkerSpec{{URL: b}, {URL: a + "/", Weight: 5}}))
	mustChange(t, p.SetMembers("file", []WorkerSpec{{URL: b, Weight: 3}, {URL: c}}))
	wantMembers(t, p, a+" 1 config,dns up", b+" 1 dns,file up", c+" 1 file up")

	mustChange(t, p.Add(WorkerSpec{URL: d}))
	mustChange(t, p.Add(WorkerSpec{URL: c, Weight: 7}))
	mustChange(t, p.Drain(b))
	mustChange(t, p.Remove(a))
	members := []string{b + " 1 dns,file draining", c + " 7 file,admin up", d + " 1 admin up"}
	wantMembers(t, p, members...)
	if got := spread(p, 20); len(got) != 2 {
		t.Errorf("unexpected picks %v", got)
	}

	// What was done by hand survives a reload and what sources say again.
	mustChange(t, p.Apply(spec))
	mustChange(t, p.SetMembers("dns", []WorkerSpec{{URL: b}, {URL: a}}))
	wantMembers(t, p, members...)

	mustChange(t, p.Add(WorkerSpec{URL: a}))
	mustChange(t, p.Undrain(b))
	mustChange(t, p.Remove(d))
	wantMembers(t, p, a+" 1 config,dns,admin up", b+" 1 dns,file up", c+" 7 file,admin up")

	// A source that is not configured any more names nobody.
	boom := errors.New("boom")
	p.SourceFailed("file", boom)
	if s := p.Sources(); len(s) != 2 || s[1].Name != "file" || s[1].Workers != 2 || s[1].Failures != 1 || s[1].Err != boom || s[0].Err != nil {
		t.Errorf("unexpected sources %+v", s)
	}
	spec.Sources = []string{"file"}
	mustChange(t, p.Apply(spec))
	wantMembers(t, p, a+" 1 config,admin up", b+" 3 file up", c+" 7 file,admin up")
}

// What was drained or removed is so for as long as somebody names it.
func TestMembers_HandIsForgottenWithTheWorker(t *testing.T) {
	const a, b, c = "http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3"
	p := newTestPool(t, specOf(a, b, c))
	mustChange(t, p.Drain(b))
	mustChange(t, p.Remove(c))
	mustChange(t, p.Apply(specOf(a, b, c)))
	wantMembers(t, p, a+" 1 config up", b+" 1 config draining")
	mustChange(t, p.Apply(specOf(a)))
	mustChange(t, p.Apply(specOf(a, b, c)))
	wantMembers(t, p, a+" 1 config up", b+" 1 config up", c+" 1 config up")
}

func TestMembers_EmptyPool(t *testing.T) {
	for _, balance := range Balances {
		spec := specOf()
		spec.Balance = balance
		spec.Sources = []string{"file"}
		spec.Limits = Limits{PerWorker: 1, Queue: 1, QueueTimeout: patience}
		p := newTestPool(t, spec)
		if _, err := p.Acquire(nil); !errors.Is(err, ErrNoWorkers) {
			t.Fatalf("%s: unexpected error %v", balance, err)
		}
		mustChange(t, p.SetMembers("file", []WorkerSpec{{URL: "http://127.0.0.1:1"}}))
		p.Pick().Release()
		mustChange(t, p.Remove("http://127.0.0.1:1"))
		if _, err := p.Acquire(nil); !errors.Is(err, ErrNoWorkers) {
			t.Fatalf("%s: unexpected error %v", balance, err)
		}
	}
}

// Who waits is served when limits grow, and by whoever comes.
func TestApply_ServesWhoWaits(t *testing.T) {
	limit := func(spec PoolSpec, perWorker int) PoolSpec {
		spec.Limits = Limits{PerWorker: perWorker, Queue: 10, QueueTimeout: patience}
		return spec
	}
	const a, b = "http://127.0.0.1:1", "http://127.0.0.1:2"
	p := newTestPool(t, limit(specOf(a), 1))
	w := p.Pick()
	got := make(chan *Worker, 10)
	wait := func() {
		go func() {
			w, err := p.Wait(new(Ticket), nil)
			if err != nil {
				t.Errorf("a waiter was lost: %v", err)
			}
			got <- w
		}()
	}
	for n := range 4 {
		wait()
		waitFor(t, "the request to wait", func() bool { return p.Queued() == n+1 })
	}
	mustChange(t, p.Apply(limit(specOf(a), 3)))
	x, y := <-got, <-got
	if p.Queued() != 2 || x.Load() != 3 || y.Load() != 3 {
		t.Fatalf("unexpected state: %d wait, load %d", p.Queued(), x.Load())
	}
	mustChange(t, p.Apply(limit(specOf(a), 1)))
	x.Release()
	y.Release()
	if p.Queued() != 2 {
		t.Fatalf("unexpected number of waiters %d above a limit that shrank", p.Queued())
	}
	mustChange(t, p.Apply(limit(specOf(b), 1))) // the other leaves
	z := <-got
	if z.URL() != b {
		t.Fatalf("unexpected worker %s", z.URL())
	}
	z.Release()
	(<-got).Release()
	w.Release()
}

// A limit of the pool counts the requests that begin under it, and a limit that
// goes takes its count along.
func TestApply_PoolLimitComesAndGoes(t *testing.T) {
	limited := specOf("http://127.0.0.1:1")
	limited.Limits = Limits{Pool: 1}
	p := newTestPool(t, specOf("http://127.0.0.1:1"))
	before := p.Pick()
	mustChange(t, p.Apply(limited))
	under := p.Pick()
	if _, err := p.Acquire(nil); !errors.Is(err, ErrFull) {
		t.Errorf("unexpected error %v", err)
	}
	before.Release()
	if _, err := p.Acquire(nil); !errors.Is(err, ErrFull) {
		t.Errorf("unexpected error %v", err)
	}
	mustChange(t, p.Apply(specOf("http://127.0.0.1:1")))
	p.Pick().Release()
	under.Release()
	if n := p.inFlight.Load(); n != 0 {
		t.Errorf("unexpected number of requests under way %d", n)
	}
}

// TestApply_UnderTraffic changes everything there is about a pool under clients
// that wait, retry and report, and loses no request.
func TestApply_UnderTraffic(t *testing.T) {
	engines := make([]*engine, 4)
	for i := range engines {
		engines[i] = play(t, always(okAnswer))
	}
	spec := func() PoolSpec {
		s := withBalance(PoolSpec{
			Name: "p", Balance: Balances[rand.IntN(len(Balances))], Sources: []string{"file"},
			Retry:    Retry{Attempts: 2, Budget: 1},
			Breaker:  Breaker{Failures: 1 + rand.IntN(3), Cooldown: time.Millisecond},
			Limits:   Limits{PerWorker: 1 + rand.IntN(8), Pool: rand.IntN(2) * 16, Queue: 1000, QueueTimeout: patience},
			Timeouts: Timeouts{Connect: patience, FirstByte: patience, BetweenEvents: patience},
			Health: Health{
				Path: "/", Interval: time.Duration(rand.IntN(3)) * time.Millisecond, Timeout: patience,
				UnhealthyAfter: 1, HealthyAfter: 1, FailOpen: true,
			},
		})
		for _, e := range engines[:1+rand.IntN(3)] {
			s.Workers = append(s.Workers, WorkerSpec{URL: e.url, Weight: 1 + rand.IntN(3)})
		}
		return s
	}
	p := newTestPool(t, spec())
	const clients, requests = 16, 150
	var served atomic.Int64
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			var x Exchange
			var ticket Ticket
			for range requests {
				w, err := p.Acquire(&Key{Session: rand.Uint64()})
				if errors.Is(err, ErrFull) {
					w, err = p.Wait(&ticket, nil)
				}
				if err != nil {
					t.Errorf("no worker: %v", err)
					continue
				}
				if _, body, err := do(&x, w, post("{}")); err != nil || body != "ok" {
					t.Errorf("unexpected answer %q, %v", body, err)
				}
				served.Add(1)
				p.Report(w, []Outcome{Success, Success, Neutral, Failure}[rand.IntN(4)])
				if next := p.Retry(2, w, nil); next != nil {
					p.Report(next, Neutral)
					next.Release()
				}
				w.Release()
			}
		})
	}
	stop := make(chan struct{})
	var changer sync.WaitGroup
	changer.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			var err error
			switch url := engines[rand.IntN(4)].url; rand.IntN(6) {
			case 0, 1:
				err = p.Apply(spec())
			case 2:
				err = p.SetMembers("file", []WorkerSpec{{URL: url}, {URL: engines[3].url}})
			case 3:
				err = p.Add(WorkerSpec{URL: url})
			case 4:
				if p.member(url) != nil && url != engines[0].url { // one is always there
					err = p.Remove(url)
				}
			case 5:
				if p.member(url) != nil && url != engines[0].url {
					err = p.Drain(url)
					p.Sources()
				}
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	all.Wait()
	close(stop)
	changer.Wait()
	if n := served.Load(); n != clients*requests {
		t.Errorf("unexpected number of answers; got %d; want %d", n, clients*requests)
	}
	if n := p.inFlight.Load(); n != 0 || p.Queued() != 0 {
		t.Errorf("unexpected rest: %d under way, %d wait", n, p.Queued())
	}
	waitFor(t, "the workers that left to be gone", func() bool { return len(p.Leaving()) == 0 })
}
