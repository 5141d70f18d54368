package record

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeStore is a database whose troubles a test chooses.
type fakeStore struct {
	mu      sync.Mutex
	ids     []string // what was written
	sizes   []int    // of batches
	opened  []time.Time
	closes  int
	openErr error
	// writeErr says whether a batch fails.
	writeErr func(ids []string) error
	// gate, if not nil, lets one write pass for each value.
	gate chan struct{}

	old    int64 // rows to prune
	prunes []time.Time
	cutoff time.Time
}

func (f *fakeStore) open(context.Context) (store, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened = append(f.opened, time.Now())
	if f.openErr != nil {
		return nil, f.openErr
	}
	return f, nil
}

func (f *fakeStore) write(ctx context.Context, rows []*Row) error {
	if f.gate != nil {
		select {
		case <-f.gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []string
	for _, w := range rows {
		ids = append(ids, string(w.RequestID))
	}
	if f.writeErr != nil {
		if err := f.writeErr(ids); err != nil {
			return err
		}
	}
	f.ids = append(f.ids, ids...)
	f.sizes = append(f.sizes, len(ids))
	return nil
}

func (f *fakeStore) prune(_ context.Context, t time.Time, limit int) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.prunes = append(f.prunes, time.Now())
	f.cutoff = t
	n := min(f.old, int64(limit))
	f.old -= n
	return n, nil
}

func (f *fakeStore) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closes++
	return nil
}

func (f *fakeStore) set(openErr error, writeErr func([]string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.openErr, f.writeErr = openErr, writeErr
}

func (f *fakeStore) written() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ids)
}

func (f *fakeStore) pruned() (at []time.Time, cutoff time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.prunes), f.cutoff
}

func mustStart(t testing.TB, o Options, f *fakeStore) *Recorder {
	t.Helper()
	r, err := start(o, f.open)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func addMany(r *Recorder, from, to int) {
	for i := from; i < to; i++ {
		add(r, strconv.Itoa(i))
	}
}

// checkStats compares the counters.
func checkStats(t testing.TB, r *Recorder, want Stats) {
	t.Helper()
	got := r.Stats()
	got.LastError = want.LastError
	if got != want {
		t.Errorf("unexpected stats; got %+v; want %+v", got, want)
	}
}

func TestRecorder_Batches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := new(fakeStore)
		r := mustStart(t, Options{Batch: 4}, f)
		synctest.Wait()
		addMany(r, 0, 10)
		synctest.Wait()
		// Whole batches go at once, the rest when the interval is over.
		checkStats(t, r, Stats{Written: 8, Batches: 2, Queued: 2, Up: true})
		time.Sleep(DefaultFlush)
		synctest.Wait()
		checkStats(t, r, Stats{Written: 10, Batches: 3, Up: true})
		add(r, "10")
		closeRecorder(t, r)
		checkStats(t, r, Stats{Written: 11, Batches: 4})
		for i, id := range f.written() {
			if id != strconv.Itoa(i) {
				t.Errorf("unexpected row %d: %s", i, id)
			}
		}
		if f.closes != 1 {
			t.Errorf("closed %d times", f.closes)
		}
	})
}

// A store that takes for ever costs rows and nothing else: in the bubble, an Add
// that waited would be a deadlock.
func TestRecorder_AddNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeStore{gate: make(chan struct{})}
		r := mustStart(t, Options{Queue: 8, Batch: 4}, f)
		synctest.Wait()
		addMany(r, 0, 4)
		synctest.Wait() // the writer has those and waits
		addMany(r, 4, 17)
		checkStats(t, r, Stats{DroppedQueueFull: 5, Queued: 8, Up: true})
		close(f.gate)
		synctest.Wait()
		checkStats(t, r, Stats{DroppedQueueFull: 5, Written: 12, Batches: 3, Up: true})
		closeRecorder(t, r)
	})
}

// A write that takes too long is given up, and its rows are tried again.
func TestRecorder_SlowWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log testLog
		f := &fakeStore{gate: make(chan struct{})}
		r := mustStart(t, Options{Log: log.logger()}, f)
		add(r, "a")
		time.Sleep(DefaultFlush + writeTimeout)
		synctest.Wait()
		checkStats(t, r, Stats{})
		if s := r.Stats(); !s.LastError.Equal(time.Now()) || log.count("deadline exceeded") != 1 {
			t.Errorf("unexpected state %+v, log %s", s, log.String())
		}
		close(f.gate)
		time.Sleep(DefaultFlush)
		synctest.Wait()
		checkStats(t, r, Stats{Written: 1, Batches: 1, Up: true})
		closeRecorder(t, r)
	})
}

