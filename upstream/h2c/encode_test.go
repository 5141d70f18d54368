package h2c

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"

	"sluice/upstream/h1"
)

// decode reads a header block with a decoder that nobody here wrote.
func decode(tb testing.TB, block []byte) []hpack.HeaderField {
	tb.Helper()
	list, err := hpack.NewDecoder(0, nil).DecodeFull(block)
	if err != nil {
		tb.Fatalf("unexpected error in %x: %v", block, err)
	}
	return list
}

func TestAppendHead(t *testing.T) {
	f := func(r Request, want ...string) {
		t.Helper()
		var got []string
		for _, f := range decode(t, appendHead(nil, &r)) {
			got = append(got, f.Name+"="+f.Value)
		}
		if g, w := strings.Join(got, " "), strings.Join(want, " "); g != w {
			t.Errorf("unexpected fields; got %s; want %s", g, w)
		}
	}
	b := func(s string) []byte { return []byte(s) }
	f(Request{Method: b("GET"), Scheme: b("http"), Authority: b("a:1"), Path: b("/"), Length: -1},
		":method=GET", ":scheme=http", ":authority=a:1", ":path=/")
	f(Request{Method: b("POST"), Scheme: b("https"), Path: b("/v1/models/a%2Fb?x=%2B"), Length: 0},
		":method=POST", ":scheme=https", ":path=/v1/models/a%2Fb?x=%2B", "content-length=0")
	f(Request{Method: b("PUT"), Scheme: b("x"), Path: b("/"), Length: math.MaxInt64, Fields: []h1.Field{
		{Name: b("X-A"), Value: b("V")}, {Name: b("x-a"), Value: b("")}, {Name: b("Accept"), Value: b("*/*")},
	}}, ":method=PUT", ":scheme=x", ":path=/", "x-a=V", "x-a=", "accept=*/*", "content-length=9223372036854775807")
	long := strings.Repeat("N", 40)
	f(Request{Method: b("GET"), Scheme: b("http"), Path: b("/"), Length: -1, Fields: []h1.Field{{Name: b(long), Value: b(long)}}},
		":method=GET", ":scheme=http", ":path=/", strings.ToLower(long)+"="+long)
}

// TestB60_HopByHopRequestFields: what speaks of a connection stays behind, even
// where the caller has forgotten to remove it.
func TestB60_HopByHopRequestFields(t *testing.T) {
	f := func(name, value string, want bool) {
		t.Helper()
		r := Request{
			Method: []byte("GET"), Scheme: []byte("http"), Path: []byte("/"), Length: -1,
			Fields: []h1.Field{{Name: []byte(name), Value: []byte(value)}},
		}
		list := decode(t, appendHead(nil, &r))
		if got := len(list) == 4; got != want {
			t.Errorf("%s: %s: unexpected in the request; got %v; want %v", name, value, got, want)
		}
	}
	for _, name := range []string{
		"Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "UPGRADE", "HTTP2-Settings", "Host",
		"content-length", "Proxy-Authorization", "Trailer", ":path", ":status", "", ":" + strings.Repeat("x", 40),
	} {
		f(name, "x", false)
	}
	f("TE", "gzip", false)
	f("te", "trailers, gzip", false)
	f("TE", "Trailers", true)
	f("Connections", "x", true)
	f("Authorization", "Bearer x", true)
}

func TestAppendHead_Static(t *testing.T) {
	for _, f := range strings.Fields(`accept-charset accept-encoding accept-language accept-ranges accept access-control-allow-origin age allow
		authorization cache-control content-disposition content-encoding content-language content-location content-range content-type cookie
		date etag expect expires from if-match if-modified-since if-none-match if-range if-unmodified-since last-modified link location
		max-forwards range referer refresh retry-after server set-cookie strict-transport-security user-agent vary via www-authenticate`) {
		i := staticName([]byte(f))
		if i == 0 {
			t.Errorf("%s is not found", f)
			continue
		}
		list := decode(t, appendLiteral(nil, hpackLiteral, i, []byte("v")))
		if len(list) != 1 || list[0].Name != f || list[0].Value != "v" {
			t.Errorf("unexpected field at %d; got %v; want %s", i, list, f)
		}
	}
	for _, s := range []string{"", "x", "accept-", "content-length", ":path", "host"} {
		if i := staticName([]byte(s)); i != 0 {
			t.Errorf("unexpected place of %q; got %d; want 0", s, i)
		}
	}
}

// TestAppendHead_Secrets: what identifies a client is never indexed, by anyone.
func TestAppendHead_Secrets(t *testing.T) {
	for _, name := range []string{"Authorization", "Cookie", "User-Agent"} {
		r := Request{Method: []byte("GET"), Path: []byte("/"), Length: -1, Fields: []h1.Field{{Name: []byte(name), Value: []byte("s")}}}
		list := decode(t, appendHead(nil, &r))
		if got, want := list[len(list)-1].Sensitive, name != "User-Agent"; got != want {
			t.Errorf("%s: unexpected sensitivity; got %v; want %v", name, got, want)
		}
	}
}

func TestAppendInt(t *testing.T) {
	f := func(n int, bits uint, want string) {
		t.Helper()
		if got := fmt.Sprintf("%x", appendInt(nil, 0, bits, n)); got != want {
			t.Errorf("unexpected bytes of %d in %d bits; got %s; want %s", n, bits, got, want)
		}
	}
	// RFC 7541 appendix C.1.
	f(10, 5, "0a")
	f(1337, 5, "1f9a0a")
	f(42, 8, "2a")
	f(30, 5, "1e")
	f(31, 5, "1f00")
	f(126, 7, "7e")
	f(127, 7, "7f00")
	f(254, 7, "7f7f")
	f(255, 7, "7f8001")
	for _, n := range []int{0, 126, 127, 128, 1000, 70000} {
		value := bytes.Repeat([]byte("v"), n)
		list := decode(t, appendLiteral(nil, hpackLiteral, 31, value))
		if len(list) != 1 || list[0].Value != string(value) {
			t.Errorf("a value of %d bytes was not read", n)
		}
	}
}
