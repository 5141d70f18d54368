//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"strconv"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// h2conn is one h2c connection of the engine. Frames are queued by whoever has
// some and written by the first who finds that nobody writes: as engines do it,
// many answers leave in one system call under load.
type h2conn struct {
	nc net.Conn

	mu      sync.Mutex
	room    sync.Cond // a window has grown, or the connection has ended
	out     []byte
	spare   []byte
	writing bool
	ended   bool
	enc     *hpack.Encoder
	block   bytes.Buffer
	first   int64 // window of a new stream
	window  int64 // of the connection
	streams map[uint32]*h2stream
}

type h2stream struct {
	want   want
	probe  bool // no target of ours: a probe of the router's
	window int64
	gone   bool // the peer has reset it
}

const (
	h2HeaderLen = 9
	h2Window    = 1 << 30 // what we take before we give some back
	h2Frame     = 16 * kib
)

var errH2 = errors.New("not a frame that is expected here")

// serveH2 returns what serves an h2c connection that begins with in.
func serveH2(nc net.Conn) func(in *bufio.Reader) {
	return func(in *bufio.Reader) {
		c := &h2conn{nc: nc, first: 64*kib - 1, window: 64*kib - 1, streams: map[uint32]*h2stream{}}
		c.room.L = &c.mu
		c.enc = hpack.NewEncoder(&c.block)
		// The error says that the router has closed the connection.
		_ = c.serve(bufio.NewReaderSize(in, 64*kib))
		c.mu.Lock()
		c.ended = true
		c.mu.Unlock()
		c.room.Broadcast()
	}
}

func (c *h2conn) serve(in *bufio.Reader) error {
	if _, err := in.Discard(len(http2.ClientPreface)); err != nil {
		return err
	}
	var settings [12]byte
	binary.BigEndian.PutUint16(settings[0:], uint16(http2.SettingMaxConcurrentStreams))
	binary.BigEndian.PutUint32(settings[2:], 10000)
	binary.BigEndian.PutUint16(settings[6:], uint16(http2.SettingInitialWindowSize))
	binary.BigEndian.PutUint32(settings[8:], h2Window)
	c.mu.Lock()
	c.frameLocked(http2.FrameSettings, 0, 0, settings[:])
	c.frameLocked(http2.FrameWindowUpdate, 0, 0, binary.BigEndian.AppendUint32(nil, h2Window))
	c.flushLocked()
	c.mu.Unlock()
	var (
		target string
		taken  int
	)
	dec := hpack.NewDecoder(4*kib, func(f hpack.HeaderField) {
		if f.Name == ":path" {
			target = f.Value
		}
	})
	for {
		head, err := in.Peek(h2HeaderLen)
		if err != nil {
			return err
		}
		n := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
		kind, flags, id := http2.FrameType(head[3]), http2.Flags(head[4]), binary.BigEndian.Uint32(head[5:])
		if n > h2Frame {
			return errH2
		}
		frame, err := in.Peek(h2HeaderLen + n)
		if err != nil {
			return err
		}
		p := frame[h2HeaderLen:]
		if kind == http2.FrameHeaders {
			if flags != flags&(http2.FlagHeadersEndHeaders|http2.FlagHeadersEndStream) || !flags.Has(http2.FlagHeadersEndHeaders) {
				return errH2 // nobody here pads, prefers or continues
			}
			if _, err := dec.Write(p); err != nil {
				return err
			}
		}
		c.mu.Lock()
		c.takeLocked(kind, flags, id, p, target)
		if kind == http2.FrameData {
			if taken += n; taken >= h2Window/2 {
				c.frameLocked(http2.FrameWindowUpdate, 0, 0, binary.BigEndian.AppendUint32(nil, uint32(taken)))
				taken = 0
			}
		}
		if _, err := in.Discard(h2HeaderLen + n); err != nil {
			c.mu.Unlock()
			return err
		}
		if in.Buffered() < h2HeaderLen {
			c.flushLocked()
		}
		c.mu.Unlock()
	}
}

