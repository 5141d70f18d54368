package upstream

import (
	"testing"
	"time"
)

// idlePool makes a pool of workers that are never talked to.
func idlePool(t *testing.T, n int, change func(*PoolSpec)) *Pool {
	t.Helper()
	spec := PoolSpec{Name: "p", Balance: RoundRobin, Breaker: Breaker{Failures: 3, Cooldown: time.Hour}}
	for i := range n {
		spec.Workers = append(spec.Workers, WorkerSpec{URL: "http://127.0.0.1:" + string(rune('1'+i))})
	}
	if change != nil {
		change(&spec)
	}
	p, err := NewPool(withBalance(spec))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// spread picks n times and counts the picks of each worker.
func spread(p *Pool, n int) map[*Worker]int {
	got := map[*Worker]int{}
	for range n {
		if w := p.Pick(); w != nil {
			got[w]++
			w.Release()
		}
	}
	return got
}

func TestB51_StatusOutcome(t *testing.T) {
	for status, want := range map[int]Outcome{
		200: Success, 204: Success, 304: Success, 400: Success, 401: Success, 404: Success, 422: Success,
		429: Neutral, 503: Neutral, 500: Failure, 501: Failure, 502: Failure, 504: Failure, 599: Failure,
	} {
		if got := StatusOutcome(status); got != want {
			t.Errorf("%d: unexpected outcome %v; want %v", status, got, want)
		}
	}
	for f := FaultConnect; f <= FaultCanceled; f++ {
		want := Failure
		if f == FaultCanceled || f == FaultTotal {
			want = Neutral
		}
		if got := (&Error{Fault: f}).Outcome(); got != want {
			t.Errorf("%v: unexpected outcome %v; want %v", f, got, want)
		}
	}
}

func TestBreaker_OpensOnFailuresInARow(t *testing.T) {
	p := idlePool(t, 2, nil)
	w, other := p.Workers()[0], p.Workers()[1]
	for _, o := range []Outcome{Failure, Failure, Success, Failure, Failure, Neutral, Began} {
		p.Report(w, o)
	}
	if got := p.Breaker(w); got != BreakerClosed {
		t.Fatalf("unexpected state %v after two failures in a row", got)
	}
	p.Report(w, Failure)
	if got := p.Breaker(w); got != BreakerOpen || p.Usable() != 1 {
		t.Fatalf("unexpected state %v, %d workers usable, after three failures in a row", got, p.Usable())
	}
	if got := spread(p, 10); got[w] != 0 || got[other] != 10 {
		t.Errorf("an open breaker does not keep requests away: %v", got)
	}
}

func TestBreaker_OneTrialAfterTheCooldown(t *testing.T) {
	p := idlePool(t, 2, func(s *PoolSpec) { s.Breaker = Breaker{Failures: 1, Cooldown: time.Millisecond} })
	w := p.Workers()[0]
	trial := func() *Worker {
		t.Helper()
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if p.Breaker(w) == BreakerHalfOpen {
				return p.Pick()
			}
		}
		t.Fatal("the breaker does not cool down")
		return nil
	}
	p.Report(w, Failure)
	if got := trial(); got != w {
		t.Fatalf("the worker is not tried: %v", got)
	}
	if got := spread(p, 10); got[w] != 0 {
		t.Errorf("more than one request tries the worker: %v", got)
	}
	w.Release()
	p.Report(w, Failure) // the trial failed
	if got := trial(); got != w {
		t.Fatalf("the worker is not tried again: %v", got)
	}
	w.Release()
	p.Report(w, Neutral) // the client left: another may try
	if got := p.Pick(); got != w {
		t.Fatalf("the trial that told nothing is not made again: %v", got)
	}
	w.Release()
	p.Report(w, Began)
	if got := p.Breaker(w); got != BreakerClosed || p.Usable() != 2 {
		t.Errorf("unexpected state %v, %d usable, after a good trial", got, p.Usable())
	}
	if got := spread(p, 10); got[w] != 5 {
		t.Errorf("the worker does not take part again: %v", got)
	}
}

func TestB77_LastUsableWorkerIsKept(t *testing.T) {
	p := idlePool(t, 2, nil)
	a, b := p.Workers()[0], p.Workers()[1]
	for range 10 {
		p.Report(a, Failure)
		p.Report(b, Failure)
	}
	if p.Usable() != 1 || p.Breaker(a) != BreakerOpen || p.Breaker(b) != BreakerClosed {
		t.Fatalf("unexpected breakers %v, %v", p.Breaker(a), p.Breaker(b))
	}
	// Whoever is broken is not chosen for its low load.
	b.load.Add(3)
	defer b.load.Add(-3)
	if got := spread(p, 10); got[b] != 10 {
		t.Errorf("unexpected choice %v", got)
	}
}