func TestRecorder_Down(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log testLog
		f := &fakeStore{openErr: errors.New("no route")}
		r := mustStart(t, Options{Queue: 8, Batch: 4, Flush: 10 * time.Millisecond, Log: log.logger()}, f)
		addMany(r, 0, 10)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		checkStats(t, r, Stats{DroppedQueueFull: 2, Queued: 8})
		if len(r.kick) != 1 {
			t.Error("rows wake the writer while the store is down")
		}
		for i := 1; i < len(f.opened); i++ {
			longest := min(minBackoff<<(i-1), maxBackoff)
			if d := f.opened[i].Sub(f.opened[i-1]); d < longest/2 || d > longest+20*time.Millisecond {
				t.Errorf("try %d came after %v; want about %v at most", i, d, longest)
			}
		}
		if n := log.count(`"level":"WARN","msg":"records cannot be written"`); n < 5 || n > 10 || n != log.count(`"error":"no route"`) {
			t.Errorf("%d warnings in ten minutes: %s", n, log.String())
		}
		f.set(nil, nil)
		time.Sleep(maxBackoff)
		synctest.Wait()
		checkStats(t, r, Stats{DroppedQueueFull: 2, Written: 8, Batches: 2, Up: true})
		if n := log.count(`"level":"INFO","msg":"records are written again","dropped":2`); n != 1 {
			t.Errorf("unexpected log %s", log.String())
		}
		closeRecorder(t, r)
	})
}

// Rows that found no room are told of while the database is well.
func TestRecorder_DropWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log testLog
		r := mustStart(t, Options{Queue: 4, Log: log.logger()}, new(fakeStore))
		synctest.Wait()
		for range 100 {
			w := r.Get()
			r.Put(w)
		}
		for range 90 { // one and a half minutes
			addMany(r, 0, 7)
			time.Sleep(time.Second)
		}
		if n := log.count("records were dropped"); n != 2 {
			t.Errorf("%d warnings: %s", n, log.String())
		}
		closeRecorder(t, r)
	})
}

// A batch that the store refuses again and again does not stop the others.
func TestRecorder_RefusedBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		f := &fakeStore{writeErr: func(ids []string) error {
			if slices.Contains(ids, "bad") {
				tries++
				return errors.New("refused")
			}
			return nil
		}}
		r := mustStart(t, Options{Batch: 2}, f)
		for _, id := range []string{"a", "bad", "b", "c"} {
			add(r, id)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		checkStats(t, r, Stats{DroppedStoreError: 2, Written: 2, Batches: 1, Up: true})
		if tries != maxTries {
			t.Errorf("tried %d times; want %d", tries, maxTries)
		}
		closeRecorder(t, r)
	})
}

// Rows that may have been written are not written again.
func TestRecorder_UnknownCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		f := &fakeStore{writeErr: func([]string) error {
			if tries++; tries == 1 {
				return fmt.Errorf("lost: %w", errUnknown)
			}
			return nil
		}}
		r := mustStart(t, Options{Batch: 2}, f)
		addMany(r, 0, 4)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		checkStats(t, r, Stats{DroppedStoreError: 2, Written: 2, Batches: 1, Up: true})
		closeRecorder(t, r)
	})
}

// Close gives up when its context ends, and counts what is lost.
func TestRecorder_CloseInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeStore{gate: make(chan struct{})}
		r := mustStart(t, Options{Batch: 4}, f)
		addMany(r, 0, 10)
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := r.Close(ctx)
		if err == nil || !strings.Contains(err.Error(), "10 rows") || time.Since(begin) != time.Second {
			t.Errorf("unexpected end %v after %v", err, time.Since(begin))
		}
		add(r, "late")
		checkStats(t, r, Stats{DroppedClosed: 11})
		if err := r.Close(t.Context()); err != nil {
			t.Errorf("unexpected error of the second Close: %v", err)
		}
	})
}

// Close does not wait for the end of a backoff.
func TestRecorder_CloseWhileDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeStore{openErr: errors.New("down")}
		r := mustStart(t, Options{}, f)
		add(r, "a")
		time.Sleep(5 * time.Minute)
		f.set(nil, nil)
		begin := time.Now()
		closeRecorder(t, r)
		checkStats(t, r, Stats{Written: 1, Batches: 1})
		if time.Since(begin) != 0 {
			t.Errorf("Close waited %v", time.Since(begin))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := mustStart(t, Options{}, &fakeStore{openErr: errors.New("down")})
		addMany(r, 0, 3)
		if err := r.Close(t.Context()); err == nil {
			t.Error("Close does not tell of lost rows")
		}
		checkStats(t, r, Stats{DroppedClosed: 3})
	})
}

