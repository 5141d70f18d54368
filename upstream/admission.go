package upstream

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Limits bound the requests under way. Zero means no bound.
type Limits struct {
	// PerWorker bounds them for each worker, Pool for all workers together.
	PerWorker, Pool int
	// Queue is how many requests may wait for a place, first come, first
	// served, and QueueTimeout how long each of them.
	Queue        int
	QueueTimeout time.Duration
}

// Why Acquire and Wait gave no worker.
var (
	// ErrNoWorkers: no worker is usable.
	ErrNoWorkers = errors.New("no worker is usable")
	// ErrFull: every usable worker has as much as it may have. Wait waits.
	ErrFull = errors.New("all workers are full")
	// ErrQueueFull: as many requests wait as may.
	ErrQueueFull = errors.New("the queue is full")
	// ErrQueueTimeout: no place became free in time.
	ErrQueueTimeout = errors.New("no worker became free in time")
	// ErrCanceled: Ticket.Cancel was called.
	ErrCanceled = errors.New("canceled while waiting for a worker")
)

// admission is the part of a pool that bounds requests.
type admission struct {
	_        [64]byte     // each request writes to the next one, and reads the rest
	inFlight atomic.Int64 // of the workers that are settings.counted
	_        [64]byte

	rate atomic.Uint64 // releases a minute, smoothed
	full atomic.Uint64 // refused by a full queue
	late atomic.Uint64 // refused by the deadline

	queued atomic.Int64 // the length of the queue, read without the lock

	qmu         sync.Mutex // taken before Pool.mu
	first, last *Ticket
}

// Ticket is a place in a pool's queue. The caller owns it and may use it again
// after Wait has returned; the zero value is ready.
type Ticket struct {
	granted    chan *Worker  // of one place
	canceled   chan struct{} // of one place
	timer      *time.Timer
	key        *Key // of one place
	prev, next *Ticket
	queued     bool
}

// init makes what the ticket needs, at its first use.
func (t *Ticket) init(d time.Duration) {
	if t.granted == nil {
		t.granted = make(chan *Worker, 1)
		t.canceled = make(chan struct{}, 1)
		t.timer = time.NewTimer(d)
		return
	}
	t.timer.Reset(d)
}

// Prepare makes t ready to be canceled, before the Wait that Cancel may come
// before.
func (t *Ticket) Prepare() {
	if t.canceled == nil {
		t.init(time.Hour)
	}
	select {
	case <-t.canceled: // of an earlier use
	default:
	}
}

// Cancel makes Wait return ErrCanceled. It may be called from any goroutine
// after Prepare.
func (t *Ticket) Cancel() {
	select {
	case t.canceled <- struct{}{}:
	default:
	}
}

// Acquire chooses a worker for a request and counts it there until Release. A
// worker whose breaker has cooled down is chosen once, to try it. The error is
// ErrNoWorkers, or ErrFull, after which Wait may be called. k is what the choice
// may depend on, see Affinity; nil is no key.
func (p *Pool) Acquire(k *Key) (*Worker, error) {
	p.conf.Load().budget.earn()
	if p.queued.Load() == 0 { // nobody is overtaken
		if w := p.pick(k.orNone(), nil); w != nil {
			return w, nil
		}
	}
	if p.Usable() == 0 {
		return nil, ErrNoWorkers
	}
	p.dispatch() // see admit
	return nil, ErrFull
}

// Wait waits in the pool's queue for a worker, which is counted as by Acquire.
// The key must not change meanwhile.
func (p *Pool) Wait(t *Ticket, k *Key) (*Worker, error) {
	t.key = k.orNone()
	t.init(p.conf.Load().limits.QueueTimeout)
	defer t.timer.Stop()
	if !p.enqueue(t) {
		p.full.Add(1)
		return nil, ErrQueueFull
	}
	select {
	case w := <-t.granted:
		return w, nil
	case <-t.timer.C:
		p.late.Add(1)
		return p.leave(t, ErrQueueTimeout)
	case <-t.canceled:
		if w, _ := p.leave(t, nil); w != nil { // granted at the same moment
			p.unpick(w)
		}
		return nil, ErrCanceled
	}
}

// enqueue puts t at the end of the queue, if there is room. A place that became
// free since Acquire is given out: whoever frees one looks at queued after it.
func (p *Pool) enqueue(t *Ticket) bool {
	p.qmu.Lock()
	defer p.qmu.Unlock()
	if p.queued.Load() >= int64(p.conf.Load().limits.Queue) {
		return false
	}
	t.prev, t.next, t.queued = p.last, nil, true
	if p.last != nil {
		p.last.next = t
	} else {
		p.first = t
	}
	p.last = t
	p.queued.Add(1)
	p.dispatchLocked()
	return true
}

