package h1

import (
	"strings"
	"testing"
)

func TestB60_HopByHop(t *testing.T) {
	for _, name := range []string{
		"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization",
		"Proxy-Authentication-Info", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "HTTP2-Settings",
	} {
		for _, spelt := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
			if !HopByHop([]byte(spelt)) {
				t.Fatalf("%q is not hop-by-hop", spelt)
			}
		}
		for _, other := range []string{name[:len(name)-1], name + "s", "x" + name[1:], name[:len(name)-1] + "\x00"} {
			if HopByHop([]byte(other)) {
				t.Fatalf("%q is hop-by-hop", other)
			}
		}
	}
	for _, name := range []string{"", "Host", "Authorization", "Content-Length", "Content-Type", "Expect", "Cookie", "T\x05", "keep\ralive"} {
		if HopByHop([]byte(name)) {
			t.Fatalf("%q is hop-by-hop", name)
		}
	}
}

func TestB60_ConnectionNames(t *testing.T) {
	f := func(value, name string, want bool) {
		t.Helper()
		if got := ConnectionNames([]byte(value), []byte(name)); got != want {
			t.Fatalf("unexpected ConnectionNames(%q, %q); got %v; want %v", value, name, got, want)
		}
	}
	f("X-Foo, close", "x-foo", true)
	f("X-Foo, close", "CLOSE", true)
	f("Authorization", "authorization", true)
	f("a,b,c", "b", true)
	f("a,b,c", "c", true)
	f(" \t, ,,\tX-Foo\t ,", "X-Foo", true)
	f("X-Foo", "X-Fo", false)
	f("X-Fo", "X-Foo", false)
	f("X-Foo X-Bar", "X-Foo", false)
	f("X-Foo;a", "X-Foo", false)
	f("\"X-Foo\"", "X-Foo", false)
	f("", "X-Foo", false)
	f(",,", "", false)
	f("", "", false)
	f("X\x0dFoo", "X-Foo", false)
	f("[", "{", false)
	f("@", "`", false)
}
