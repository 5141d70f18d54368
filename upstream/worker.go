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

// Worker is one engine as its pool's settings have it. It does not change: when
// the settings do, the pool has new Workers for the same engines, which share
// everything that the engine is doing, and a request under way keeps the one
// that it began with. So two Workers are the same engine where their URLs are
// equal, in one pool. It is safe for concurrent use.
type Worker struct {
	*backend
	pool     *Pool
	conf     *settings
	weight   int
	timeouts Timeouts
	source   string
}

// backend is what a pool knows of an engine and the connections to it, for as
// long as it is a member.
type backend struct {
	address
	id       int // its place in the pool, of no other member at the same time
	protocol string
	rest     time.Duration // how long a connection may rest
	tls      *tls.Config   // nil where the worker speaks plain HTTP
	base     *tls.Config   // what tls was made of, may be nil

	load    atomic.Int64
	leaving atomic.Bool // not a member any more: it must not be picked
	picks   atomic.Uint64
	fails   atomic.Uint64

	*counters // apart, for the caches: choices look at what is above for many workers

	current atomic.Pointer[Worker] // as the latest settings have it

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
	drained  bool
	failed   time.Time // when probes took it out

	state atomic.Uint32 // a State
	since atomic.Int64  // Unix time in ns of the last change of it

	// Guarded by Pool.changes. stopProbes is nil where there are none.
	stopProbes context.CancelFunc
	probedWith Health

	h2      atomic.Bool // it is spoken to in h2c
	life    context.Context
	end     context.CancelFunc
	dials   sync.WaitGroup // of h2c connections
	retired atomic.Bool    // closed, read without the lock

	mu      sync.Mutex
	side    *Worker // sends aborts, made by the first one
	idle    []*conn // the last one rested last
	open    int     // connections in use and at rest
	h2conns []*h2c.Conn
	h2dial  *h2Dial // the one that is being made
	closed  bool
}

// address is what the URL of a worker says.
type address struct {
	url    string // in its one form
	name   string // of the host, without brackets
	addr   string // host:port to dial
	host   []byte // value of the Host field
	secure bool   // https
}

// parseAddress takes http://host:port or https://host:port, port 80 or 443 where
// none is given. host is a name, an IPv4 address or an IPv6 address in brackets.
func parseAddress(raw string) (a address, err error) {
	const form = "worker url must be http://host:port or https://host:port"
	if strings.Contains(raw, "@") { // and is not echoed
		return a, errors.New(form + " without a user or password")
	}
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return a, fmt.Errorf("%s, got %q", form, raw)
	}
	bare, port := url.URL{Scheme: "http", Host: u.Host}, "80"
	if u.Scheme == "https" {
		bare.Scheme, port = "https", "443"
	}
	if !strings.EqualFold(strings.TrimSuffix(raw, "/"), bare.String()) {
		return a, fmt.Errorf("%s, got %q", form, raw)
	}
	if strings.HasSuffix(u.Host, ":") || u.Port() != "" {
		port = u.Port()
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return a, fmt.Errorf("%s with a port from 1 to 65535, got %q", form, raw)
		}
	}
	// The zone of an address is of no meaning to the worker (RFC 6874 section 4).
	host := u.Host
	if i := strings.IndexByte(host, '%'); i >= 0 {
		host = host[:i] + host[strings.LastIndexByte(host, ']'):]
	}
	return address{
		url: bare.String(), name: u.Hostname(), addr: net.JoinHostPort(u.Hostname(), port),
		host: []byte(host), secure: bare.Scheme == "https",
	}, nil
}

// newBackend makes what an engine at a is spoken to with: protocol, and where
// the address is a secure one secure, which may be nil, and HTTP/1.1.
func newBackend(a address, protocol string, secure *tls.Config) *backend {
	b := &backend{address: a, counters: new(counters), protocol: protocol, rest: idleLimit}
	if a.secure {
		b.protocol = HTTP1 // what the session is for
		b.tls, b.base = secureConfig(secure, a.name), secure
	}
	b.h2.Store(b.protocol == H2C)
	b.life, b.end = context.WithCancel(context.Background())
	b.healthy.Store(true) // until a probe says otherwise
	b.since.Store(time.Now().UnixNano())
	return b
}

// shadow returns a worker at the same address, spoken to in the same protocol,
// with connections and limits of its own. The caller closes it.
func (b *backend) shadow(t Timeouts) *Worker {
	s := &backend{address: b.address, counters: new(counters), tls: b.tls, protocol: b.protocol, rest: idleLimit}
	s.life, s.end = context.WithCancel(context.Background())
	return &Worker{backend: s, timeouts: t}
}

// URL returns the worker's base URL, its identity in logs and metrics.
func (w *Worker) URL() string { return w.url }

// Weight returns the worker's share of the requests relative to that of others.
func (w *Worker) Weight() int { return w.weight }

// Source returns what made the worker a member: SourceConfig, SourceAdmin or the
// name of one of PoolSpec.Sources; several are joined by commas.
func (w *Worker) Source() string { return w.source }

// State returns whether requests are sent to the worker and since when it has
// been so.
func (w *Worker) State() (s State, since time.Time) {
	since = time.Unix(0, w.since.Load())
	return State(w.state.Load()), since
}

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
	begun := time.Now()
	if limit := w.timeouts.Connect; limit > 0 {
		if at := begun.Add(limit); end.IsZero() || at.Before(end) {
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
	w.observeConnect(time.Since(begun))
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
	for n < len(w.idle) && now.Sub(w.idle[n].rested) >= w.rest {
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
	if side := w.sideWorker(); side != nil {
		side.reap(now)
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
	if side := w.sideWorker(); side != nil {
		side.close()
	}
}

// sideWorker returns the worker that sends aborts, or nil.
func (w *Worker) sideWorker() *Worker {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.side
}