// leave takes t out of the queue and returns err, or the worker that was
// granted meanwhile.
func (p *Pool) leave(t *Ticket, err error) (*Worker, error) {
	p.qmu.Lock()
	defer p.qmu.Unlock()
	if !t.queued {
		return <-t.granted, nil
	}
	p.removeLocked(t)
	return nil, err
}

func (p *Pool) removeLocked(t *Ticket) {
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		p.first = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	} else {
		p.last = t.prev
	}
	t.prev, t.next, t.queued = nil, nil, false
	p.queued.Add(-1)
}

// dispatch gives free places to those who wait, in their order.
func (p *Pool) dispatch() {
	if p.queued.Load() == 0 { // Fast path
		return
	}
	p.qmu.Lock()
	defer p.qmu.Unlock()
	p.dispatchLocked()
}

func (p *Pool) dispatchLocked() {
	for p.first != nil {
		t := p.first
		w := p.pick(t.key, nil)
		if w == nil {
			return
		}
		p.removeLocked(t)
		t.granted <- w
	}
}

// admit counts one more request on w, unless that would be too many. In between
// it may count one on the pool that it takes back, so that somebody who waits
// is passed over: callers outside of the queue end with dispatch.
func (p *Pool) admit(w *Worker) bool {
	limits := &w.conf.limits
	if m := int64(limits.Pool); m > 0 {
		if !below(&p.inFlight, m) {
			return false
		}
	} else if w.conf.counted {
		p.inFlight.Add(1)
	}
	if m := int64(limits.PerWorker); m == 0 {
		w.load.Add(1)
	} else if !below(&w.load, m) {
		if w.conf.counted {
			p.inFlight.Add(-1)
		}
		return false
	}
	// It was removed since the caller read the roster. This is read after load
	// was written, and retireLeavers does it the other way round.
	if w.leaving.Load() {
		p.takeBack(w)
		return false
	}
	w.picks.Add(1)
	return true
}

// takeBack takes a request from w and the pool, where w counts there.
func (p *Pool) takeBack(w *Worker) {
	n := w.load.Add(-1)
	if n < 0 {
		panic("BUG: worker released more often than picked")
	}
	if w.conf.counted {
		p.inFlight.Add(-1)
	}
	if n == 0 && w.leaving.Load() {
		p.wakeReaper()
	}
}

// below adds one to n where it stays at or below most. It never shows more in
// passing: somebody else would think the last place taken, and wait for ever.
func below(n *atomic.Int64, most int64) bool {
	for {
		v := n.Load()
		if v >= most {
			return false
		}
		if n.CompareAndSwap(v, v+1) {
			return true
		}
	}
}

// release takes back what admit did.
func (p *Pool) release(w *Worker) {
	p.takeBack(w)
	p.dispatch()
}

// measure smooths the rate of releases. The pool calls it once a second with
// what it has returned. Workers that have left since then count as if they had
// ended nothing.
func (p *Pool) measure(last uint64) (now uint64) {
	for _, w := range p.Workers() {
		now += w.picks.Load() - uint64(w.load.Load())
	}
	ended := uint64(max(int64(now-last), 0))
	p.rate.Store((p.rate.Load()*7 + ended*60) / 8)
	return now
}

// maxRetryAfter bounds what RetryAfter says, in seconds.
const maxRetryAfter = 60

// RetryAfter returns after how many seconds a refused request may find a place,
// by the length of the queue and the rate at which requests end.
func (p *Pool) RetryAfter() int {
	rate := max(p.rate.Load(), 1)
	return int(min(max((uint64(p.queued.Load())+1)*60/rate, 1), maxRetryAfter))
}

// Queued returns how many requests wait.
func (p *Pool) Queued() int { return int(p.queued.Load()) }

// Full returns how many requests a full queue has refused.
func (p *Pool) Full() uint64 { return p.full.Load() }

// Late returns how many requests waited in vain.
func (p *Pool) Late() uint64 { return p.late.Load() }

// Sleep waits for d, or until Cancel is called, after Prepare.
func (t *Ticket) Sleep(d time.Duration) {
	t.init(d)
	defer t.timer.Stop()
	select {
	case <-t.timer.C:
	case <-t.canceled:
	}
}
