package upstream

import (
	"net"
	"strings"
	"testing"
)

func TestWorkerURL(t *testing.T) {
	f := func(raw, url, addr, host string) {
		t.Helper()
		w, err := parseAddress(raw)
		if err != nil {
			t.Fatalf("unexpected error for %q: %v", raw, err)
		}
		if w.url != url || w.addr != addr || string(w.host) != host {
			t.Fatalf("unexpected worker for %q; got %s, %s, %s; want %s, %s, %s", raw, w.url, w.addr, w.host, url, addr, host)
		}
	}
	f("http://10.0.0.1:30000", "http://10.0.0.1:30000", "10.0.0.1:30000", "10.0.0.1:30000")
	f("http://10.0.0.1:30000/", "http://10.0.0.1:30000", "10.0.0.1:30000", "10.0.0.1:30000")
	f("HTTP://gpu-1.fleet:8000", "http://gpu-1.fleet:8000", "gpu-1.fleet:8000", "gpu-1.fleet:8000")
	f("http://engine", "http://engine", "engine:80", "engine")
	f("https://engine", "https://engine", "engine:443", "engine")
	f("HTTPS://engine:8443/", "https://engine:8443", "engine:8443", "engine:8443")
	f("http://[::1]:30000", "http://[::1]:30000", "[::1]:30000", "[::1]:30000")
	f("http://[::1]", "http://[::1]", "[::1]:80", "[::1]")
	f("http://[fe80::1%25eth0]:30000", "http://[fe80::1%25eth0]:30000", "[fe80::1%eth0]:30000", "[fe80::1]:30000")
	f("http://[fe80::1%25eth0]", "http://[fe80::1%25eth0]", "[fe80::1%eth0]:80", "[fe80::1]")
}

func TestWorkerURL_Refused(t *testing.T) {
	for _, raw := range []string{
		"", "10.0.0.1:30000", "worker", "https://", "https://w:1/v1", "https://w:", "h2c://w:1", "http:w:1", "http://", "http:///v1",
		"http://:8000", "http://w:", "http://w:0", "http://w:65536", "http://w:x", "http://w:1/v1", "http://w:1//",
		"http://w:1?", "http://w:1?a=b", "http://w:1#", "http://w:1#f", "http://a b:1", "http://a%20b:1",
		"http://w:1\r\nX: y", "http://::1:30000", "http://[::1:30000", "http://[fe80::1%25a%0d%0ab]:1",
	} {
		if w, err := parseAddress(raw); err == nil {
			t.Errorf("unexpected worker for %q; got %s; want an error", raw, w.url)
		}
	}
	for _, raw := range []string{"http://u:secret@w:1", "https://u:secret@w:1", "http://u:secret@w:x", "http://:secret@ w:1"} {
		if _, err := parseAddress(raw); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("unexpected error for a url with a password; got %v", err)
		}
	}
}

// TestWorkerAddress dials what is not an IPv4 address.
func TestWorkerAddress(t *testing.T) {
	e := play(t, always(okAnswer))
	_, port, err := net.SplitHostPort(strings.TrimPrefix(e.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	var x Exchange
	mustDo(t, &x, newTestWorker(t, "http://localhost:"+port, Timeouts{}), "ok")

	ln, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here: ", err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		b := make([]byte, 4096)
		if _, err := c.Read(b); err == nil {
			_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\n\r\nok"))
		}
	}()
	mustDo(t, &x, newTestWorker(t, "http://"+ln.Addr().String(), Timeouts{}), "ok")
	<-served
	_ = ln.Close()
}

func TestRelease_Unpicked(t *testing.T) {
	p := newFleet(t, RoundRobin, 1)
	defer func() {
		if recover() == nil {
			t.Fatal("unexpected silence; want a panic")
		}
	}()
	p.Workers()[0].Release()
}
