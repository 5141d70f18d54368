package upstream

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Class is how an exchange ended, as far as it ended at the worker: one whose
// answer was not read to its end, because the client left or another try was
// made, may have none.
type Class uint8

// The classes.
const (
	ClassOK          Class = iota // a whole answer below 400
	ClassClientError              // one from 400 to 499
	ClassBusy                     // one with 429 or 503
	ClassServerError              // another one from 500 on
	ClassConnect                  // and those of the Faults
	ClassClosed
	ClassProtocol
	ClassTimeout
	ClassIncomplete
	ClassCanceled
	// NumClasses is how many there are.
	NumClasses
)

// String returns the class as metrics name it.
func (c Class) String() string {
	return [NumClasses]string{
		"ok", "client_error", "busy", "server_error", "connect", "closed", "protocol", "timeout", "incomplete", "canceled",
	}[c]
}

// statusClass returns the class of a whole answer.
func statusClass(status int) Class {
	switch {
	case status == 429, status == 503:
		return ClassBusy
	case status >= 500:
		return ClassServerError
	case status >= 400:
		return ClassClientError
	}
	return ClassOK
}

var faultClasses = [...]Class{
	FaultConnect: ClassConnect, FaultClosed: ClassClosed, FaultProtocol: ClassProtocol,
	FaultFirstByte: ClassTimeout, FaultBetween: ClassTimeout, FaultTotal: ClassTimeout,
	FaultIncomplete: ClassIncomplete, FaultCanceled: ClassCanceled,
}

// Counters are what a worker, or all workers that a pool has ever had, did. They
// only grow.
type Counters struct {
	// Picks is how often a worker was chosen.
	Picks uint64
	// Ends is how exchanges ended, by Class.
	Ends [NumClasses]uint64
	// Resends is how many requests were sent once more to the same worker,
	// because a connection that had rested was closed. They are no retries.
	Resends uint64
	// BreakerChanges is how often a breaker has changed its state.
	BreakerChanges uint64
	// Connect is how long it took to make connections, with their TLS session or
	// the beginning of h2c. FirstByte is the time from sending a request to the
	// head of its answer.
	Connect, FirstByte Times
}

func (c *Counters) add(o *Counters) {
	c.Picks += o.Picks
	c.Resends += o.Resends
	c.BreakerChanges += o.BreakerChanges
	for i := range c.Ends {
		c.Ends[i] += o.Ends[i]
	}
	c.Connect.add(&o.Connect)
	c.FirstByte.add(&o.FirstByte)
}

// firstBound is the lowest of TimeBounds, each of which is twice the one before.
const firstBound = 500 * time.Microsecond

// numBounds is how many there are: up to 65.536 s.
const numBounds = 18

// TimeBounds returns the upper bounds of Times, which are inclusive.
func TimeBounds() (bounds [numBounds]time.Duration) {
	for i := range bounds {
		bounds[i] = firstBound << i
	}
	return bounds
}

// Times is a histogram of durations.
type Times struct {
	// Buckets is how many there were up to each of TimeBounds and above the one
	// before; the last one is those above all bounds.
	Buckets [numBounds + 1]uint64
	// Sum is that of all.
	Sum time.Duration
}

// Count returns how many there were.
func (t *Times) Count() (n uint64) {
	for _, b := range t.Buckets {
		n += b
	}
	return n
}

func (t *Times) add(o *Times) {
	t.Sum += o.Sum
	for i, n := range o.Buckets {
		t.Buckets[i] += n
	}
}

// times counts Times without a lock.
type times struct {
	buckets [numBounds + 1]atomic.Uint64
	sum     atomic.Int64
}

func (t *times) observe(d time.Duration) {
	d = max(d, 1)
	i := bits.Len64(uint64(d-1) / uint64(firstBound))
	t.buckets[min(i, numBounds)].Add(1)
	t.sum.Add(int64(d))
}

// read returns what was counted. Under traffic the sum may be off by what is
// being counted.
func (t *times) read() (r Times) {
	for i := range t.buckets {
		r.Buckets[i] = t.buckets[i].Load()
	}
	r.Sum = time.Duration(t.sum.Load())
	return r
}

// counters is what a backend counts beside its choice.
type counters struct {
	ends      [NumClasses]atomic.Uint64
	resends   atomic.Uint64
	connect   times
	firstByte times
}

// The hooks of an exchange. They cost an atomic addition or two each.

// observeConnect counts a connection that took d to make.
func (b *backend) observeConnect(d time.Duration) { b.connect.observe(d) }

// observeFirstByte counts an answer whose head came d after its request.
func (b *backend) observeFirstByte(d time.Duration) { b.firstByte.observe(d) }

// observeAnswer counts a whole answer.
func (b *backend) observeAnswer(status int) { b.ends[statusClass(status)].Add(1) }

// observeFault counts an exchange that failed.
func (b *backend) observeFault(f Fault) { b.ends[faultClasses[f]].Add(1) }

// observePiece notes that a piece of an answer came: a worker that streams is
// well, however slow it is to answer probes.
func (b *backend) observePiece(now time.Time) { b.lastGood.Store(now.UnixNano()) }

// observeResend counts a request that is sent once more over another connection.
func (b *backend) observeResend() { b.resends.Add(1) }

// Counters returns what the worker has done since it joined.
func (w *Worker) Counters() Counters {
	c := Counters{
		Picks:          w.picks.Load(),
		Resends:        w.resends.Load(),
		BreakerChanges: w.trips.Load(),
		Connect:        w.connect.read(),
		FirstByte:      w.firstByte.read(),
	}
	for i := range c.Ends {
		c.Ends[i] = w.ends[i].Load()
	}
	return c
}

// Counters returns what all workers have done that the pool has or had.
func (p *Pool) Counters() Counters {
	p.changes.Lock()
	defer p.changes.Unlock()
	c := p.departed
	for _, w := range p.Workers() {
		one := w.Counters()
		c.add(&one)
	}
	for _, w := range p.leavers {
		one := w.Counters()
		c.add(&one)
	}
	return c
}
