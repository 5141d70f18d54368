package h2c

import (
	"bufio"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// peer is the other end of a connection, as a test plays it.
type peer struct {
	nc  net.Conn
	in  *bufio.Reader
	out sync.Mutex
}

// play listens, and plays script on each connection, which is closed when it
// returns.
func play(t *testing.T, script func(p *peer)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer func() { _ = nc.Close() }()
				script(newPeer(nc))
			})
		}
	})
	t.Cleanup(func() { _ = ln.Close(); all.Wait() })
	return ln.Addr().String()
}

func newPeer(nc net.Conn) *peer {
	_ = nc.SetDeadline(time.Now().Add(patience))
	return &peer{nc: nc, in: bufio.NewReader(nc)}
}

// greet reads the preface and sends hello, and more.
func (p *peer) greet(more ...byte) bool {
	if _, err := p.in.Discard(len(preface)); err != nil {
		return false
	}
	p.send(append(hello(), more...))
	return true
}

// send writes what the client may have stopped to listen to.
func (p *peer) send(w wire) {
	p.out.Lock()
	defer p.out.Unlock()
	_, _ = p.nc.Write(w)
}

// frame reads the next frame.
func (p *peer) frame() (h header, payload []byte, ok bool) {
	var raw [headerLen]byte
	if _, err := io.ReadFull(p.in, raw[:]); err != nil {
		return h, nil, false
	}
	h = parseHeader(&raw)
	payload = make([]byte, h.length)
	_, err := io.ReadFull(p.in, payload)
	return h, payload, err == nil
}

// until reads up to a frame of the given kind. PINGs on the way are answered.
func (p *peer) until(kind uint8) (h header, payload []byte, ok bool) {
	for {
		h, payload, ok = p.frame()
		if !ok || h.kind == kind {
			return h, payload, ok
		}
		if h.kind == framePing && !h.has(flagAck) {
			p.send(wire(nil).frame(framePing, flagAck, 0, string(payload)))
		}
	}
}

// request reads up to the end of a request and returns its stream.
func (p *peer) request() (id uint32, ok bool) {
	for {
		h, _, ok := p.frame()
		if !ok || h.kind <= frameHeaders && h.has(flagEndStream) {
			return h.id, ok
		}
	}
}

// drain reads to the end of the connection and answers PINGs.
func (p *peer) drain() { _, _, _ = p.until(0xff) }
