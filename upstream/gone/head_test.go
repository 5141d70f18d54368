package gone

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

const request = "POST /v1/chat/completions HTTP/1.1\r\nHost: router:30000\r\nContent-Length: 14\r\n\r\n"

// heads are what a client sends, and the offset of the fault or -1.
var heads = []struct {
	in    string
	fault int
}{
	{"", -1},
	{request + "{\n\"a\":\n1\n}\n\n\n", -1},
	{"\r\n\r\n" + request + "\n", -1},
	{"GET / HTTP/1.1\r\n\r\n\n", -1},
	{"GET / HTTP/1.1", -1},
	{"GET / HTTP/1.1\r", -1},
	{"GET / HTTP/1.1\rx\r\n\r\n\n", -1}, // a bare CR is the server's to refuse
	{"\r\r\n\r\n\n", -1},
	{"\n", 0},
	{"\r\n\n", 2},
	{"GET / HTTP/1.1\n", 14},
	{"GET / HTTP/1.1\nHost: a\n\n", 14},
	{"GET / HTTP/1.1\r\nHost: a\n\n", 23},
	{"GET / HTTP/1.1\r\nHost: a\r\n\n", 25},
	{"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", 23},
	{"GET / HTTP/1.1\r \n\r\n\r\n", 16},
	{"\r\n\r\nGET / HTTP/1.1\r\n\n\r\n", 20},
}

// feedPieces feeds a new guard and returns the offset of the fault in the whole.
func feedPieces(pieces ...string) int {
	var g headGuard
	at := 0
	for _, p := range pieces {
		if i := g.feed([]byte(p)); i >= 0 {
			return at + i
		}
		at += len(p)
	}
	return -1
}

func TestHeadGuard(t *testing.T) {
	for _, tc := range heads {
		if got := feedPieces(tc.in); got != tc.fault {
			t.Fatalf("%q: unexpected fault; got %d; want %d", tc.in, got, tc.fault)
		}
		if got := feedPieces(strings.Split(tc.in, "")...); got != tc.fault {
			t.Fatalf("%q byte by byte: unexpected fault; got %d; want %d", tc.in, got, tc.fault)
		}
		for i := 0; i <= len(tc.in); i++ {
			if got := feedPieces(tc.in[:i], tc.in[i:]); got != tc.fault {
				t.Fatalf("%q cut at %d: unexpected fault; got %d; want %d", tc.in, i, got, tc.fault)
			}
		}
	}
}

func TestHeadGuard_NextHead(t *testing.T) {
	f := func(name string, fault bool, steps ...any) {
		t.Helper()
		var g headGuard
		got := false
		for _, step := range steps {
			switch step := step.(type) {
			case string:
				if got {
					t.Fatalf("%s: the fault came early", name)
				}
				got = g.feed([]byte(step)) >= 0
			case func(*headGuard):
				step(&g)
			}
		}
		if got != fault {
			t.Fatalf("%s: unexpected fault; got %v; want %v", name, got, fault)
		}
	}
	begin, next := (*headGuard).begin, (*headGuard).next
	const body, bad = "{\n\n}", "GET / HTTP/1.1\n"
	f("second head", true, request, begin, body, next, bad)
	f("body of the second request", false, request, begin, body, next, request, begin, body, body)
	f("second head after an empty body", true, "GET / HTTP/1.1\r\n\r\n", begin, next, bad)
	f("told twice", true, request, begin, body, next, next, bad)
	f("second request came with the first", false, request+body+request, begin, next, begin, body)
	f("third head after that", true, request+body+request, begin, next, begin, body, next, bad)
	f("part of the second head came with the first", false, request+body+"GET ", begin, next, begin, "/ HTTP/1.1\r\n\r\n", body)
	f("beginnings are not reported", false, request, body, next, bad)
	f("encrypted", false, "\x16\x03\x01\n\n", begin, next, bad)
	f("only the first byte tells", true, "G\x16\n")
}

func TestConn_ReadOfABareLF(t *testing.T) {
	server, client := newTestbed(t, newNotifier).pair()
	write(t, client, "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n")
	got, err := io.ReadAll(server)
	if err != ErrBareLF || string(got) != "GET / HTTP/1.1\r\nHost: a" {
		t.Fatalf("unexpected read; got %q, %v", got, err)
	}
	server.NextHead()
	if n, err := server.Read(make([]byte, 10)); n != 0 || err != ErrBareLF {
		t.Fatalf("unexpected second read; got %d, %v", n, err)
	}
}

// slowGuard is the obvious form of headGuard for a whole head.
func slowGuard(in []byte) int {
	if len(in) > 0 && in[0] == tlsHandshake {
		return -1
	}
	at := 0
	for bytes.HasPrefix(in[at:], []byte("\r\n")) {
		at += 2
	}
	end := len(in)
	if i := bytes.Index(in[at:], []byte("\r\n\r\n")); i >= 0 {
		end = at + i
	}
	for i := at; i < end; i++ {
		if in[i] == '\n' && (i == 0 || in[i-1] != '\r') {
			return i
		}
	}
	return -1
}

func FuzzHeadGuard(f *testing.F) {
	for _, tc := range heads {
		f.Add([]byte(tc.in), uint16(len(tc.in)/2))
	}
	f.Fuzz(func(t *testing.T, in []byte, cut uint16) {
		want := slowGuard(in)
		at := min(int(cut), len(in))
		for what, pieces := range map[string][]string{
			"whole": {string(in)}, "in two": {string(in[:at]), string(in[at:])}, "byte by byte": strings.Split(string(in), ""),
		} {
			if got := feedPieces(pieces...); got != want {
				t.Fatalf("%q %s: unexpected fault; got %d; want %d", in, what, got, want)
			}
		}
	})
}
