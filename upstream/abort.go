package upstream

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"sluice/upstream/h1"
)

// Bounds of aborts. A client that leaves is no emergency: where they are not
// kept the engine computes an answer for nobody, and its connection is closed
// all the same.
const (
	// maxAborts is how many wait to be sent, per pool.
	maxAborts = 256
	// abortSenders is how many are sent at once, so that one worker that does
	// not answer does not hold up the others.
	abortSenders = 4
	// abortTimeout bounds one.
	abortTimeout = 2 * time.Second
)

// abort is a request to stop another one, on its way to a worker.
type abort struct {
	worker *Worker
	body   []byte
}

// aborts is the part of a pool that tells engines which requests to stop.
type aborts struct {
	queue   chan abort
	started bool // somebody sends; guarded by Pool.changes

	sent    atomic.Uint64
	failed  atomic.Uint64
	dropped atomic.Uint64
}

// startAborts starts the goroutines that send what Abort queues, where there are
// none. They end with the pool; what is queued then is forgotten.
func (p *Pool) startAborts() {
	if p.aborts.started {
		return
	}
	p.aborts.started = true
	for range abortSenders {
		p.done.Go(func() { p.sendAborts(p.ctx) })
	}
}

// Abort has body posted to PoolSpec.AbortPath of w, a worker of p, soon and
// without waiting for it. The pool keeps body. Where too many wait already it is
// dropped and counted; where the pool has no such path nothing happens. Abort
// may be called after Close.
func (p *Pool) Abort(w *Worker, body []byte) {
	if p.conf.Load().abortPath == "" {
		return
	}
	select {
	case p.aborts.queue <- abort{w, body}:
	default:
		p.aborts.dropped.Add(1)
	}
}

// Aborts returns how many aborts were answered with success, how many were not,
// and how many were dropped because too many waited.
func (p *Pool) Aborts() (sent, failed, dropped uint64) {
	return p.aborts.sent.Load(), p.aborts.failed.Load(), p.aborts.dropped.Load()
}

func (p *Pool) sendAborts(ctx context.Context) {
	var x Exchange
	stop := context.AfterFunc(ctx, x.Cancel)
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case a := <-p.aborts.queue:
			if ctx.Err() != nil {
				return
			}
			if p.sendAbort(&x, a) {
				p.aborts.sent.Add(1)
			} else {
				p.aborts.failed.Add(1)
			}
		}
	}
}

// sendAbort reports whether the worker took a. A worker that does not is not at
// fault for traffic: it may never have known the request.
func (p *Pool) sendAbort(x *Exchange, a abort) bool {
	defer x.Close()
	conf := p.conf.Load()
	if conf.abortPath == "" { // it was when a was queued
		return false
	}
	side := a.worker.aborter()
	side.h2.Store(a.worker.h2.Load())
	err := x.Do(side, &Request{
		Method: []byte("POST"),
		Target: []byte(conf.abortPath),
		Fields: conf.fields.Apply([]h1.Field{
			{Name: []byte("Content-Type"), Value: []byte("application/json")},
			{Name: []byte("User-Agent"), Value: []byte(userAgent)},
		}),
		Body:   [][]byte{a.body},
		Length: int64(len(a.body)),
	})
	return err == nil && skim(x) && x.Status() < 300
}

// aborter returns the worker that aborts are sent through. They must not wait
// for a place among those whose end they tell.
func (w *Worker) aborter() *Worker {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.side == nil {
		const t = abortTimeout
		w.side = w.shadow(Timeouts{Connect: t, FirstByte: t, BetweenEvents: t, Total: t})
		if w.closed {
			w.side.close()
		}
	}
	return w.side
}

// userAgent is what the router calls itself where it speaks for itself.
const userAgent = "sluice"

// maxSkim is how much of an answer that nobody needs is read to keep its
// connection.
const maxSkim = 16 << 10

// skim reads what x has, and reports whether it was whole so far.
func skim(x *Exchange) bool {
	for n := 0; n < maxSkim; {
		b, err := x.Next()
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		n += len(b)
	}
	return true
}
