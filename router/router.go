// Package router is the data path: it takes requests from clients, holds them
// against the operator's policy, sends them to a worker and relays the answer.
//
// A request walks one way, from top to bottom of request.serve: framing, path,
// body, scan, contract, pool, worker, answer. What the configuration says is
// compiled into a snapshot once; a request loads the snapshot at its start and
// keeps it to its end. The package also holds the admin listener, the metrics
// and the access log.
package router

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/configs"
	"sluice/probe"
	"sluice/router/cache"
	"sluice/router/record"
	"sluice/upstream/gone"
)

// headBytes bounds the request line and header of a client's request.
const headBytes = 32 << 10

// pooledBody is the largest buffer that fasthttp keeps with an idle connection.
const pooledBody = 64 << 10

// Options are what a Router needs beside its configuration.
type Options struct {
	// Log takes the router's own log. Nil discards it.
	Log *slog.Logger
	// Access takes the access log, a line for each request that the configuration
	// wants in it. Nil turns it off. It must be safe for concurrent use.
	Access slog.Handler
	// Level is the level of Log, for the admin listener to change. Nil: it cannot.
	Level *slog.LevelVar
	// Version is shown on the admin listener.
	Version string
	// Reload reads the configuration anew and has Router.Reload, or ReloadFailed,
	// called before it returns. It is called for POST /-/reload. Nil: there is
	// nothing to read.
	Reload func() error
}

// Router serves the data listener and the admin listener. It is safe for
// concurrent use.
type Router struct {
	log     *slog.Logger
	access  *accessLog
	level   *slog.LevelVar
	version string
	metrics *metricSet
	started time.Time
	snap    atomic.Pointer[snapshot]
	live    liveSnapshots

	cache   *cache.Cache     // nil: off
	records *record.Recorder // nil: off

	reload    func() error // reads the configuration anew
	reloads   reloads
	reloading sync.Mutex    // held by Reload
	retired   chan struct{} // closed when the last snapshot but this one has ended

	secure   listeners
	failures failures

	data     fasthttp.Server
	admin    fasthttp.Server
	watcher  *gone.Watcher
	draining atomic.Bool
	cutting  atomic.Bool // the drain is over: cancel what still runs
	closing  sync.Once
	requests sync.Pool
}

// New builds a router from a valid configuration. It makes the pools but no
// connection; Serve starts serving.
func New(cfg *configs.Config, opts Options) (*Router, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	w, err := gone.New()
	if err != nil {
		return nil, fmt.Errorf("cannot watch client connections: %w", err)
	}
	r := &Router{
		log:     opts.Log,
		level:   opts.Level,
		version: opts.Version,
		reload:  opts.Reload,
		metrics: newMetricSet(),
		started: time.Now(),
		watcher: w,
	}
	if opts.Access != nil {
		r.access = newAccessLog(opts.Access)
	}
	if err := r.openStores(cfg); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	if err := r.secure.begin(&cfg.Server); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	snap, err := newSnapshot(cfg, r, nil)
	if err != nil {
		r.closeStores(context.Background())
		return nil, errors.Join(err, w.Close())
	}
	r.snap.Store(snap)
	r.live.add(snap)
	now := time.Now()
	r.reloads.last.Store(&reload{at: now, hash: cfg.Hash(), since: now})
	r.retired = make(chan struct{})
	close(r.retired)
	r.requests.New = func() any { return newRequest(r) }
	r.metrics.export(r)
	r.data = fasthttp.Server{
		Handler:      r.serveData,
		ErrorHandler: r.refuseUnread,
		Logger:       fasthttpLog{opts.Log},

		// A body is read by us, as it comes, under our own limit: fasthttp
		// would allocate what Content-Length promises.
		StreamRequestBody: true,
		// What fasthttp reads of a body before it calls the handler, who may
		// want none of it. A smaller number stands for its default.
		MaxRequestBodySize:           1,
		DisablePreParseMultipartForm: true,
		ExpectHandler:                r.expect,
		ConnState:                    gone.ConnState,

		ReadBufferSize:  headBytes,
		WriteBufferSize: 16 << 10,
		ReadTimeout:     cfg.Server.ReadTimeout,
		IdleTimeout:     cfg.Server.IdleTimeout,
		WriteTimeout:    cfg.Server.WriteTimeout,
		CloseOnShutdown: true,

		NoDefaultServerHeader: true,
		NoDefaultContentType:  true,
		LazyRequestTime:       true,
		// Header bytes hold credentials.
		SecureErrorLogMessage: true,
	}
	r.admin = newAdmin(r, opts.Log)
	fasthttp.SetBodySizePoolLimit(pooledBody, pooledBody)
	return r, nil
}

// Serve serves clients on data and operators on admin (which may be nil) until
// Shutdown, and then returns nil. If a listener fails before, it shuts the
// router down and returns the error.
func (r *Router) Serve(data, admin net.Listener) error {
	n := 1
	failed := make(chan error, 2)
	data = &listener{Listener: data}
	if admin != nil {
		admin = &listener{Listener: admin}
	}
	go func() { failed <- r.data.Serve(r.listenData(data)) }()
	if admin != nil {
		n++
		go func() { failed <- r.admin.Serve(r.listenAdmin(admin)) }()
	}
	var first error
	for range n {
		err := <-failed
		if first == nil && !r.draining.Load() {
			// One listener is lost: the other must not go on alone.
			first = errors.Join(errListenerLost, err)
			go func() { _ = r.Shutdown(context.Background()) }() // first says why
			// Shutdown cannot end a server that has not begun to serve yet.
			_ = data.Close()
			if admin != nil {
				_ = admin.Close()
			}
		}
	}
	return first
}

