// Package sim is a simulated LLM engine: every surface of vLLM, SGLang and the
// OpenAI and Anthropic APIs that the router serves, in their real shapes, over
// HTTP/1.1 and h2c on one port, with words instead of a model. It shows what it
// received and fails in every way an engine can fail, when it is told to.
package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// Engine is one simulated engine. New makes it; it serves as an http.Handler
// or, after Start, on a port of its own, and then it must be closed.
// All methods are safe for concurrent use.
type Engine struct {
	opts   atomic.Pointer[Options]
	health atomic.Int64 // status that /health answers
	seq    atomic.Uint64
	board  board
	live   inflight
	cache  prefixCache

	stop    context.Context // done when Close has begun
	stopNow context.CancelFunc

	mu     sync.Mutex
	server *http.Server
	addr   string
	served sync.WaitGroup // the goroutine of server.Serve
}

// New returns an engine with the options o, whose zero fields get the defaults
// that Options documents.
func New(o Options) *Engine {
	o = o.withDefaults()
	e := &Engine{}
	e.opts.Store(&o)
	e.health.Store(http.StatusOK)
	e.board.init(o.History)
	e.stop, e.stopNow = context.WithCancel(context.Background())
	return e
}

// Handler returns the engine as a handler, for a server of the caller's. Behind
// such a server the order of header fields is unknown and the failures that
// need the connection itself (garbage, slow head) only abort the request.
func (e *Engine) Handler() http.Handler { return http.HandlerFunc(e.serve) }

// Start listens on the TCP address addr ("127.0.0.1:0" for a free port), serves
// until Close and returns the base URL. An engine starts once.
func (e *Engine) Start(addr string) (url string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server != nil {
		return "", errors.New("cannot start: the engine is already serving")
	}
	if e.stop.Err() != nil {
		return "", errors.New("cannot start: the engine is closed")
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("cannot listen: %w", err)
	}
	o := e.opts.Load()
	e.server = &http.Server{
		Handler:                      e.Handler(),
		IdleTimeout:                  o.IdleTimeout,
		Protocols:                    o.Protocol.protocols(),
		HTTP2:                        &http.HTTP2Config{MaxConcurrentStreams: o.MaxStreams},
		BaseContext:                  func(net.Listener) context.Context { return e.stop },
		ConnContext:                  withConn,
		DisableGeneralOptionsHandler: true,
		// What a client did wrong shows in its answer and in /sim/stats.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	e.addr = ln.Addr().String()
	e.served.Go(func() {
		// Serve ends with ErrServerClosed when Close is called; there is
		// nobody to tell of another end, and requests will show it.
		_ = e.server.Serve(&listener{Listener: ln, accepted: e.board.connected})
	})
	return "http://" + e.addr, nil
}

// URL returns the base URL that Start returned, or "" before.
func (e *Engine) URL() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.addr == "" {
		return ""
	}
	return "http://" + e.addr
}

// Close breaks off every request under way, closes all connections and waits
// for the handlers, at most until ctx is done. It may be called twice.
func (e *Engine) Close(ctx context.Context) error {
	e.stopNow()
	e.mu.Lock()
	server := e.server
	e.mu.Unlock()
	if server == nil {
		return nil
	}
	err := server.Close()
	e.served.Wait() // Serve returns as soon as the listener is closed
	return errors.Join(err, e.Wait(ctx, func(s Stats) bool { return s.InFlight == 0 }))
}

// Update changes the options for the requests that begin after it returns. The
// listener's own options (History, IdleTimeout, MaxStreams, Protocol) are those
// of New for good.
func (e *Engine) Update(change func(*Options)) {
	for {
		old := e.opts.Load()
		o := *old
		change(&o)
		o = o.withDefaults()
		if e.opts.CompareAndSwap(old, &o) {
			return
		}
	}
}

// SetHealth sets the status that /health and /health_generate answer.
func (e *Engine) SetHealth(status int) { e.health.Store(int64(status)) }

// Requests returns the latest requests, oldest first. The caller owns the slice;
// the bodies and headers in it must not be changed.
func (e *Engine) Requests() []Request { return e.board.requests() }

// Stats returns the counts since New or the last Reset.
func (e *Engine) Stats() Stats { return e.board.stats() }

// Reset forgets the requests and counts seen so far, but not what is in flight.
func (e *Engine) Reset() { e.board.reset() }

// Wait blocks until the counts satisfy ok, and returns ctx's error if that does
// not come before ctx is done.
func (e *Engine) Wait(ctx context.Context, ok func(Stats) bool) error {
	return e.board.wait(ctx, ok)
}

// WaitCancelled blocks until at least n requests were cancelled, that is until
// the engine has noticed that n clients went away before their answer was whole.
func (e *Engine) WaitCancelled(ctx context.Context, n int) error {
	return e.Wait(ctx, func(s Stats) bool { return s.Cancelled >= n })
}
