package record

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"
)

const (
	// maxTries is how often a batch is tried. Times at which the database cannot
	// be reached do not count: a batch that fails this often is at fault itself.
	maxTries = 3
	// The time between two tries doubles from minBackoff to maxBackoff.
	minBackoff = 100 * time.Millisecond
	maxBackoff = 30 * time.Second
	warnEvery  = time.Minute
	// Old rows are deleted pruneBatch at a time, with pruneAgain between two
	// batches, and looked for every pruneEvery.
	pruneBatch = 1000
	pruneAgain = 50 * time.Millisecond
	pruneEvery = time.Hour
)

// writer is what the goroutine of a Recorder has to itself.
type writer struct {
	r      *Recorder
	ctx    context.Context // ends when Close cannot wait any longer
	open   opener
	flush  time.Duration
	retain time.Duration
	log    *slog.Logger

	store   store         // nil while the database is down
	batch   []*Row        // taken from the queue, not yet written
	tries   int           // of batch
	backoff time.Duration // after the last failure, zero if there was none
	retryAt time.Time

	warnedAt time.Time
	warned   bool   // of a trouble that is not over
	lost     uint64 // rows dropped, as far as the log was told
}

func newWriter(ctx context.Context, r *Recorder, o Options, open opener) *writer {
	return &writer{
		r: r, ctx: ctx, open: open, flush: o.Flush, retain: o.Retain, log: o.Log,
		batch: make([]*Row, 0, r.batch),
	}
}

// run writes rows until the Recorder is closed.
func (w *writer) run() {
	defer close(w.r.ended)
	tick := time.NewTicker(w.flush)
	defer tick.Stop()
	prune := time.NewTimer(0)
	defer prune.Stop()
	if w.retain == 0 {
		prune.Stop()
	}
	if w.store == nil {
		w.ready()
	}
	for {
		// While the database is down, rows do not wake the writer.
		kick := w.r.kick
		if w.store == nil {
			kick = nil
		}
		select {
		case <-kick:
			w.write(w.r.batch)
		case <-tick.C:
			w.write(1)
			w.report()
		case <-prune.C:
			prune.Reset(w.prune())
		case <-w.r.closing:
			w.end()
			return
		}
	}
}

// write writes batches while at least n rows wait.
func (w *writer) write(n int) {
	for w.ready() {
		if len(w.batch) == 0 {
			if len(w.r.queue) < n {
				return
			}
			w.take()
		}
		if err := w.writeBatch(); err != nil {
			w.fail(err)
			return
		}
	}
}

// take fills the batch from the queue.
func (w *writer) take() {
	for len(w.batch) < cap(w.batch) {
		select {
		case row := <-w.r.queue:
			row.clean()
			w.batch = append(w.batch, row)
		default:
			return
		}
	}
}

func (w *writer) writeBatch() error {
	if len(w.batch) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(w.ctx, writeTimeout)
	defer cancel()
	if err := w.store.write(ctx, w.batch); err != nil {
		if w.ctx.Err() == nil {
			w.tries++
		}
		if w.tries == maxTries || errors.Is(err, errUnknown) {
			w.dropBatch(storeError)
		}
		return err
	}
	w.r.written.Add(uint64(len(w.batch)))
	w.r.batches.Add(1)
	for _, row := range w.batch {
		w.r.Put(row)
	}
	w.batch, w.tries, w.backoff = w.batch[:0], 0, 0
	return nil
}

func (w *writer) dropBatch(why reason) {
	for _, row := range w.batch {
		w.r.drop(row, why)
	}
	w.batch, w.tries = w.batch[:0], 0
}

// ready reports whether there is a store, and opens one when it is time to.
func (w *writer) ready() bool {
	if w.store != nil {
		return true
	}
	if time.Now().Before(w.retryAt) {
		return false
	}
	if err := w.connect(); err != nil {
		w.fail(err)
		return false
	}
	return true
}

func (w *writer) connect() error {
	s, err := w.open(w.ctx)
	if err != nil {
		return err
	}
	w.store = s
	w.r.up.Store(true)
	return nil
}

// fail gives up the store for a while.
func (w *writer) fail(err error) {
	w.trouble()
	w.closeStore()
	w.backoff = min(max(2*w.backoff, minBackoff), maxBackoff)
	// Routers that lost the same database must not come back as one.
	w.retryAt = time.Now().Add(w.backoff/2 + rand.N(w.backoff/2))
	w.warn("records cannot be written", err)
}

func (w *writer) trouble() { w.r.lastError.Store(time.Now().UnixNano()) }

func (w *writer) closeStore() {
	w.r.up.Store(false)
	if w.store == nil {
		return
	}
	if err := w.store.close(); err != nil {
		w.warn("cannot close the database for records", err)
	}
	w.store = nil
}

// warn logs a trouble, unless it has just done so.
func (w *writer) warn(text string, err error) {
	now := time.Now()
	if !w.warnedAt.IsZero() && now.Sub(w.warnedAt) < warnEvery {
		return
	}
	attrs := []any{"dropped", w.drops(), "queued", len(w.r.queue)}
	if err != nil {
		attrs = append(attrs, "error", err.Error())
	}
	w.log.Warn(text, attrs...)
	w.warnedAt, w.warned, w.lost = now, true, w.drops()
}

// report tells the log of rows that were dropped for want of room, and of the end
// of a trouble.
func (w *writer) report() {
	switch {
	case w.store != nil && w.drops() > w.lost:
		w.warn("records were dropped", nil)
	case w.warned && w.store != nil && w.backoff == 0:
		w.log.Info("records are written again", "dropped", w.drops())
		w.warned = false
	}
}

// drops counts the rows that were dropped so far.
func (w *writer) drops() uint64 {
	return w.r.dropped[queueFull].Load() + w.r.dropped[storeError].Load()
}

// prune deletes a batch of old rows and returns when to come again.
func (w *writer) prune() time.Duration {
	if w.store == nil {
		return max(pruneAgain, w.flush)
	}
	ctx, cancel := context.WithTimeout(w.ctx, writeTimeout)
	defer cancel()
	n, err := w.store.prune(ctx, time.Now().Add(-w.retain), pruneBatch)
	w.r.pruned.Add(uint64(n))
	switch {
	case err != nil:
		// A user who may only insert is no reason to stop. If the connection is
		// what is broken, the next batch finds out.
		w.trouble()
		w.warn("old records cannot be deleted", err)
	case n == pruneBatch:
		return pruneAgain
	}
	return pruneEvery
}

// end writes what is left, without regard to a backoff, and drops the rest.
func (w *writer) end() {
	for range maxTries {
		w.retryAt = time.Time{}
		w.write(1)
		if w.ctx.Err() != nil || len(w.batch) == 0 && len(w.r.queue) == 0 {
			break
		}
	}
	w.dropBatch(isClosed)
	w.closeStore()
	w.r.swept.Store(true)
	w.r.sweep()
}
