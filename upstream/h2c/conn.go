package h2c

import (
	"cmp"
	"net"
	"sync"
	"time"
)

const (
	// readSize is the size of the buffer that a connection reads into.
	readSize = 32 << 10
	// maxQueued is how many bytes wait to be written before bodies wait.
	maxQueued = 64 << 10
	// keptOutput is the largest output buffer that a connection keeps, keptBody
	// the largest of the two that a stream keeps for the next one's answer.
	keptOutput = 2 * maxQueued
	keptBody   = 8 << 10
)

// Config is how a connection behaves. Its zero value is usable.
type Config struct {
	// MaxStreams is our own cap on the streams of one connection, whatever the
	// peer allows. Default 256.
	MaxStreams int
	// StreamWindow is how much of an answer a stream holds that nobody has
	// read yet. Default 256 KiB, at least 64 KiB − 1.
	StreamWindow int
	// PingAfter is the silence after which a peer with streams open is sent a
	// PING, PingTimeout how long it may then stay silent. Default 10 s each. A
	// peer that does not read for two to three times PingAfter is given up, too.
	PingAfter, PingTimeout time.Duration
}

func (cfg Config) withDefaults() Config {
	if cfg.MaxStreams <= 0 {
		cfg.MaxStreams = 256
	}
	if cfg.StreamWindow <= 0 {
		cfg.StreamWindow = 256 << 10
	}
	cfg.StreamWindow = min(max(cfg.StreamWindow, firstWindow), maxWindow/2)
	if cfg.PingAfter <= 0 {
		cfg.PingAfter = 10 * time.Second
	}
	if cfg.PingTimeout <= 0 {
		cfg.PingTimeout = 10 * time.Second
	}
	return cfg
}

// Conn is one connection to a peer. It is safe for concurrent use. Its owner
// closes it when it is not wanted any more; by itself it closes when the peer
// has, breaks a rule, leaves a PING unanswered, or said GOAWAY and has no
// stream left.
type Conn struct {
	nc  net.Conn
	cfg Config

	// flush is c.write as a value made once, so that a go statement with it
	// allocates nothing.
	flush func()
	done  chan struct{} // closed when the reader has ended

	mu      sync.Mutex // guards all below
	ss      *session
	dead    error     // why no more is read or written
	broken  error     // why no more is written; the reader ends it
	handed  int64     // bytes of the output that may have left
	parting bool      // who writes closes nc when he is done
	spare   []byte    // the buffer that is not ss.out
	writing bool      // somebody writes, or is about to
	turns   []*Stream // wait to write next
	writer  *Stream   // on whose time, or nil
	rushed  bool      // the write was made to end, see rushLocked
	blocked []*Stream // wait for a window or for room in the output
	free    []*Stream
	ready   chan struct{} // closed when the peer is known to speak HTTP/2, or dead
	isReady bool

	timer   *time.Timer
	armed   time.Time // when it fires, zero when it does not
	checkAt time.Time // when the peer's silence is judged, zero when no need
	heard   int64     // ss.received at the last check
	asked   time.Time // when a PING was sent since, zero when none was
	writes  int64     // so far
	wrote   int64     // at the last check
	stuck   bool      // there was none between the last two checks

	forgiven time.Time // see forgiveLocked
}

// NewConn takes nc over, queues the preface and the SETTINGS of the client, and
// starts the goroutine that reads and writes them. Streams may be reserved
// at once; whether the peer speaks HTTP/2 at all shows later, see [Probe].
// It returns an error where nc is nil.
func NewConn(nc net.Conn, cfg Config) (*Conn, error) {
	if nc == nil {
		return nil, errNoConn
	}
	cfg = cfg.withDefaults()
	c := &Conn{
		nc: nc, cfg: cfg, ss: newSession(cfg.MaxStreams, cfg.StreamWindow),
		done: make(chan struct{}), ready: make(chan struct{}),
	}
	c.flush = c.write
	c.timer = time.AfterFunc(time.Hour, c.onTimer)
	c.timer.Stop()
	go c.read()
	return c, nil
}

// Reserve returns a stream for one request, or false where the connection has
// as many as it may, is going away, or is dead. It does not wait.
func (c *Conn) Reserve() (*Stream, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead != nil || c.broken != nil || !c.ss.reserve() {
		return nil, false
	}
	n := len(c.free)
	if n == 0 {
		s := &Stream{conn: c, wake: make(chan struct{}, 1)}
		s.st.stream = s
		s.st.reset()
		return s, true
	}
	s := c.free[n-1]
	c.free[n-1] = nil
	c.free = c.free[:n-1]
	return s, true
}

