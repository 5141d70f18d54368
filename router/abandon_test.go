package router

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/configs"
	"sluice/upstream/sim"
)

// startSGLang starts a router over an engine of that make, slow to answer.
func startSGLang(t *testing.T, engine, protocol string) *stand {
	t.Helper()
	opts := sim.Options{Models: []string{simModel}, Words: 1000, Pace: 10 * time.Millisecond, Flavour: sim.SGLang}
	return startStandWith(t, opts, func(c *configs.Config) {
		c.Pools[0].Engine, c.Pools[0].Protocol = engine, protocol
		c.Pools[0].Headers.Set = map[string]configs.Secret{"authorization": "Bearer k"}
	})
}

// leave sends a request whose client leaves when the engine is at work on it,
// and waits for its end.
func (s *stand) leave(path, body string) {
	s.t.Helper()
	seen := func() (n int) {
		for _, r := range s.engine.Requests() {
			if r.Path == path {
				n++
			}
		}
		return n
	}
	before := seen()
	c := s.dial().write("POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Length: " + itoa(len(body)) + "\r\n\r\n" + body)
	eventually(s.t, "the request at the engine", func() bool { return seen() > before })
	_ = c.Close()
	eventually(s.t, "the end of the request", func() bool { return s.router.InFlight() == 0 })
}

// aborted returns the rids that the engine was told to stop, in order.
func (s *stand) aborted() (rids []string) {
	for _, r := range s.engine.Requests() {
		if r.Path != abortPath {
			continue
		}
		var body struct {
			RID string `json:"rid"`
		}
		if err := json.Unmarshal(r.Body, &body); err != nil || r.Method != "POST" || field(r, "Authorization") != "Bearer k" {
			s.t.Errorf("unexpected abort %s %v %s: %v", r.Method, r.Header, r.Body, err)
		}
		rids = append(rids, body.RID)
	}
	slices.Sort(rids)
	return rids
}

const (
	messagesPart = `"model":"sim-8b","messages":[{"role":"user","content":"a"}]`
	generatePart = `"text":"a","sampling_params":{"max_new_tokens":1000}`
)

// B47: SGLang is told which request to stop.
func TestB47_AbortRequest(t *testing.T) {
	for _, protocol := range []string{"http1", "h2c"} {
		t.Run(protocol, func(t *testing.T) { testAborts(t, startSGLang(t, "sglang", protocol)) })
	}
}

func testAborts(t *testing.T, s *stand) {
	up := s.router.snap.Load().pools[0].up
	s.leave("/v1/chat/completions", `{"rid":"buffered-1",`+messagesPart+`}`)
	s.leave("/v1/chat/completions", `{"stream":true,"rid":"streamed-2",`+messagesPart+`}`)
	s.leave("/generate", `{"rid":"generate-3",`+generatePart+`}`)
	s.leave("/generate", `{`+generatePart+`,"stream":true,"rid":"first-copy","\u0072id":"esc\u0061ped \"4\""}`)
	// No id, none that is one, and one that begins those of others.
	s.leave("/v1/chat/completions", `{`+messagesPart+`}`)
	s.leave("/v1/chat/completions", `{"metadata":{"rid":"not-at-the-top"},`+messagesPart+`}`)
	s.leave("/v1/chat/completions", `{"rid":null,`+messagesPart+`}`)
	s.leave("/v1/chat/completions", `{"rid":"",`+messagesPart+`}`)
	s.leave("/v1/chat/completions", `{"rid":"short-1",`+messagesPart+`}`)
	s.leave("/v1/chat/completions", `{"rid":"`+strings.Repeat("x", maxRID+1)+`",`+messagesPart+`}`)
	s.leave("/generate", `{"rid":["in-a-list-1"],"text":["a"],"sampling_params":{"max_new_tokens":1000}}`)
	// And a client that stays.
	if r := s.chat(`{"rid":"stays-to-the-end","max_tokens":2,` + messagesPart + `}`); r.status != 200 {
		t.Fatalf("unexpected answer %d %s", r.status, r.body)
	}
	s.leave("/generate", `{"rid":"the-last-5",`+generatePart+`}`)
	eventually(t, "the aborts", func() bool { sent, failed, dropped := up.Aborts(); return sent+failed+dropped >= 5 })
	want := []string{"buffered-1", `escaped "4"`, "generate-3", "streamed-2", "the-last-5"}
	if got := s.aborted(); !slices.Equal(got, want) {
		t.Errorf("unexpected aborts\n got %q\nwant %q", got, want)
	}
	for name, want := range map[string]string{"sent": "5", "failed": "0", "dropped": "0"} {
		if got := s.metric("sluice_aborts_" + name + `_total{pool="sim"}`); got != want {
			t.Errorf("unexpected count of aborts that were %s; got %q; want %s", name, got, want)
		}
	}
}

// The abort reaches what has that id: here a request that somebody else sent.
func TestB47_AbortEndsTheRequest(t *testing.T) {
	s := startSGLang(t, "sglang", "http1")
	body := `{"rid":"shared-id",` + generatePart + `}`
	done := make(chan string)
	go func() {
		resp, err := http.Post(s.engine.URL()+"/generate", "application/json", strings.NewReader(body))
		if err != nil {
			done <- err.Error()
			return
		}
		b, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			b = []byte(err.Error())
		}
		done <- string(b)
	}()
	eventually(t, "the other request", func() bool { return s.engine.Stats().InFlight == 1 })
	s.leave("/generate", body)
	if got := <-done; !strings.Contains(got, `"type":"abort"`) {
		t.Errorf("unexpected answer %s", got)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestAbortOfSGLangOnly(t *testing.T) {
	s := startSGLang(t, "vllm", "http1")
	s.leave("/v1/chat/completions", `{"rid":"buffered-1",`+messagesPart+`}`)
	sent, failed, dropped := s.router.snap.Load().pools[0].up.Aborts()
	if sent+failed+dropped != 0 || len(s.aborted()) != 0 {
		t.Errorf("unexpected aborts %d, %d, %d", sent, failed, dropped)
	}
	if got := s.metric(`sluice_aborts_sent_total{pool="sim"}`); got != "" {
		t.Errorf("unexpected metric %q", got)
	}
}
