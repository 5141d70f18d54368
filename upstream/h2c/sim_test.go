package h2c

import (
	"context"
	"strings"
	"sync"
	"testing"

	"sluice/upstream/h1"
	"sluice/upstream/sim"
)

func startSim(t *testing.T, o sim.Options) (*sim.Engine, *Conn) {
	t.Helper()
	e := sim.New(o)
	url, err := e.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e, dial(t, strings.TrimPrefix(url, "http://"), Config{})
}

func chat(more ...h1.Field) *Request {
	r := post(`{"messages":[{"role":"user","content":"hi"}],"stream":true}`)
	r.Fields = append(r.Fields, more...)
	return r
}

func TestSim_Streams(t *testing.T) {
	e, c := startSim(t, sim.Options{Text: "one two three"})
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			status, body, err := do(t, c, chat())
			if err != nil || status != 200 || !strings.Contains(body, "three") || !strings.HasSuffix(body, "data: [DONE]\n\n") {
				t.Errorf("unexpected answer; got %d %q, %v", status, body, err)
			}
		})
	}
	all.Wait()
	if s := e.Stats(); s.Completed != 32 || s.Connections != 1 || s.ByProto["HTTP/2.0"] != 32 {
		t.Errorf("unexpected counts of the engine; got %+v", s)
	}
}

// TestSim_Cancel: the engine is free as soon as its client is gone, whether or
// not it has begun to answer.
func TestSim_Cancel(t *testing.T) {
	e, c := startSim(t, sim.Options{})
	wait := func(ok func(sim.Stats) bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := e.Wait(ctx, ok); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range []string{"x-sim-ttfb", "x-sim-ttft", "x-sim-pace"} {
		s := reserve(t, c)
		done := make(chan error, 1)
		go func() {
			err := s.Do(chat(h1.Field{Name: []byte(name), Value: []byte("1h")}))
			for err == nil {
				_, err = s.Next()
			}
			done <- err
		}()
		wait(func(s sim.Stats) bool { return s.InFlight == 1 })
		s.Cancel()
		wantError(t, <-done, FaultCanceled)
		s.Close()
		wait(func(s sim.Stats) bool { return s.InFlight == 0 && s.Cancelled == i+1 })
	}
	mustEnd(t, c)
}
