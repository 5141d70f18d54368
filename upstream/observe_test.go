package upstream

import (
	"io"
	"net/http"
	"testing"
)

// Each exchange is counted once, by how it ended at the worker, over both
// protocols.
func TestCounters_Exchanges(t *testing.T) {
	for _, protocol := range []string{HTTP1, H2C} {
		waits := make(chan struct{}, 1)
		e := startH2(t, "127.0.0.1:0", "http1 h2c", func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/404":
				w.WriteHeader(404)
			case "/503":
				w.WriteHeader(503)
			case "/wait":
				waits <- struct{}{}
				<-r.Context().Done()
			case "/break":
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
		})
		p := poolOver(t, protocol, e.url, "http://127.0.0.1:1")
		w := p.Workers()[0]
		get := func(path string) {
			var x Exchange
			_, _, _ = do(&x, w, &Request{Method: []byte("GET"), Target: []byte(path), Length: -1}) // some fail
		}
		for _, path := range []string{"/", "/", "/404", "/503", "/break"} {
			get(path)
		}
		var left Exchange // by its client
		ended := make(chan error)
		go func() {
			ended <- left.Do(w, &Request{Method: []byte("GET"), Target: []byte("/wait"), Length: -1})
		}()
		<-waits
		left.Cancel()
		wantFault(t, <-ended, FaultCanceled)
		left.Close()
		w = p.Workers()[1]
		get("/")
		got := p.Counters()
		want := [NumClasses]uint64{ClassOK: 2, ClassClientError: 1, ClassBusy: 1, ClassIncomplete: 1, ClassConnect: 1, ClassCanceled: 1}
		if got.Ends != want {
			t.Errorf("%s: unexpected ends; got %v; want %v", protocol, got.Ends, want)
		}
		if n := got.FirstByte.Count(); n != 5 || got.FirstByte.Sum <= 0 {
			t.Errorf("%s: unexpected times to the first byte; got %d", protocol, n)
		}
		if n := got.Connect.Count(); n == 0 || got.Resends != 0 {
			t.Errorf("%s: unexpected counts; got %d connections, %d resends", protocol, n, got.Resends)
		}
	}
}

// A connection that was closed at rest is no retry: the request is sent once
// more to the same worker.
func TestCounters_Resend(t *testing.T) {
	answered := make(chan struct{})
	e := play(t, func(p *peer) {
		if _, _, ok := p.request(); ok {
			p.send(okAnswer)
			<-answered
			_, _, _ = p.request() // and closes in place of an answer
		}
	}, always(okAnswer))
	w := newTestWorker(t, e.url, Timeouts{})
	var x Exchange
	mustDo(t, &x, w, "ok")
	close(answered)
	mustDo(t, &x, w, "ok")
	if c := w.Counters(); c.Resends != 1 || c.Ends[ClassOK] != 2 || c.Ends[ClassClosed] != 0 {
		t.Errorf("unexpected counters %+v", c)
	}
}