// Every row is counted once, whoever wins.
func TestRecorder_AddWhileClosing(t *testing.T) {
	for range 50 {
		f := new(fakeStore)
		r := mustStart(t, Options{Queue: 16, Batch: 4}, f)
		const adders, each = 4, 50
		var wg sync.WaitGroup
		for range adders {
			wg.Go(func() { addMany(r, 0, each) })
		}
		_ = r.Close(t.Context()) // rows may be late
		wg.Wait()
		s := r.Stats()
		if sum := s.Written + s.DroppedQueueFull + s.DroppedClosed; sum != adders*each || s.Queued != 0 || int(s.Written) != len(f.written()) {
			t.Fatalf("%d of %d rows are counted: %+v", sum, adders*each, s)
		}
	}
}

// An Add that was overtaken by Close counts its row, too.
func TestRecorder_AddOvertaken(t *testing.T) {
	r := mustStart(t, Options{}, new(fakeStore))
	closeRecorder(t, r)
	r.closed.Store(false) // as Add saw it
	add(r, "late")
	checkStats(t, r, Stats{DroppedClosed: 1})
}

func TestRecorder_Prune(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeStore{old: 2*pruneBatch + 10, openErr: errors.New("down")}
		r := mustStart(t, Options{Retain: 24 * time.Hour}, f)
		time.Sleep(10 * time.Second)
		f.set(nil, nil)
		time.Sleep(maxBackoff + DefaultFlush)
		synctest.Wait()
		checkStats(t, r, Stats{Pruned: 2*pruneBatch + 10, Up: true})
		at, cutoff := f.pruned()
		if len(at) != 3 || at[1].Sub(at[0]) != pruneAgain || !cutoff.Equal(at[2].Add(-24*time.Hour)) {
			t.Errorf("unexpected times %v, cutoff %v", at, cutoff)
		}
		time.Sleep(2 * pruneEvery)
		synctest.Wait()
		if at, _ := f.pruned(); len(at) != 5 {
			t.Errorf("pruned %d times; want 5", len(at))
		}
		closeRecorder(t, r)
	})
	synctest.Test(t, func(t *testing.T) {
		f := &fakeStore{old: 10}
		r := mustStart(t, Options{}, f)
		time.Sleep(2 * pruneEvery)
		closeRecorder(t, r)
		if at, _ := f.pruned(); len(at) != 0 {
			t.Error("pruned what is to be kept for ever")
		}
	})
}

func TestRecorder_Required(t *testing.T) {
	f := &fakeStore{openErr: errors.New("down")}
	if r, err := start(Options{Required: true}, f.open); err == nil || r != nil || !strings.Contains(err.Error(), "down") {
		t.Errorf("unexpected result %v, %v", r, err)
	}
	f.set(nil, nil)
	r := mustStart(t, Options{Required: true}, f)
	if !r.Stats().Up {
		t.Error("the store is not up")
	}
	closeRecorder(t, r)
}

func TestRecorder_Nil(t *testing.T) {
	r, err := Open(Options{Store: Off})
	if r != nil || err != nil {
		t.Fatalf("unexpected result %v, %v", r, err)
	}
	if w := r.Get(); w != nil {
		t.Errorf("unexpected row %v", w)
	}
	r.Add(nil)
	r.Put(nil)
	checkStats(t, r, Stats{})
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestOpen_Errors(t *testing.T) {
	f := func(want string, o Options) {
		t.Helper()
		r, err := Open(o)
		if r != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("unexpected error; got %v, %v; want %q", r, err, want)
		}
	}
	f(`unknown store "mysql": want sqlite, postgres or off`, Options{Store: "mysql"})
	f(`unknown store ""`, Options{})
	f("path of a file is missing", Options{Store: SQLite})
	f("want the path of a file", Options{Store: SQLite, DSN: ":memory:"})
	f("want the path of a file", Options{Store: SQLite, DSN: "file:x.db?mode=memory"})
	f("want the path of a file", Options{Store: SQLite, DSN: "postgres://localhost/x"})
	f("DSN is missing", Options{Store: Postgres, DSN: " "})
	f("cannot read the DSN", Options{Store: Postgres, DSN: "x.db"})
	f("must not be negative", Options{Store: SQLite, DSN: "x.db", Queue: -1})
	f("must not be negative", Options{Store: SQLite, DSN: "x.db", Retain: -1})
}
