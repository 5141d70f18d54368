package h2c

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestBody_LargeOnesTakeTurns sends bodies of all sizes at once over one connection,
// in pieces of all sizes.
func TestBody_LargeOnesTakeTurns(t *testing.T) {
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("cannot read: %v", err)
		}
		_, _ = w.Write(body)
	})
	c := dial(t, addr, Config{})
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() {
			text := strings.Repeat(string(rune('a'+i)), (i%8+1)*37<<10)
			var pieces []string
			for left, step := text, 1; left != ""; step = step*5 + i {
				n := min(step, len(left))
				pieces, left = append(pieces, left[:n]), left[n:]
			}
			for range 3 {
				status, body, err := do(t, c, post(pieces...))
				if status != 200 || body != text || err != nil {
					t.Errorf("unexpected answer of %d bytes to %d; status %d, %v", len(body), len(text), status, err)
				}
			}
		})
	}
	all.Wait()
}

// TestBody_LeavesItsTurn: a stream that is canceled while it waits for its turn, or
// has it, keeps nobody from writing.
func TestBody_LeavesItsTurn(t *testing.T) {
	const streams = 16
	begun := make(chan struct{}, streams)
	hold := make(chan struct{})
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			begun <- struct{}{}
			<-hold
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "ok")
	})
	c := dial(t, addr, Config{})
	var all sync.WaitGroup
	var list []*Stream
	for range streams {
		s := reserve(t, c)
		all.Go(func() {
			// More than any window of the peer: it cannot be sent.
			req := post(strings.Repeat("x", 8<<20))
			req.Path = []byte("/hold")
			wantError(t, s.Do(req), FaultCanceled)
		})
		list = append(list, s)
	}
	<-begun
	for _, s := range list {
		s.Cancel()
	}
	all.Wait()
	for _, s := range list {
		s.Close()
	}
	close(hold)
	mustDo(t, c, post(strings.Repeat("y", 200<<10)), "ok")
}

// deafConn fails every write after some bytes, and tells its reader of nothing.
type deafConn struct {
	net.Conn
	mu   sync.Mutex
	left int
}

var errDeaf = errors.New("nobody listens")

func (c *deafConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(p), c.left)
	c.left -= n
	if n < len(p) {
		return n, errDeaf
	}
	return n, nil
}

// TestBody_WriteFails: streams with a rest of a body wait until the reader has ended
// the connection, and let it.
func TestBody_WriteFails(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewConn(&deafConn{Conn: nc, left: 20 << 10}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var all sync.WaitGroup
	for range 4 {
		s := reserve(t, c)
		all.Go(func() {
			defer s.Close()
			s.SetDeadline(time.Now().Add(time.Minute))
			if err := s.Do(post(strings.Repeat("x", 1<<20))); err == nil {
				t.Error("an answer came from nowhere")
			}
		})
	}
	all.Wait()
	if err := c.Err(); !errors.Is(err, errDeaf) {
		t.Errorf("unexpected end of the connection; got %v; want %v", err, errDeaf)
	}
}
