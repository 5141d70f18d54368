package router

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/configs"
	"sluice/upstream/h1"
)

// An https worker with a CA of its own is served, and probed, like any other.
func TestB76_SecureWorker(t *testing.T) {
	answer := strings.Repeat("x", 1<<20)
	e := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer k" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Errorf("cannot read the body: %v", err)
		}
		_, _ = io.WriteString(w, answer)
	}))
	e.Config.ErrorLog = log.New(io.Discard, "", 0)
	e.StartTLS()
	t.Cleanup(e.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: e.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s := startRouter(t, e.URL, func(c *configs.Config) {
		c.Pools[0].TLS = configs.TLS{CA: ca, ServerName: "example.com"} // httptest's certificate is for that, too
		c.Pools[0].Headers.Set = map[string]configs.Secret{"authorization": "Bearer k"}
		c.Pools[0].Health.Interval = 5 * time.Millisecond
		c.Pools[0].Health.UnhealthyAfter = 1
	})
	body := `{"model":"sim-8b","pad":"` + strings.Repeat("x", 1<<20) + `"}`
	for range 3 {
		if r := s.chat(body); r.status != 200 || r.body != answer {
			t.Fatalf("unexpected answer %d, %d bytes", r.status, len(r.body))
		}
	}
	worker := `{pool="sim",worker="` + e.URL + `"}`
	if got := s.metric("sluice_worker_healthy" + worker); got != "1" {
		t.Errorf("unexpected health %q", got)
	}
}

func TestSecureWorkerRefused(t *testing.T) {
	e := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request got through") }))
	e.Config.ErrorLog = log.New(io.Discard, "", 0)
	e.StartTLS()
	t.Cleanup(e.Close)
	s := startRouter(t, e.URL, nil)
	r := s.chat(chatBody)
	if r.status != 502 || r.header.Get(headerErrorCode) != "upstream_unreachable" || strings.Contains(r.body, "x509") {
		t.Errorf("unexpected answer %d %s", r.status, r.body)
	}
	if !strings.Contains(s.access.String(), "x509") {
		t.Errorf("the operator is not told: %s", s.access.String())
	}
}

// What a pool sets and removes is last: over the client's fields, whatever their
// case or Connection says, and over the router's own.
func TestPoolHeaders(t *testing.T) {
	s := startStand(t, func(c *configs.Config) {
		c.Pools[0].Headers = configs.Headers{
			Set:    map[string]configs.Secret{"authorization": "Bearer k", "X-Forwarded-Proto": "https", "x-new": "1"},
			Remove: []string{"x-internal", "X-FORWARDED-FOR", "accept"},
		}
	})
	head := "POST /v1/chat/completions HTTP/1.1\r\nHost: public.example\r\nAUTHORIZATION: Bearer client\r\nAuthorization: again\r\nAccept: */*\r\n" +
		"X-Internal: 1\r\nx-internal: 2\r\nX-Internals: 3\r\nConnection: authorization, x-new\r\nContent-Length: 32\r\n\r\n"
	for range 2 { // the second uses the memory of the first
		if r := s.dial().write(head + chatBody).read(); r.status != 200 {
			t.Fatalf("unexpected answer %d %s", r.status, r.body)
		}
		got := s.received()[0]
		for name, want := range map[string]string{
			"authorization": "Bearer k", "x-forwarded-proto": "https", "x-new": "1", "x-internals": "3",
			"x-internal": "", "x-forwarded-for": "", "accept": "", "x-forwarded-host": "public.example",
		} {
			if v := field(got, name); v != want {
				t.Errorf("unexpected %s at the engine; got %q; want %q", name, v, want)
			}
		}
	}
	if logged := s.access.String(); strings.Contains(logged, "Bearer") {
		t.Errorf("a secret is in the log: %s", logged)
	}
}

// No pool may write the fields that the connections to workers are made of.
func TestPoolHeadersAreNotHopByHop(t *testing.T) {
	for _, name := range []string{
		"connection", "te", "trailer", "upgrade", "keep-alive", "http2-settings", "proxy-connection",
		"transfer-encoding", "proxy-authenticate", "proxy-authorization", "proxy-authentication-info",
	} {
		if !h1.HopByHop([]byte(name)) {
			t.Errorf("%s is no such field any more", name)
		}
		c := configs.Default()
		p := configs.DefaultPool()
		p.Name, p.Workers = "p", []configs.Worker{{URL: "http://h:1"}}
		p.Headers.Set = map[string]configs.Secret{name: "x"}
		c.Pools = []configs.Pool{p}
		if err := c.Validate(); err == nil {
			t.Errorf("%s may be set", name)
		}
	}
}
