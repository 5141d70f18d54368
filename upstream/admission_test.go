package upstream

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func limited(l Limits) func(*PoolSpec) {
	if l.QueueTimeout == 0 {
		l.QueueTimeout = patience
	}
	return func(s *PoolSpec) { s.Limits = l }
}

func TestLimits_PerWorkerAndPool(t *testing.T) {
	for _, balance := range Balances {
		p := idlePool(t, 3, func(s *PoolSpec) {
			limited(Limits{PerWorker: 2})(s)
			s.Balance = balance
		})
		var taken []*Worker
		for range 6 {
			w, err := p.Acquire(nil)
			if err != nil {
				t.Fatalf("%s: %v after %d", balance, err, len(taken))
			}
			taken = append(taken, w)
		}
		for _, w := range p.Workers() {
			if w.Load() != 2 {
				t.Errorf("%s: unexpected load %d", balance, w.Load())
			}
		}
		if _, err := p.Acquire(nil); !errors.Is(err, ErrFull) {
			t.Errorf("%s: unexpected error %v", balance, err)
		}
		if w := p.Retry(1, taken[0], nil); w != nil {
			t.Errorf("%s: a retry beyond the limit", balance)
		}
		for _, w := range taken {
			w.Release()
		}
	}
	p := idlePool(t, 3, limited(Limits{Pool: 2}))
	a, b := p.Pick(), p.Pick()
	if _, err := p.Acquire(nil); !errors.Is(err, ErrFull) {
		t.Errorf("pool: unexpected error %v", err)
	}
	a.Release()
	b.Release()
	p.Pick().Release()
}

func TestQueue_FirstComeFirstServed(t *testing.T) {
	p := idlePool(t, 1, limited(Limits{PerWorker: 1, Queue: 10}))
	w := p.Pick()
	order := make(chan int, 10)
	var all sync.WaitGroup
	for i := range 5 {
		all.Go(func() {
			w, err := p.Wait(new(Ticket), nil)
			if err != nil {
				t.Errorf("%d: %v", i, err)
				return
			}
			order <- i
			w.Release()
		})
		waitFor(t, "the request to wait", func() bool { return p.Queued() == i+1 })
	}
	if _, err := p.Acquire(nil); !errors.Is(err, ErrFull) {
		t.Errorf("unexpected error %v for one that would overtake", err)
	}
	w.Release()
	all.Wait()
	for want := range 5 {
		if got := <-order; got != want {
			t.Errorf("request %d was served as number %d", got, want)
		}
	}
}

func TestQueue_FullLateAndCanceled(t *testing.T) {
	p := idlePool(t, 1, limited(Limits{PerWorker: 1, Queue: 1, QueueTimeout: 20 * time.Millisecond}))
	w := p.Pick()
	var ticket Ticket
	for range 3 { // a ticket is used again
		start := time.Now()
		if _, err := p.Wait(&ticket, nil); !errors.Is(err, ErrQueueTimeout) || time.Since(start) < 20*time.Millisecond {
			t.Fatalf("unexpected error %v after %v", err, time.Since(start))
		}
	}
	if p.Late() != 3 || p.Queued() != 0 {
		t.Errorf("unexpected counts: late %d, queued %d", p.Late(), p.Queued())
	}
	w.Release()

	p = idlePool(t, 1, limited(Limits{PerWorker: 1, Queue: 1}))
	w = p.Pick()
	ticket = Ticket{}
	ticket.Prepare()
	ended := make(chan error)
	go func() {
		_, err := p.Wait(&ticket, nil)
		ended <- err
	}()
	waitFor(t, "the request to wait", func() bool { return p.Queued() == 1 })
	if _, err := p.Wait(new(Ticket), nil); !errors.Is(err, ErrQueueFull) || p.Full() != 1 {
		t.Errorf("unexpected error %v, %d refused", err, p.Full())
	}
	ticket.Cancel()
	if err := <-ended; !errors.Is(err, ErrCanceled) {
		t.Errorf("unexpected error %v", err)
	}
	ticket.Prepare()
	ticket.Cancel() // before Wait
	if _, err := p.Wait(&ticket, nil); !errors.Is(err, ErrCanceled) {
		t.Errorf("unexpected error %v", err)
	}
	if s := p.RetryAfter(); s < 1 || s > maxRetryAfter {
		t.Errorf("unexpected Retry-After %d", s)
	}
	w.Release()
	if n := p.Workers()[0].Load(); n != 0 {
		t.Errorf("unexpected load %d", n)
	}
}

// A worker that comes back serves those who wait.
func TestQueue_WakesForAWorkerThatComesBack(t *testing.T) {
	p := idlePool(t, 2, func(s *PoolSpec) {
		limited(Limits{PerWorker: 1, Queue: 10})(s)
		s.Breaker = Breaker{Failures: 1, Cooldown: 20 * time.Millisecond}
	})
	a, b := p.Pick(), p.Pick()
	p.Report(a, Failure)
	a.Release()
	w, err := p.Wait(new(Ticket), nil) // until the cooldown is over
	if err != nil || w != a {
		t.Fatalf("unexpected worker %v, %v", w, err)
	}
	p.Report(a, Success)
	a.Release()
	b.Release()
}

// No wake-up is lost: many clients fight for few places, leave, time out and
// cancel, and at the end everybody was served or told, and nothing is taken.
func TestQueue_NoLostWakeups(t *testing.T) {
	p := idlePool(t, 4, func(s *PoolSpec) {
		s.Balance = LeastRequests
		s.Limits = Limits{PerWorker: 2, Pool: 7, Queue: 40, QueueTimeout: patience}
	})
	var served, refused, canceled, now, most atomic.Int64
	var all sync.WaitGroup
	for c := range 64 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), 1))
			var ticket Ticket
			for range 300 {
				w, err := p.Acquire(nil)
				if errors.Is(err, ErrFull) {
					ticket.Prepare()
					var done sync.WaitGroup
					if r.IntN(4) == 0 {
						done.Go(ticket.Cancel)
					}
					w, err = p.Wait(&ticket, nil)
					done.Wait()
				}
				switch {
				case err == nil:
					served.Add(1)
					if n := now.Add(1); n > most.Load() {
						most.Store(n)
					}
					if r.IntN(8) == 0 {
						time.Sleep(time.Duration(r.IntN(100)) * time.Microsecond)
					}
					now.Add(-1)
					w.Release()
				case errors.Is(err, ErrCanceled):
					canceled.Add(1)
				case errors.Is(err, ErrQueueFull):
					refused.Add(1)
				default:
					t.Errorf("unexpected error %v", err)
				}
			}
		})
	}
	all.Wait()
	if n := served.Load() + refused.Load() + canceled.Load(); n != 64*300 {
		t.Errorf("%d requests are accounted for; want %d", n, 64*300)
	}
	if most.Load() > 7 {
		t.Errorf("%d requests at once; want at most 7", most.Load())
	}
	if p.Queued() != 0 || p.inFlight.Load() != 0 {
		t.Errorf("unexpected state at the end: %d queued, %d in flight", p.Queued(), p.inFlight.Load())
	}
	for _, w := range p.Workers() {
		if w.Load() != 0 {
			t.Errorf("unexpected load %d", w.Load())
		}
	}
}