func TestRetry_AttemptsBudgetAndOthersFirst(t *testing.T) {
	p := idlePool(t, 3, func(s *PoolSpec) { s.Retry = Retry{Attempts: 3, Budget: 0.5} })
	failed := p.Pick()
	failed.Release()
	for range 5 {
		w := p.Retry(2, failed, nil)
		if w == nil || w == failed {
			t.Fatalf("unexpected worker %v for the second try", w)
		}
		w.Release()
	}
	if w := p.Retry(4, failed, nil); w != nil {
		t.Errorf("a fourth try of three")
	}
	tries := 0
	for w := p.Retry(2, failed, nil); w != nil; w = p.Retry(2, failed, nil) {
		w.Release()
		tries++
	}
	if tries != retryBurst-5 || p.Exhausted() != 1 {
		t.Errorf("unexpected number of retries %d, exhausted %d", tries, p.Exhausted())
	}
	for range 2 { // two requests pay for one retry
		p.Pick().Release()
	}
	w := p.Retry(2, failed, nil)
	if w == nil {
		t.Fatal("no retry after the budget was earned")
	}
	w.Release()
	if w := p.Retry(2, failed, nil); w != nil {
		t.Errorf("a retry beyond the budget")
	}
	for _, w := range p.Workers() {
		if w.Load() != 0 {
			t.Errorf("unexpected load %d", w.Load())
		}
	}
}

func TestRetry_NoneMeansOneTry(t *testing.T) {
	for _, attempts := range []int{0, 1} {
		p := idlePool(t, 3, func(s *PoolSpec) { s.Retry = Retry{Attempts: attempts, Budget: 1} })
		w := p.Pick()
		if got := p.Retry(2, w, nil); got != nil {
			t.Errorf("attempts %d: a second try", attempts)
		}
		w.Release()
	}
	p := idlePool(t, 1, func(s *PoolSpec) { s.Retry = Retry{Attempts: 3, Budget: 1} })
	w := p.Pick()
	if got := p.Retry(2, w, nil); got != nil {
		t.Errorf("a second try of the only worker")
	}
	w.Release()
	p = idlePool(t, 2, func(s *PoolSpec) { s.Retry = Retry{Attempts: 3, Budget: 0} })
	w = p.Pick()
	if got := p.Retry(2, w, nil); got != nil {
		t.Errorf("a second try without a budget")
	}
	w.Release()
}

// B74, B76: only results in a row reach a threshold; 429 is a good one.
func TestB74_B76_HealthThresholds(t *testing.T) {
	verdict := make(chan string)
	script := func(p *peer) {
		for {
			if _, _, ok := p.request(); !ok {
				return
			}
			select {
			case status := <-verdict:
				p.send("HTTP/1.1 " + status + " X\r\nContent-Length: 0\r\n\r\n")
			case <-p.stop:
				return
			}
		}
	}
	e := play(t, script)
	p, err := NewPool(PoolSpec{Name: "p", Workers: []WorkerSpec{{URL: e.url}}, Balance: Random, Health: Health{
		Path: "/health", Interval: 2 * time.Millisecond, Timeout: patience, UnhealthyAfter: 3, HealthyAfter: 2,
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	w := p.Workers()[0]
	say := func(status string, want bool) {
		t.Helper()
		before := w.probes.Load()
		verdict <- status
		for end := time.Now().Add(patience); w.probes.Load() == before; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the probe does not end")
			}
		}
		for end := time.Now().Add(100 * time.Millisecond); w.Healthy() != want && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		if got := w.Healthy(); got != want || (p.Usable() == 1) != want {
			t.Fatalf("%s: unexpected health %v, %d usable; want %v", status, got, p.Usable(), want)
		}
	}
	for _, s := range []string{"500", "200", "503", "500", "429", "500", "404", "500", "500"} {
		say(s, true)
	}
	say("500", false) // the third in a row
	if got := p.Pick(); got != nil {
		t.Fatalf("a worker that is not well is chosen: %v", got)
	}
	say("200", false)
	say("500", false)
	say("200", false)
	say("200", true) // the second in a row
}

func TestHealth_SilenceAndTraffic(t *testing.T) {
	silent := func(p *peer) { p.wait() }
	start := func(open bool) (*Pool, *Worker) {
		e := play(t, silent)
		p, err := NewPool(PoolSpec{Name: "p", Workers: []WorkerSpec{{URL: e.url}}, Balance: Random, Health: Health{
			Path: "/health", Interval: 20 * time.Millisecond, Timeout: 5 * time.Millisecond, UnhealthyAfter: 1, HealthyAfter: 1, FailOpen: open,
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		return p, p.Workers()[0]
	}
	p, w := start(false)
	waitFor(t, "the silent worker to be left alone", func() bool { return !w.Healthy() && p.Usable() == 0 })
	p, w = start(true)
	waitFor(t, "the silent worker to be found", func() bool { return !w.Healthy() })
	if got := p.Pick(); got != w {
		t.Errorf("fail open: unexpected choice %v", got)
	}
	w.Release()
	// Probes that are late do not count while traffic is served well.
	_, w = start(false)
	w.lastGood.Store(time.Now().Add(time.Hour).UnixNano()) // as if it never ended
	waitFor(t, "ten late probes that do not count", func() bool { return w.probes.Load() >= 10 && w.Healthy() })
}

func TestHealth_EndsWithThePool(t *testing.T) {
	e := play(t, func(p *peer) { p.wait() })
	p, err := NewPool(PoolSpec{Name: "p", Workers: []WorkerSpec{{URL: e.url}}, Balance: Random, Health: Health{
		Path: "/", Interval: time.Millisecond, Timeout: patience, UnhealthyAfter: 1, HealthyAfter: 1,
	}})
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "a probe to be under way", func() bool { return e.accepted.Load() == 1 })
	start := time.Now()
	p.Close() // does not wait for the probe
	if d := time.Since(start); d > patience/2 {
		t.Errorf("Close took %v", d)
	}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("still waiting for: %s", what)
		}
	}
}
