package upstream

import (
	"testing"
	"time"
)

func TestTimes_Buckets(t *testing.T) {
	bounds := TimeBounds()
	if last := bounds[numBounds-1]; last != 65536*time.Millisecond {
		t.Fatalf("unexpected last bound %v", last)
	}
	f := func(d time.Duration, want int) {
		t.Helper()
		var h times
		h.observe(d)
		got := h.read()
		if got.Buckets[want] != 1 || got.Count() != 1 || got.Sum != max(d, 1) {
			t.Errorf("%v: unexpected histogram %+v; want it in bucket %d", d, got, want)
		}
	}
	f(-time.Second, 0)
	f(0, 0)
	for i, b := range bounds {
		f(b, i)
		f(b+1, i+1)
	}
	f(time.Hour, numBounds)
}

func TestClasses(t *testing.T) {
	for status, want := range map[int]Class{
		200: ClassOK, 304: ClassOK, 400: ClassClientError, 404: ClassClientError, 429: ClassBusy,
		500: ClassServerError, 502: ClassServerError, 503: ClassBusy, 504: ClassServerError,
	} {
		if got := statusClass(status); got != want {
			t.Errorf("%d: unexpected class %v; want %v", status, got, want)
		}
	}
	for f := FaultConnect; f <= FaultCanceled; f++ {
		if c := faultClasses[f]; c < ClassConnect || f.Timeout() != (c == ClassTimeout) {
			t.Errorf("%v: unexpected class %v", f, c)
		}
	}
	for c := range NumClasses {
		if c.String() == "" {
			t.Errorf("class %d has no name", c)
		}
	}
}

// What a worker did stays in the sums of its pool when it is gone, and nothing
// of it is counted twice.
func TestCounters_OutliveTheWorker(t *testing.T) {
	e := play(t, always(okAnswer))
	spec := specOf(e.url)
	spec.Sources = []string{"file"}
	p := newTestPool(t, spec)
	w := p.Pick()
	var x Exchange
	mustDo(t, &x, w, "ok")
	w.observeFirstByte(time.Second)
	w.observeAnswer(200)
	w.observeFault(FaultBetween)
	w.observeResend()
	for range 3 {
		p.Report(w, Failure) // the last usable one is kept
	}
	want := w.Counters()
	if want.Picks != 1 || want.Connect.Count() != 1 || want.Connect.Sum <= 0 || want.Resends != 1 || want.Ends[ClassTimeout] != 1 {
		t.Fatalf("unexpected counters %+v", want)
	}
	check := func(when string) {
		t.Helper()
		if got := p.Counters(); got != want {
			t.Errorf("unexpected counters %s; got %+v; want %+v", when, got, want)
		}
	}
	check("of the pool")
	spec.Workers = nil
	mustChange(t, p.Apply(spec))
	check("while it leaves")
	w.Release()
	waitFor(t, "the worker to be gone", func() bool {
		p.changes.Lock()
		defer p.changes.Unlock()
		return len(p.leavers) == 0
	})
	check("after it left")
}

func TestBackoff_Bounds(t *testing.T) {
	b := Backoff{Base: 25 * time.Millisecond, Max: 250 * time.Millisecond}
	for n, want := range map[int]time.Duration{2: 25, 3: 50, 4: 100, 5: 200, 6: 250, 7: 250, 1000: 250} {
		if got := b.bound(n); got != want*time.Millisecond {
			t.Errorf("try %d: unexpected bound %v; want %v ms", n, got, int(want))
		}
	}
	if got := (Backoff{Base: time.Second, Max: time.Millisecond}).bound(9); got != time.Second {
		t.Errorf("unexpected bound %v below the base", got)
	}
	if got := (Backoff{Base: 1, Max: 1<<63 - 1}).bound(1000); got != 1<<63-1 {
		t.Errorf("unexpected bound %v", got)
	}
}

// The wait is drawn from the whole of what it may be. The bounds that are asked
// of its mean lie more than 8 standard deviations from what is expected.
func TestBackoff_FullJitter(t *testing.T) {
	spec := specOf("http://127.0.0.1:1")
	spec.Retry.Backoff = Backoff{Base: 25 * time.Millisecond, Max: 250 * time.Millisecond}
	p := newTestPool(t, spec)
	const draws = 20_000
	f := func(n int, why RetryReason, bound time.Duration) {
		t.Helper()
		var sum, most time.Duration
		for range draws {
			d := p.Backoff(n, why)
			sum, most = sum+d, max(most, d)
		}
		if mean := sum / draws; most > bound || mean < bound*48/100 || mean > bound*52/100 {
			t.Errorf("try %d, %v: unexpected waits; got mean %v, most %v; want them up to %v", n, why, mean, most, bound)
		}
	}
	f(2, Retry503, 25*time.Millisecond)
	f(3, RetryConnect, 50*time.Millisecond)
	f(9, RetryClosed, 250*time.Millisecond)
	if d := p.Backoff(2, RetryConnect); d != 0 {
		t.Errorf("unexpected wait %v for a worker that could not be reached", d)
	}
	if n := p.RetriesBy(); n[Retry503] != draws || n[RetryConnect] != draws+1 || n[Retry502] != 0 {
		t.Errorf("unexpected counts %v", n)
	}
	spec.Retry.Backoff = Backoff{}
	mustChange(t, p.Apply(spec))
	if d := p.Backoff(5, Retry503); d != 0 {
		t.Errorf("unexpected wait %v", d)
	}
}

func TestRetryReasons(t *testing.T) {
	for f, want := range map[Fault]RetryReason{FaultConnect: RetryConnect, FaultClosed: RetryClosed, FaultFirstByte: RetryFirstByte} {
		e := &Error{Fault: f}
		if got := e.Retry(); got != want || !e.Retriable() {
			t.Errorf("%v: unexpected reason %v; want %v", f, got, want)
		}
	}
	for status, want := range map[int]RetryReason{502: Retry502, 503: Retry503, 504: Retry504} {
		if got := StatusRetry(status); got != want || !RetryStatus(status) {
			t.Errorf("%d: unexpected reason %v; want %v", status, got, want)
		}
	}
}
