package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sluice/upstream/h2c"
)

// Rules for connections at rest. uvicorn, which vLLM and SGLang serve with,
// closes a connection that rested for 5 s, and a request sent at that moment
// is lost: so ours are given up before.
const (
	// idleLimit is how long a connection may rest.
	idleLimit = 4 * time.Second
	// maxIdle bounds the connections at rest, per worker.
	maxIdle = 1024
)

// Worker is one engine. It is safe for concurrent use.
type Worker struct {
	pool     *Pool
	id       int // its place among the pool's workers
	weight   int
	url      string
	addr     string // host:port to dial
	host     []byte // value of the Host field
	timeouts Timeouts
	tls      *tls.Config // nil where the worker speaks plain HTTP

	load  atomic.Int64
	picks atomic.Uint64
	fails atomic.Uint64

	healthy  atomic.Bool   // what active probes say
	probes   atomic.Uint64 // how many there were
	lastGood atomic.Int64  // Unix time in ns of the last good answer
	streak   atomic.Int32  // failed exchanges in a row
	troubled atomic.Bool   // the breaker is not closed
	trips    atomic.Uint64 // changes of the breaker

	// Guarded by Pool.mu.
	breaker  BreakerState
	trial    bool // half-open, and a request is trying it
	cooldown *time.Timer

	side     *Worker // sends aborts, nil where there are none
	protocol string
	h2       atomic.Bool // it is spoken to in h2c
	life     context.Context
	end      context.CancelFunc
	dials    sync.WaitGroup // of h2c connections
	retired  atomic.Bool    // closed, read without the lock

	mu      sync.Mutex
	idle    []*conn // the last one rested last
	open    int     // connections in use and at rest
	h2conns []*h2c.Conn
	h2dial  *h2Dial // the one that is being made
	closed  bool
}

// newWorker takes http://host:port or https://host:port, port 80 or 443 where
// none is given. host is a name, an IPv4 address or an IPv6 address in brackets.
func newWorker(raw string, t Timeouts) (*Worker, error) {
	const form = "worker url must be http://host:port or https://host:port"
	if strings.Contains(raw, "@") { // and is not echoed
		return nil, errors.New(form + " without a user or password")
	}
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return nil, fmt.Errorf("%s, got %q", form, raw)
	}
	bare, port := url.URL{Scheme: "http", Host: u.Host}, "80"
	if u.Scheme == "https" {
		bare.Scheme, port = "https", "443"
	}
	if !strings.EqualFold(strings.TrimSuffix(raw, "/"), bare.String()) {
		return nil, fmt.Errorf("%s, got %q", form, raw)
	}
	if strings.HasSuffix(u.Host, ":") || u.Port() != "" {
		port = u.Port()
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("%s with a port from 1 to 65535, got %q", form, raw)
		}
	}
	// The zone of an address is of no meaning to the worker (RFC 6874 section 4).
	host := u.Host
	if i := strings.IndexByte(host, '%'); i >= 0 {
		host = host[:i] + host[strings.LastIndexByte(host, ']'):]
	}
	w := &Worker{url: bare.String(), addr: net.JoinHostPort(u.Hostname(), port), host: []byte(host), timeouts: t}
	w.life, w.end = context.WithCancel(context.Background())
	if bare.Scheme == "https" {
		w.tls = secureConfig(nil, u.Hostname())
	}
	w.healthy.Store(true) // until a probe says otherwise
	return w, nil
}

// secure makes base the rules of the worker's TLS, where it speaks TLS.
func (w *Worker) secure(base *tls.Config) {
	if w.tls == nil {
		return
	}
	w.protocol = HTTP1 // what the session is for
	w.h2.Store(false)
	if base != nil {
		host, _, _ := net.SplitHostPort(w.addr) // which newWorker has joined
		w.tls = secureConfig(base, host)
	}
}

