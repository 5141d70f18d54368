package h2c

import (
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// echo answers with what it was sent.
func echo(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
	_, _ = w.Write(b)
}

func TestNetHTTP_Echo(t *testing.T) {
	c := dial(t, serve(t, echo), Config{})
	for _, size := range []int{0, 1, 1000, 16 << 10, 16<<10 + 1, 64 << 10, 3 << 20} {
		body := rand.Text() + strings.Repeat("x", size)
		mustDo(t, c, post(body[:1], "", body[1:min(9, len(body))], body[9:]), body)
	}
	if n := c.InFlight(); n != 0 {
		t.Errorf("unexpected streams in flight; got %d; want 0", n)
	}
}

func TestNetHTTP_ManyAtOnce(t *testing.T) {
	c := dial(t, serve(t, echo), Config{})
	mustDo(t, c, post("first"), "first") // the limits of the peer are known
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			for j := range 20 {
				body := fmt.Sprintf("%d/%d ", i, j) + strings.Repeat("y", i*j*100)
				if _, got, err := do(t, c, post(body)); err != nil || got != body {
					t.Errorf("unexpected answer; got %d bytes, %v; want %d", len(got), err, len(body))
				}
			}
		})
	}
	all.Wait()
}
