package upstream

import (
	"strings"
	"testing"
)

// abortingPool makes a pool over one worker that is told of aborts.
func abortingPool(t *testing.T, url string) *Pool {
	t.Helper()
	return newTestPool(t, PoolSpec{
		Name: "test", Workers: []WorkerSpec{{URL: url}}, AbortPath: "/abort_request",
		Fields: FieldEdits{Set: fieldsOf("authorization: Bearer k")},
	})
}

func TestAbort(t *testing.T) {
	type request struct{ head, body string }
	seen := make(chan request, 8)
	answers := make(chan string, 8)
	e := play(t, func(p *peer) {
		for {
			head, body, ok := p.request()
			if !ok {
				return
			}
			seen <- request{head, body}
			p.send(<-answers)
		}
	})
	p := abortingPool(t, e.url)
	w := p.Workers()[0]
	f := func(answer string, wantSent, wantFailed uint64) {
		t.Helper()
		answers <- answer
		p.Abort(w, []byte(`{"rid":"r"}`))
		got := <-seen
		if got.body != `{"rid":"r"}` || !strings.HasPrefix(got.head, "POST /abort_request HTTP/1.1\r\n") {
			t.Errorf("unexpected request %q", got)
		}
		for _, line := range []string{"authorization: Bearer k", "Content-Type: application/json"} {
			if !strings.Contains(got.head, "\r\n"+line+"\r\n") {
				t.Errorf("unexpected head %q; want %s", got.head, line)
			}
		}
		eventually(t, "the count", func() bool {
			sent, failed, _ := p.Aborts()
			return sent == wantSent && failed == wantFailed
		})
	}
	f(okAnswer, 1, 0)
	f("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 1, 1)
	f(okAnswer, 2, 1)
	if n := w.Failures(); n != 0 || w.Load() != 0 {
		t.Errorf("unexpected marks on the worker: %d failures, load %d", n, w.Load())
	}
}

// Aborts to a worker that does not answer wait without holding anybody up, no
// more of them than may, and the end of the pool ends them.
func TestAbort_Bounded(t *testing.T) {
	e := play(t, func(p *peer) { p.wait() })
	p := abortingPool(t, e.url)
	const n = maxAborts + abortSenders + 10
	for range n {
		p.Abort(p.Workers()[0], []byte(`{"rid":"r"}`))
	}
	if _, _, dropped := p.Aborts(); dropped < 10 || dropped > n-maxAborts {
		t.Errorf("unexpected number of dropped aborts; got %d of %d", dropped, n)
	}
}

func TestAbort_NotWithoutPath(t *testing.T) {
	e := play(t, always(okAnswer))
	p := newTestPool(t, PoolSpec{Name: "test", Workers: []WorkerSpec{{URL: e.url}}})
	p.Abort(p.Workers()[0], []byte("{}"))
	if sent, failed, dropped := p.Aborts(); sent+failed+dropped != 0 {
		t.Errorf("unexpected aborts %d, %d, %d", sent, failed, dropped)
	}
}