// takeLocked takes one frame of the router.
func (c *h2conn) takeLocked(kind http2.FrameType, flags http2.Flags, id uint32, p []byte, target string) {
	switch kind {
	case http2.FrameHeaders:
		w, err := parseWant(target)
		c.streams[id] = &h2stream{want: w, probe: err != nil, window: c.first}
		fallthrough
	case http2.FrameData:
		if s := c.streams[id]; s != nil && flags.Has(http2.FlagDataEndStream) {
			c.answerLocked(id, s)
		}
	case http2.FrameSettings:
		if flags.Has(http2.FlagSettingsAck) {
			return
		}
		for ; len(p) >= 6; p = p[6:] {
			if http2.SettingID(binary.BigEndian.Uint16(p)) == http2.SettingInitialWindowSize {
				c.first = int64(binary.BigEndian.Uint32(p[2:]))
			}
		}
		c.frameLocked(http2.FrameSettings, http2.FlagSettingsAck, 0, nil)
	case http2.FramePing:
		if !flags.Has(http2.FlagPingAck) {
			c.frameLocked(http2.FramePing, http2.FlagPingAck, 0, p)
		}
	case http2.FrameWindowUpdate:
		n := int64(binary.BigEndian.Uint32(p))
		if id == 0 {
			c.window += n
		} else if s := c.streams[id]; s != nil {
			s.window += n
		}
		c.room.Broadcast()
	case http2.FrameRSTStream:
		if s := c.streams[id]; s != nil {
			s.gone = true
			delete(c.streams, id)
			c.room.Broadcast()
		}
	}
}

// answerLocked begins the answer to a request that is complete, and ends it
// where it is no stream of events.
func (c *h2conn) answerLocked(id uint32, s *h2stream) {
	if s.want.Events > 0 {
		c.headLocked(id, "text/event-stream", -1)
		go c.stream(id, s)
		return
	}
	n := s.want.Size
	if s.probe {
		n = 2
	}
	c.headLocked(id, "application/json", n)
	c.window -= int64(n) // always small beside what the router allows
	c.frameLocked(http2.FrameData, http2.FlagDataEndStream, id, jsonBodies.of(n))
	delete(c.streams, id)
}

func (c *h2conn) headLocked(id uint32, contentType string, length int) {
	c.block.Reset()
	c.field(":status", "200")
	c.field("content-type", contentType)
	c.field("server", "engine")
	if length >= 0 {
		c.field("content-length", strconv.Itoa(length))
	}
	c.frameLocked(http2.FrameHeaders, http2.FlagHeadersEndHeaders, id, c.block.Bytes())
}

func (c *h2conn) field(name, value string) {
	// A bytes.Buffer takes everything.
	_ = c.enc.WriteField(hpack.HeaderField{Name: name, Value: value})
}

// stream sends the events of one answer.
func (c *h2conn) stream(id uint32, s *h2stream) {
	clock := newPacer(s.want.Pace)
	var buf [eventSize]byte
	for i := range s.want.Events {
		clock.wait(i)
		if !c.send(id, s, appendEvent(buf[:0], monotonic()), 0) {
			return
		}
	}
	c.send(id, s, []byte(lastEvent), http2.FlagDataEndStream)
}

// send sends one DATA frame, when the windows have room for it. It returns false
// when nobody wants it any more.
func (c *h2conn) send(id uint32, s *h2stream, p []byte, flags http2.Flags) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := int64(len(p))
	for !c.ended && !s.gone && (s.window < n || c.window < n) {
		c.room.Wait()
	}
	if c.ended || s.gone {
		return false
	}
	s.window -= n
	c.window -= n
	c.frameLocked(http2.FrameData, flags, id, p)
	if flags != 0 {
		delete(c.streams, id)
	}
	c.flushLocked()
	return true
}

func (c *h2conn) frameLocked(kind http2.FrameType, flags http2.Flags, id uint32, p []byte) {
	n := len(p)
	c.out = append(c.out, byte(n>>16), byte(n>>8), byte(n), byte(kind), byte(flags))
	c.out = binary.BigEndian.AppendUint32(c.out, id)
	c.out = append(c.out, p...)
}

// flushLocked writes what is queued, without the lock, unless somebody does so.
func (c *h2conn) flushLocked() {
	if c.writing {
		return
	}
	c.writing = true
	for len(c.out) > 0 && !c.ended {
		out := c.out
		c.out = c.spare[:0]
		c.mu.Unlock()
		_, err := c.nc.Write(out)
		c.mu.Lock()
		c.spare = out
		c.ended = c.ended || err != nil
	}
	c.writing = false
}

// bodies keeps answers by their length.
type bodies struct{ m sync.Map }

var jsonBodies bodies

func (b *bodies) of(n int) []byte {
	if p, ok := b.m.Load(n); ok {
		return p.([]byte)
	}
	p := jsonBody(n)
	b.m.Store(n, p)
	return p
}