// shadow returns a worker at the same address, spoken to in the same protocol,
// with connections and limits of its own. The caller closes it.
func (w *Worker) shadow(t Timeouts) *Worker {
	s := &Worker{url: w.url, addr: w.addr, host: w.host, tls: w.tls, timeouts: t, protocol: w.protocol}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// URL returns the worker's base URL, its identity in logs and metrics.
func (w *Worker) URL() string { return w.url }

// Weight returns the worker's share of the requests relative to that of others.
func (w *Worker) Weight() int { return w.weight }

// Load returns the number of requests under way.
func (w *Worker) Load() int64 { return w.load.Load() }

// Picks returns how often the worker was chosen, Failures how many exchanges
// with it failed by its own fault.
func (w *Worker) Picks() uint64 { return w.picks.Load() }

// Failures returns how many exchanges failed by the worker's fault: no
// connection, no or a broken answer, or one out of time.
func (w *Worker) Failures() uint64 { return w.fails.Load() }

// Healthy reports what active probes say; a worker is well until they say
// otherwise.
func (w *Worker) Healthy() bool { return w.healthy.Load() }

// BreakerTrips returns how often the breaker has changed its state.
func (w *Worker) BreakerTrips() uint64 { return w.trips.Load() }

// Connections returns how many connections are open and how many of them rest.
func (w *Worker) Connections() (open, idle int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open, len(w.idle)
}

// Release ends one request that the pool counted. It must be called exactly
// once for each worker that Acquire, Wait or Retry returned, at the end of the
// answer or of the failure.
func (w *Worker) Release() { w.pool.release(w) }

// take returns a connection at rest that is still good, or nil. Each is looked
// at, however short its rest was: an answer read by the wrong request is worse
// than a system call more.
func (w *Worker) take(now time.Time) *conn {
	for {
		w.mu.Lock()
		n := len(w.idle)
		// Those below the top have rested longer; reap closes them.
		if n == 0 || now.Sub(w.idle[n-1].rested) >= idleLimit {
			w.mu.Unlock()
			return nil
		}
		c := w.idle[n-1]
		w.idle[n-1] = nil
		w.idle = w.idle[:n-1]
		w.mu.Unlock()
		if c.quiet() {
			return c
		}
		w.drop(c)
	}
}

// put lets c rest, or closes it where there are enough.
func (w *Worker) put(c *conn, now time.Time) {
	c.rested = now
	w.mu.Lock()
	if w.closed || len(w.idle) >= maxIdle {
		w.mu.Unlock()
		w.retire(c)
		return
	}
	w.idle = append(w.idle, c)
	w.mu.Unlock()
}

// drop closes c for good.
func (w *Worker) drop(c *conn) {
	c.cut()
	w.gone()
}

// retire closes c, which rested, for good.
func (w *Worker) retire(c *conn) {
	c.retire()
	w.gone()
}

func (w *Worker) gone() {
	w.mu.Lock()
	w.open--
	w.mu.Unlock()
}

// dial makes a new connection, with its TLS session, within the connect timeout
// and before end, if there is one.
func (w *Worker) dial(ctx context.Context, end time.Time) (*conn, error) {
	if limit := w.timeouts.Connect; limit > 0 {
		if at := time.Now().Add(limit); end.IsZero() || at.Before(end) {
			end = at
		}
	}
	d := net.Dialer{Deadline: end}
	nc, err := d.DialContext(ctx, "tcp", w.addr)
	if err != nil {
		return nil, err
	}
	var session *tls.Conn
	if w.tls != nil {
		if session, err = handshake(ctx, nc, w.tls, end); err != nil {
			_ = nc.Close()
			return nil, err
		}
	}
	c, err := newConn(nc.(*net.TCPConn), session)
	if err != nil {
		_ = nc.Close()
		return nil, err
	}
	w.mu.Lock()
	w.open++
	w.mu.Unlock()
	return c, nil
}

// reap closes what rested too long: the front of the stack.
func (w *Worker) reap(now time.Time) {
	w.reapH2()
	w.mu.Lock()
	n := 0
	for n < len(w.idle) && now.Sub(w.idle[n].rested) >= idleLimit {
		n++
	}
	var old []*conn
	if n > 0 {
		old = append(old, w.idle[:n]...)
		m := copy(w.idle, w.idle[n:])
		clear(w.idle[m:])
		w.idle = w.idle[:m]
	}
	w.mu.Unlock()
	for _, c := range old {
		w.retire(c)
	}
}

// close closes all connections at rest, and each other one when it would come
// to rest.
func (w *Worker) close() {
	w.end()
	w.mu.Lock()
	old := w.idle
	w.idle, w.closed = nil, true
	w.retired.Store(true)
	w.mu.Unlock()
	for _, c := range old {
		w.retire(c)
	}
	w.dials.Wait()
	w.reapH2()
}
