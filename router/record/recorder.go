package record

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// The values of Options.Store.
const (
	Off      = "off"
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// What Options has where it says nothing.
const (
	DefaultQueue = 8192
	DefaultBatch = 256
	DefaultFlush = time.Second
)

// Options says where rows go and how.
type Options struct {
	// Store is Off, SQLite or Postgres.
	Store string
	// DSN is the path of a file for SQLite, and for Postgres a URL or key=value
	// pairs as libpq reads them. It may hold a password and is never shown.
	DSN string
	// Queue is how many rows may wait for the database.
	Queue int
	// Batch is how many rows are written at once, at most.
	Batch int
	// Flush is how long a row waits for its batch to fill. It is also how often
	// a database that is down is tried, at most.
	Flush time.Duration
	// Retain is how long rows are kept. Zero keeps them for ever.
	Retain time.Duration
	// Required makes Open fail where the database cannot be used.
	Required bool
	// Log gets at most one warning a minute, and word of the end of each
	// trouble it was warned of. Nil is no log.
	Log *slog.Logger
}

// Recorder takes rows and has them written. It is safe for concurrent use. Every
// method of a nil Recorder does nothing.
type Recorder struct {
	queue chan *Row
	batch int
	kick  chan struct{} // a whole batch waits
	free  sync.Pool     // of *Row

	written, batches, pruned atomic.Uint64
	dropped                  [numReasons]atomic.Uint64
	up                       atomic.Bool
	lastError                atomic.Int64 // UnixNano

	closeOnce sync.Once
	closing   chan struct{} // nothing more is taken
	closed    atomic.Bool   // as closing
	swept     atomic.Bool   // what is still in the queue is lost
	cancel    context.CancelFunc
	ended     chan struct{} // the writer has
}

// reason says why a row was dropped.
type reason uint8

const (
	queueFull reason = iota
	storeError
	isClosed
	numReasons
)

// Open starts to record. A wrong option is an error. So is a database that
// cannot be used, if it is required; otherwise it is tried again and again while
// the Recorder runs. With the store Off, Open returns a nil Recorder.
//
// The Recorder must be closed.
func Open(o Options) (*Recorder, error) {
	open, err := o.opener()
	if open == nil || err != nil {
		return nil, err
	}
	if o.Queue < 0 || o.Batch < 0 || o.Flush < 0 || o.Retain < 0 {
		return nil, fmt.Errorf("cannot record with a queue of %d, batches of %d, flush %v and retain %v: must not be negative", o.Queue, o.Batch, o.Flush, o.Retain)
	}
	return start(o, open)
}

// opener returns what opens the store, or nil where there is none.
func (o *Options) opener() (opener, error) {
	switch o.Store {
	case Off:
		return nil, nil
	case SQLite:
		if fault := checkSQLite(o.DSN); fault != "" {
			return nil, errors.New("cannot record in SQLite: " + fault)
		}
		return func(ctx context.Context) (store, error) { return openSQLite(ctx, o.DSN) }, nil
	case Postgres:
		c, err := parsePostgres(o.DSN)
		if err != nil {
			return nil, fmt.Errorf("cannot record in PostgreSQL: %w", err)
		}
		return func(ctx context.Context) (store, error) { return openPostgres(ctx, c) }, nil
	}
	return nil, fmt.Errorf("unknown store %q: want %s, %s or %s", o.Store, SQLite, Postgres, Off)
}

// start is Open with a store of any kind.
func start(o Options, open opener) (*Recorder, error) {
	if o.Queue == 0 {
		o.Queue = DefaultQueue
	}
	if o.Batch == 0 {
		o.Batch = DefaultBatch
	}
	if o.Flush == 0 {
		o.Flush = DefaultFlush
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &Recorder{
		queue:   make(chan *Row, o.Queue),
		batch:   min(o.Batch, o.Queue),
		kick:    make(chan struct{}, 1),
		closing: make(chan struct{}),
		cancel:  cancel,
		ended:   make(chan struct{}),
	}
	r.free.New = func() any {
		w := new(Row)
		w.reset()
		return w
	}
	w := newWriter(ctx, r, o, open)
	if o.Required {
		if err := w.connect(); err != nil {
			cancel()
			return nil, fmt.Errorf("cannot open the database for records: %w", err)
		}
	}
	go w.run()
	return r, nil
}

// Get returns an empty row, which must be given to Add or Put. A nil Recorder
// returns nil.
func (r *Recorder) Get() *Row {
	if r == nil {
		return nil
	}
	return r.free.Get().(*Row)
}

// Put takes back a row that is not to be recorded.
func (r *Recorder) Put(w *Row) {
	if r == nil {
		return
	}
	w.reset()
	r.free.Put(w)
}

// Add takes a row to be written. It never waits: where the queue is full, the row
// is dropped and counted. The row must not be touched afterwards.
func (r *Recorder) Add(w *Row) {
	if r == nil {
		return
	}
	if w.CreatedAt.IsZero() {
		w.CreatedAt = time.Now()
	}
	w.bound()
	if r.closed.Load() {
		r.drop(w, isClosed)
		return
	}
	select {
	case r.queue <- w:
	default:
		r.drop(w, queueFull)
		return
	}
	// The writer is not woken for each row.
	if len(r.queue) >= r.batch {
		select {
		case r.kick <- struct{}{}:
		default:
		}
	}
	if r.swept.Load() { // closed was not set a moment ago
		r.sweep()
	}
}

func (r *Recorder) drop(w *Row, why reason) {
	r.dropped[why].Add(1)
	r.Put(w)
}

// sweep drops what is in the queue when nobody is left to write it.
func (r *Recorder) sweep() {
	for {
		select {
		case w := <-r.queue:
			r.drop(w, isClosed)
		default:
			return
		}
	}
}

// Close writes what is queued, as long as ctx allows, and ends the Recorder; to
// leave a database that does not answer takes a second more. Rows that are added
// afterwards are dropped. The error says how many rows were lost
// here. Further calls wait for the first.
func (r *Recorder) Close(ctx context.Context) error {
	if r == nil {
		return nil
	}
	before := r.dropped[isClosed].Load() + r.dropped[storeError].Load()
	r.closeOnce.Do(func() {
		r.closed.Store(true)
		close(r.closing)
	})
	stop := context.AfterFunc(ctx, r.cancel)
	defer stop()
	<-r.ended
	r.cancel()
	if n := r.dropped[isClosed].Load() + r.dropped[storeError].Load() - before; n > 0 {
		return fmt.Errorf("%d rows could not be recorded before the end", n)
	}
	return nil
}

// Stats is what a Recorder has done and how it is. The counters never fall.
type Stats struct {
	// Written counts the rows that are in the database, and Batches the
	// transactions that it took.
	Written, Batches uint64
	// DroppedQueueFull counts rows that found the queue full, DroppedStoreError
	// those that the database did not take in several tries or may not have
	// taken, DroppedClosed those of which Close could not wait for the end, or
	// that came after it.
	DroppedQueueFull, DroppedStoreError, DroppedClosed uint64
	// Pruned counts the rows that were deleted since they were too old.
	Pruned uint64
	// Queued is how many rows wait.
	Queued int
	// Up reports that the database was well when it was last used.
	Up bool
	// LastError is the time of the last trouble with it, zero if there was none.
	LastError time.Time
}

// Stats returns the present state. It neither waits nor allocates, but its
// numbers are not all of one moment.
func (r *Recorder) Stats() Stats {
	if r == nil {
		return Stats{}
	}
	s := Stats{
		Written: r.written.Load(), Batches: r.batches.Load(), Pruned: r.pruned.Load(),
		DroppedQueueFull:  r.dropped[queueFull].Load(),
		DroppedStoreError: r.dropped[storeError].Load(),
		DroppedClosed:     r.dropped[isClosed].Load(),
		Queued:            len(r.queue),
		Up:                r.up.Load(),
	}
	if ns := r.lastError.Load(); ns != 0 {
		s.LastError = time.Unix(0, ns)
	}
	return s
}
