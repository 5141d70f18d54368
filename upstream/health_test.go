package upstream

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// urls returns the workers that may be chosen, in order.
func usableURLs(p *Pool) []string {
	var all []string
	for _, w := range p.usable.Load().workers {
		all = append(all, w.URL())
	}
	slices.Sort(all)
	return all
}

func wantUsable(t *testing.T, p *Pool, want ...string) {
	t.Helper()
	if got := usableURLs(p); !slices.Equal(got, want) {
		t.Fatalf("unexpected usable workers; got %q; want %q", got, want)
	}
}

// Probes do not take the last MinHealthy workers out: those that failed last
// stay in. A breaker and a drain do.
func TestB77_MinHealthy(t *testing.T) {
	const a, b, c = "http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3"
	spec := specOf(a, b, c)
	spec.Health.MinHealthy = 2
	p := newTestPool(t, spec)
	set := func(url string, healthy bool) { p.setHealthy(t.Context(), p.member(url), healthy) }
	set(a, false)
	wantUsable(t, p, b, c)
	set(b, false)
	wantUsable(t, p, b, c)
	set(c, false)
	wantUsable(t, p, b, c)
	if s, _ := p.member(b).State(); s != StateDown || p.member(b).Healthy() {
		t.Errorf("unexpected state %v of a worker that is kept", s)
	}
	set(a, true)
	wantUsable(t, p, a, c)
	set(c, true)
	wantUsable(t, p, a, c)

	for range 3 {
		p.Report(p.member(a), Failure)
	}
	wantUsable(t, p, b, c) // b is better than nothing
	mustChange(t, p.Drain(c))
	wantUsable(t, p, b)
	mustChange(t, p.Drain(b))
	wantUsable(t, p)
	if _, err := p.Acquire(nil); !errors.Is(err, ErrNoWorkers) {
		t.Errorf("unexpected error %v", err)
	}
}

// A fleet that fails its probes as one keeps some of them with real probes, too.
func TestB77_MinHealthyProbed(t *testing.T) {
	sick := play(t, always("HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n"))
	also := play(t, always("HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n"))
	spec := specOf(sick.url, also.url)
	spec.Health = Health{Path: "/", Interval: time.Millisecond, Timeout: patience, UnhealthyAfter: 1, HealthyAfter: 1, MinHealthy: 1}
	p := newTestPool(t, spec)
	waitFor(t, "both to be found down", func() bool { return !p.Workers()[0].Healthy() && !p.Workers()[1].Healthy() })
	waitFor(t, "one of them to be kept", func() bool { return p.Usable() == 1 })
	p.Pick().Release()
	spec.Health.MinHealthy = 0
	mustChange(t, p.Apply(spec))
	waitFor(t, "none of them to be kept", func() bool { return p.Usable() == 0 })
}

// TestHealth_TrafficOutweighsLateProbes has a worker that serves traffic and is
// too slow for probes. It stays until traffic fails to tell that it is well; a
// probe that is refused, and not late, counts at once.
func TestHealth_TrafficOutweighsLateProbes(t *testing.T) {
	var refuse atomic.Bool
	e := play(t, func(p *peer) {
		for {
			head, _, ok := p.request()
			switch {
			case !ok:
				return
			case head[:4] == "POST":
				p.send(okAnswer)
			case refuse.Load():
				p.send("HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n")
			}
		}
	})
	for _, kind := range []string{"answers", "a stream", "silence", "refusal"} {
		refuse.Store(kind == "refusal")
		spec := specOf(e.url)
		spec.Health = Health{Path: "/", Interval: 200 * time.Millisecond, Timeout: 2 * time.Millisecond, UnhealthyAfter: 3, HealthyAfter: 1}
		p := newTestPool(t, spec)
		w := p.Workers()[0]
		end := time.Now().Add(patience)
		for w.probes.Load() < 5 && w.Healthy() && time.Now().Before(end) {
			switch kind {
			case "a stream":
				w.observePiece(time.Now())
			case "answers", "refusal":
				var x Exchange
				mustDo(t, &x, p.Pick(), "ok")
				p.Report(w, Success)
				w.Release()
			}
			time.Sleep(time.Millisecond)
		}
		if want := kind == "answers" || kind == "a stream"; w.Healthy() != want {
			t.Errorf("%s: unexpected health %v after %d probes", kind, w.Healthy(), w.probes.Load())
		}
	}
}

// Probes follow the settings: they end, begin and change with them, and when
// there are none every worker counts as well.
func TestApply_Probes(t *testing.T) {
	var path atomic.Value
	path.Store("")
	e := play(t, func(p *peer) {
		for {
			head, _, ok := p.request()
			if !ok {
				return
			}
			var method, target string
			if _, err := fmt.Sscan(head, &method, &target); err != nil {
				return
			}
			path.Store(target)
			p.send("HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n")
		}
	})
	spec := specOf(e.url)
	p := newTestPool(t, spec)
	spec.Health = Health{Path: "/a", Interval: time.Millisecond, Timeout: patience, UnhealthyAfter: 1, HealthyAfter: 1}
	mustChange(t, p.Apply(spec))
	waitFor(t, "the worker to be found down", func() bool { return p.Usable() == 0 && path.Load() == "/a" })
	since := func() time.Time { _, since := p.Workers()[0].State(); return since }
	before := since()
	spec.Health.Path = "/b"
	mustChange(t, p.Apply(spec))
	waitFor(t, "another path to be asked for", func() bool { return path.Load() == "/b" })
	if since() != before {
		t.Error("the state has changed with the settings")
	}
	spec.Health.Interval = 0
	mustChange(t, p.Apply(spec))
	if p.Usable() != 1 || !p.Workers()[0].Healthy() {
		t.Error("a worker that is not probed is down")
	}
}

// A drained worker is probed on, and finishes what it has.
func TestB79_DrainedIsProbed(t *testing.T) {
	e := play(t, always(okAnswer))
	spec := specOf(e.url, "http://127.0.0.1:1")
	spec.Health = Health{Path: "/", Interval: time.Millisecond, Timeout: patience, UnhealthyAfter: 1, HealthyAfter: 1, FailOpen: true}
	p := newTestPool(t, spec)
	w := p.Workers()[0]
	p.admit(w)
	mustChange(t, p.Drain(w.URL()))
	n := w.probes.Load()
	waitFor(t, "more probes", func() bool { return w.probes.Load() > n+3 })
	if s, _ := w.State(); s != StateDraining {
		t.Errorf("unexpected state %v", s)
	}
	for range 10 {
		got := p.Pick()
		if got == nil || got.URL() == w.URL() {
			t.Fatalf("unexpected worker %v", got)
		}
		got.Release()
	}
	var x Exchange
	mustDo(t, &x, w, "ok")
	w.Release()
	mustChange(t, p.Undrain(w.URL()))
	waitFor(t, "the worker to be chosen", func() bool {
		got := p.Pick()
		got.Release()
		return got.URL() == w.URL()
	})
}
