package gone

import (
	"net"
	"sync"
	"sync/atomic"
)

// Watcher watches the connections accepted by its listeners. Make one with
// New, share it between all listeners of a process, Close it after they and
// the connections are closed. Safe for concurrent use.
type Watcher struct {
	refused atomic.Uint64
	next    atomic.Uint64 // the last token given out
	poll    notifier

	mu    sync.Mutex
	conns map[uint64]*Conn // by token; an entry lives from accept to Close
}

// notifier tells connections that their client has gone.
type notifier interface {
	// add begins to watch c, which is in the watcher's map. It is undone by
	// the end of the descriptor.
	add(c *Conn) error
	// close ends the notifier's goroutine and waits for it.
	close() error
}

// New makes a Watcher and starts its goroutine.
func New() (*Watcher, error) {
	return newWatcher(newNotifier)
}

func newWatcher(newNotifier func(*Watcher) (notifier, error)) (*Watcher, error) {
	w := &Watcher{conns: map[uint64]*Conn{}}
	poll, err := newNotifier(w)
	if err != nil {
		return nil, err
	}
	w.poll = poll
	return w, nil
}

// Close ends the watching and waits for the goroutine. Connections that are
// still open stay usable, but nobody will notice when their clients go; the
// listeners accept no more. Close the Watcher once only.
func (w *Watcher) Close() error {
	return w.poll.close()
}

// Refused returns how many connections or attempts to accept one have failed
// for want of descriptors or memory. Accept goes on after each of them.
func (w *Watcher) Refused() uint64 {
	return w.refused.Load()
}

// CancelAll calls Cancel, once, on what is armed on any connection, as if every
// client had gone; but Gone does not report it. What is armed later is not
// cancelled.
func (w *Watcher) CancelAll() {
	for _, c := range w.appendConns(nil) {
		c.cancel()
	}
}

// CloseSilent closes the connections on which the client has not sent a byte.
func (w *Watcher) CloseSilent() {
	for _, c := range w.appendConns(nil) {
		if !c.heard.Load() {
			_ = c.TCPConn.Close() // the server sees it, and closes c
		}
	}
}

// watch makes the Conn of an accepted connection and begins to watch it.
func (w *Watcher) watch(tc *net.TCPConn) (*Conn, error) {
	c := &Conn{TCPConn: tc, watcher: w, token: w.next.Add(1)}
	if err := c.open(); err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.conns[c.token] = c
	w.mu.Unlock()
	if err := w.poll.add(c); err != nil {
		w.forget(c)
		return nil, err
	}
	return c, nil
}

func (w *Watcher) forget(c *Conn) {
	w.mu.Lock()
	delete(w.conns, c.token)
	w.mu.Unlock()
}

// find returns the connection with the token, nil if it has been closed.
func (w *Watcher) find(token uint64) *Conn {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.conns[token]
}

// appendConns appends all connections to dst.
func (w *Watcher) appendConns(dst []*Conn) []*Conn {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		dst = append(dst, c)
	}
	return dst
}