// Available returns how many streams could be reserved now.
func (c *Conn) Available() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead != nil || c.broken != nil {
		return 0
	}
	return max(0, c.ss.capacity()-c.ss.slots)
}

// InFlight returns how many streams count against the limit: reserved, open,
// or reset by us without the peer having said that it has seen it.
func (c *Conn) InFlight() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ss.slots
}

// GoingAway reports whether the connection takes no more requests: the peer
// said GOAWAY, the stream numbers are used up, or it is dead.
func (c *Conn) GoingAway() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead != nil || c.broken != nil || c.ss.leaving()
}

// Err returns why the connection is dead, or nil while it lives.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// Close ends the connection and breaks the streams that are left. It waits for
// the reader, and may be called twice.
func (c *Conn) Close() {
	c.mu.Lock()
	if c.dead == nil {
		c.ss.queue(appendGoAway(c.ss.out, NoError))
		c.partLocked(ErrClosed)
	}
	c.wakeTouchedLocked()
	c.mu.Unlock()
	<-c.done
}

// dieLocked ends everything for the reason why.
func (c *Conn) dieLocked(why error) {
	if c.dead != nil {
		return
	}
	c.dead = why
	c.ss.close(why, c.handed)
	if !c.parting {
		_ = c.nc.Close() // tells nothing that could be acted on
	}
	c.timer.Stop()
	c.armed, c.checkAt = time.Time{}, time.Time{}
	c.wakeBlockedLocked()
	c.readyLocked()
}

const (
	// farewell is how long the last words may take.
	farewell = 50 * time.Millisecond
	// aftermath is how long is read after a write has failed.
	aftermath = time.Second
)

// partLocked is dieLocked for one who has something to say at last, a GOAWAY. It
// is written as far as that is quick.
func (c *Conn) partLocked(why error) {
	if c.dead != nil {
		return
	}
	c.parting = true
	c.handed = c.ss.queued
	_ = c.nc.SetWriteDeadline(time.Now().Add(farewell)) // fails where the write does
	c.dieLocked(why)
	if !c.writing {
		c.lastWordsLocked()
	}
}

// lastWordsLocked writes what is queued and closes. Errors would change nothing.
func (c *Conn) lastWordsLocked() {
	if len(c.ss.out) > 0 {
		_, _ = c.nc.Write(c.ss.takeOutput(nil))
	}
	_ = c.nc.Close()
}

// read is the reader: the only goroutine that a connection keeps.
func (c *Conn) read() {
	defer close(c.done)
	c.mu.Lock()
	c.kickLocked()
	c.mu.Unlock()
	buf := make([]byte, readSize)
	for {
		n, err := c.nc.Read(buf)
		c.mu.Lock()
		c.takeLocked(buf[:n], err)
		dead := c.dead != nil
		c.mu.Unlock()
		if dead {
			return
		}
	}
}

// takeLocked takes what one read has brought.
func (c *Conn) takeLocked(p []byte, err error) {
	if c.dead == nil {
		if wrong := c.ss.feed(p); wrong != nil {
			c.partLocked(wrong)
		} else if err != nil {
			c.dieLocked(cmp.Or(c.broken, err))
		}
		c.forgiveLocked()
		c.leaveLocked()
	}
	if c.ss.greeted && c.ss.acked {
		c.readyLocked()
	}
	if c.ss.roomier {
		c.ss.roomier = false
		c.wakeBlockedLocked()
	}
	c.wakeTouchedLocked()
	c.kickLocked()
}

// leaveLocked closes a connection that has nothing left to do.
func (c *Conn) leaveLocked() {
	if c.dead == nil && c.ss.leaving() && c.ss.slots == 0 {
		c.partLocked(errGone)
	}
}

func (c *Conn) readyLocked() {
	if !c.isReady {
		c.isReady = true
		close(c.ready)
	}
}

// wakeTouchedLocked wakes the streams that the session has changed.
func (c *Conn) wakeTouchedLocked() {
	for i, st := range c.ss.touched {
		st.stream.wakeLocked()
		c.ss.touched[i] = nil
	}
	c.ss.touched = c.ss.touched[:0]
}
