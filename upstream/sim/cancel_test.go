package sim

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"
)

// waiting returns a context for what a test waits for.
func waiting(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func waitFor(t *testing.T, e *Engine, ok func(Stats) bool) {
	t.Helper()
	if err := e.Wait(waiting(t), ok); err != nil {
		t.Fatalf("it did not come: %v", err)
	}
}

// TestCancel goes away at each point at which an engine can be busy, for longer
// than the test would wait.
func TestCancel(t *testing.T) {
	cases := []struct{ name, body, header, value string }{
		{"silence", `{"prompt":"a"}`, "x-sim-fail", "silence"},
		{"before the first byte", `{"prompt":"a"}`, "x-sim-ttfb", "1h"},
		{"before the first token", `{"prompt":"a"}`, "x-sim-ttft", "1h"},
		{"between two tokens", `{"prompt":"a"}`, "x-sim-pace", "1h"},
		{"before a stream", streamBody, "x-sim-ttfb", "1h"},
		{"silence instead of a stream", streamBody, "x-sim-fail", "silence"},
	}
	onBoth(t, func(t *testing.T, c *http.Client) {
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				e := start(t, Options{})
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				r := request(t, "POST", e.URL()+"/v1/completions", tc.body, tc.header, tc.value).WithContext(ctx)
				done := make(chan error, 1)
				go func() {
					resp, err := c.Do(r)
					if err == nil {
						resp.Body.Close()
					}
					done <- err
				}()
				waitFor(t, e, func(s Stats) bool { return s.InFlight == 1 })
				cancel()
				if err := <-done; err == nil {
					t.Error("there was an answer")
				}
				if err := e.WaitCancelled(waiting(t), 1); err != nil {
					t.Fatal(err)
				}
				wantEqual(t, "in flight", e.Stats().InFlight, 0)
				wantEqual(t, "outcome", e.Requests()[0].Outcome, Cancelled)
			})
		}
	})
}

func TestCancel_InStream(t *testing.T) {
	onBoth(t, func(t *testing.T, c *http.Client) {
		e := start(t, Options{})
		resp, err := c.Do(request(t, "POST", e.URL()+"/v1/completions", streamBody, "x-sim-pace", "1h"))
		if err != nil {
			t.Fatal(err)
		}
		first := make([]byte, len("data: "))
		if _, err := io.ReadFull(resp.Body, first); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if err := e.WaitCancelled(waiting(t), 1); err != nil {
			t.Fatal(err)
		}
	})
}

// TestCancel_OneStream leaves one of two streams of an h2c connection.
func TestCancel_OneStream(t *testing.T) {
	e := start(t, Options{})
	c := client(t, H2C)
	post200(t, c, e.URL()+"/v1/completions", streamBody) // opens the connection
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 2)
	for _, ctx := range []context.Context{ctx, waiting(t)} {
		r := request(t, "POST", e.URL()+"/generate", `{"text":"a","rid":"r"}`, "x-sim-pace", "1h").WithContext(ctx)
		go func() {
			resp, err := c.Do(r)
			if err == nil {
				resp.Body.Close()
			}
			done <- err
		}()
	}
	waitFor(t, e, func(s Stats) bool { return s.InFlight == 2 })
	cancel()
	if err := e.WaitCancelled(waiting(t), 1); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Error("the stream that was left has an answer")
	}
	wantEqual(t, "in flight", e.Stats().InFlight, 1)
	wantEqual(t, "connections", e.Stats().Connections, 1)
	post200(t, c, e.URL()+"/abort_request", `{"rid":"r"}`)
	if err := <-done; err != nil {
		t.Errorf("the other stream has failed: %v", err)
	}
}

func TestAbortRequest(t *testing.T) {
	onBoth(t, func(t *testing.T, c *http.Client) {
		e := start(t, Options{Flavour: SGLang})
		f := func(abort string) {
			t.Helper()
			before := e.Stats().Aborted
			r := request(t, "POST", e.URL()+"/generate", `{"text":"a","rid":"r","stream":true}`, "x-sim-pace", "1h")
			var body []byte
			done := make(chan error, 1)
			go func() {
				var err error
				_, body, err = partly(t, c, r)
				done <- err
			}()
			waitFor(t, e, func(s Stats) bool { return s.InFlight == 1 })
			post200(t, c, e.URL()+"/abort_request", `{"rid":"other"}`)
			waitFor(t, e, func(s Stats) bool { return s.InFlight == 1 })
			post200(t, c, e.URL()+"/abort_request", abort)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			list := events(t, body)
			v := read(t, []byte(list[len(list)-2].data))
			wantEqual(t, "finish", at(t, v, "meta_info", "finish_reason", "type"), "abort")
			wantEqual(t, "end", list[len(list)-1].data, "[DONE]")
			waitFor(t, e, func(s Stats) bool { return s.Aborted == before+1 && s.InFlight == 0 })
		}
		f(`{"rid":"r"}`)
		f(`{"abort_all":true}`)
	})
}

func TestClose_BreaksOff(t *testing.T) {
	onBoth(t, func(t *testing.T, c *http.Client) {
		e := start(t, Options{Fail: Failure{Kind: FailSilence}})
		done := make(chan error, 1)
		r := request(t, "POST", e.URL()+"/v1/completions", streamBody)
		go func() {
			_, _, err := partly(t, c, r)
			done <- err
		}()
		waitFor(t, e, func(s Stats) bool { return s.InFlight == 1 })
		if err := e.Close(waiting(t)); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err == nil {
			t.Error("there was an answer")
		}
		wantEqual(t, "in flight", e.Stats().InFlight, 0)
		wantEqual(t, "failed", e.Stats().Failed, 1)
		if _, err := e.Start("127.0.0.1:0"); err == nil {
			t.Error("a closed engine has started")
		}
	})
}

func TestWait_EndsWithItsContext(t *testing.T) {
	e := New(Options{})
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := e.WaitCancelled(ctx, 1); err == nil {
		t.Error("nobody went away, but WaitCancelled has seen it")
	}
}
