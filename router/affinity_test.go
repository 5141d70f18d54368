package router

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"sluice/configs"
	"sluice/upstream/sim"
)

// startFleet starts a router over n engines.
func startFleet(t *testing.T, n int, balance string) (*stand, []*sim.Engine) {
	t.Helper()
	var engines []*sim.Engine
	s := startStand(t, func(c *configs.Config) {
		p := &c.Pools[0]
		p.Balance, p.Workers = balance, nil
		for range n {
			e := sim.New(sim.Options{Models: []string{simModel}, Words: 2})
			url, err := e.Start("127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				_ = e.Close(ctx) // what is left of its connections is cut
			})
			engines = append(engines, e)
			p.Workers = append(p.Workers, configs.Worker{URL: url})
		}
	})
	return s, engines
}

// servedBy returns which engine has served since the last call.
func servedBy(t *testing.T, engines []*sim.Engine) (by int) {
	t.Helper()
	by = -1
	for i, e := range engines {
		if n := len(e.Requests()); n > 1 || (n == 1 && by >= 0) {
			t.Fatal("more than one request was served")
		} else if n == 1 {
			by = i
		}
		e.Reset()
	}
	if by < 0 {
		t.Fatal("no request was served")
	}
	return by
}

func TestSessionsStick(t *testing.T) {
	for _, balance := range []string{"consistent_hash", "prefix_aware"} {
		for _, field := range []string{"X-Session-Id", "x-smg-routing-key"} {
			s, engines := startFleet(t, 4, balance)
			used := map[int]bool{}
			for c := range 12 {
				first := -1
				for i := range 4 {
					body := fmt.Sprintf(`{"model":"sim-8b","messages":[{"role":"user","content":"%d"}]}`, 100*c+i)
					if r := s.chat(body, fmt.Sprintf("%s: session %d", field, c)); r.status != 200 {
						t.Fatalf("unexpected answer %d %s", r.status, r.body)
					}
					by := servedBy(t, engines)
					if first < 0 {
						first = by
					}
					if by != first {
						t.Fatalf("%s, %s: session %d is sent to engine %d and %d", balance, field, c, first, by)
					}
					used[by] = true
				}
			}
			if len(used) < 2 {
				t.Errorf("%s, %s: all sessions are sent to one engine", balance, field)
			}
		}
	}
}

// A conversation stays with the engine that has served its beginning, on every
// surface that has one, and new ones are spread.
func TestConversationsStick(t *testing.T) {
	long := func(c, turn int) string {
		return strings.Repeat(fmt.Sprintf("what was said in conversation %d ", c), 40*(turn+1))
	}
	for path, body := range map[string]func(c, turn int) string{
		"/v1/chat/completions": func(c, turn int) string {
			return fmt.Sprintf(`{"temperature":%d,"messages":[{"role":"user","content":"%s"}],"model":"sim-8b"}`, turn%2, long(c, turn))
		},
		"/v1/completions": func(c, turn int) string { return fmt.Sprintf(`{"model":"sim-8b","prompt":"%s"}`, long(c, turn)) },
		"/v1/responses":   func(c, turn int) string { return fmt.Sprintf(`{"model":"sim-8b","input":"%s"}`, long(c, turn)) },
		"/v1/messages": func(c, turn int) string {
			return fmt.Sprintf(`{"model":"sim-8b","max_tokens":9,"messages":[{"role":"user","content":"%s"}]}`, long(c, turn))
		},
		"/generate": func(c, turn int) string { return fmt.Sprintf(`{"text":"%s"}`, long(c, turn)) },
	} {
		s, engines := startFleet(t, 4, "prefix_aware")
		used := map[int]bool{}
		for c := range 12 {
			first := -1
			for turn := range 4 {
				if r := s.send("POST", path, body(c, turn)); r.status != 200 {
					t.Fatalf("%s: unexpected answer %d %s", path, r.status, r.body)
				}
				by := servedBy(t, engines)
				if first < 0 {
					first = by
				}
				if by != first {
					t.Errorf("%s: conversation %d is sent to engine %d and %d", path, c, first, by)
				}
				used[by] = true
			}
		}
		if len(used) < 2 {
			t.Errorf("%s: all conversations are sent to one engine", path)
		}
	}
}

// A conversation leaves an engine that has more than its share, and stays where
// it went.
func TestConversationsSpill(t *testing.T) {
	s, engines := startFleet(t, 2, "prefix_aware")
	body := fmt.Sprintf(`{"model":"sim-8b","prompt":"%s"}`, strings.Repeat("a long text ", 200))
	if r := s.send("POST", "/v1/completions", body); r.status != 200 {
		t.Fatalf("unexpected answer %d %s", r.status, r.body)
	}
	first := servedBy(t, engines)
	for _, e := range engines {
		e.Update(func(o *sim.Options) { o.Fail.Kind = sim.FailSilence })
	}
	busy := func() (n [2]int) {
		for i, e := range engines {
			n[i] = e.Stats().InFlight
		}
		return n
	}
	for i := range 6 {
		s.dial().write(fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
		eventually(t, "the request to reach an engine", func() bool { n := busy(); return n[0]+n[1] == i+1 })
		// Four it may always have.
		if n := busy(); n[first] != min(i+1, 4) {
			t.Errorf("unexpected requests %v after %d; the first engine is %d", n, i+1, first)
		}
	}
}