// listener may be closed more than once, and after it was lost: fasthttp would take
// the error for a reason not to wait for the requests under way.
type listener struct {
	net.Listener
	once sync.Once
	err  error
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() {
		if l.err = l.Listener.Close(); errors.Is(l.err, net.ErrClosed) {
			l.err = nil
		}
	})
	return l.err
}

var errListenerLost = errors.New("a listener ended before the router was shut down")

// BeginDrain makes the router say that it is not ready and close each client
// connection after the answer under way. It still serves.
func (r *Router) BeginDrain() { r.draining.Store(true) }

// InFlight returns the number of requests under way.
func (r *Router) InFlight() int { return r.live.requests() }

// Shutdown stops accepting, closes idle connections and waits for the requests
// under way until ctx ends; then the rest are cut, each stream with an error
// event. It returns ctx's error when it had to cut. Shutdown may be called
// again.
func (r *Router) Shutdown(ctx context.Context) error {
	r.BeginDrain()
	defer r.closeSilent()()
	hard, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		r.cutting.Store(true)
		r.watcher.CancelAll()
		time.AfterFunc(cutGrace, cancel)
	})
	err := r.data.ShutdownWithContext(hard)
	if !stop() {
		err = ctx.Err()
	}
	short, cancelShort := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancelShort()
	err = errors.Join(err, r.admin.ShutdownWithContext(short))
	r.closing.Do(func() {
		err = errors.Join(err, r.watcher.Close())
		r.reloading.Lock() // for ever: there is nothing left to change
		select {
		case <-r.retired:
		case <-time.After(cutGrace): // a request that was cut does not end
		}
		r.snap.Load().closePools(nil)
		r.closeStores(short)
	})
	return err
}

// closeSilent closes the connections on which nothing was sent, which fasthttp
// takes for busy ones, until it is told to stop: a connection may be accepted at
// the last moment, or be in a handshake.
func (r *Router) closeSilent() (stop func()) {
	r.watcher.CloseSilent()
	t := time.NewTicker(50 * time.Millisecond)
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case <-t.C:
				r.watcher.CloseSilent()
			case <-ended:
				return
			}
		}
	}()
	return func() {
		t.Stop()
		close(ended)
	}
}

// cutGrace is how long requests that were cut may take to tell their clients.
const cutGrace = time.Second

// serveData is fasthttp's handler for the data listener.
func (r *Router) serveData(ctx *fasthttp.RequestCtx) {
	q := r.requests.Get().(*request)
	q.begin(ctx)
	// fasthttp does not recover: a panic here would end the process and cut
	// every stream of it.
	defer func() {
		if p := recover(); p != nil {
			q.panicked(p)
		}
	}()
	q.serve()
}

// refuseUnread answers what fasthttp could not read as a request. fasthttp
// closes the connection afterwards.
func (r *Router) refuseUnread(ctx *fasthttp.RequestCtx, err error) {
	status, msg := fasthttp.StatusBadRequest, "invalid request: cannot read the request"
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.As(err, &small):
		status, msg = fasthttp.StatusRequestHeaderFieldsTooLarge, "request header is too large"
	case errors.Is(err, os.ErrDeadlineExceeded):
		status, msg = fasthttp.StatusRequestTimeout, "request did not arrive in time"
	case errors.Is(err, gone.ErrBareLF):
		msg = "invalid request: header lines must end with CRLF"
	}
	r.answerUnread(ctx, status, codeBadRequest, msg)
}

// expect decides on `Expect: 100-continue` from the head alone, so that a body
// over the limit is never asked for.
func (r *Router) expect(ctx *fasthttp.RequestCtx) int {
	if int64(ctx.Request.Header.ContentLength()) > r.snap.Load().maxBody {
		r.answerUnread(ctx, fasthttp.StatusRequestEntityTooLarge, codePayloadTooLarge, tooLargeText)
		return fasthttp.StatusRequestEntityTooLarge
	}
	return fasthttp.StatusContinue
}

// answerUnread answers a request that never reached the handler. It is counted,
// and has no line in the access log.
func (r *Router) answerUnread(ctx *fasthttp.RequestCtx, status int, code errorCode, msg string) {
	closeAfter(ctx)
	r.snap.Load().cors.mark(ctx)
	writeError(ctx, shapeOpenAI, status, code, msg, "")
	s := r.metrics.none[probe.SurfaceNone]
	s.requests.Inc()
	s.response(status).Inc()
}

// fasthttpLog passes what fasthttp logs of broken connections on, at debug:
// what matters of them is counted.
type fasthttpLog struct{ log *slog.Logger }

// Printf implements fasthttp.Logger.
func (l fasthttpLog) Printf(format string, args ...any) {
	l.log.Debug("fasthttp: " + fmt.Sprintf(format, args...))
}
