package discover

import (
	"strings"
	"testing"
)

func TestParseList(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		got, err := parseList([]byte(in))
		if err != nil || textOf(got) != want {
			t.Errorf("%q: unexpected members; got %q, %v; want %q", in, textOf(got), err, want)
		}
	}
	f("http://a:1", "http://a:1")
	f("\xef\xbb\xbfhttp://a:1", "http://a:1")
	f("\r\n http://a:1\t\r\n\r\nhttps://b\r\n", "http://a:1\nhttps://b")
	f("# fleet\nhttp://a:1 # first\nhttp://b:1 weight=12 # second\n", "http://a:1\nhttp://b:1 weight=12")
	f("http://a:1 weight=1\n", "http://a:1")
	f("# yaml\n- url: http://a:1\n- {url: http://b:1, weight: 4}\n", "http://a:1\nhttp://b:1 weight=4")
	f(`[{"url": "http://a:1", "weight": 2},`+"\n"+`{"url": "http://b:1"}]`, "http://a:1 weight=2\nhttp://b:1")
}

func TestParseList_Refused(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		got, err := parseList([]byte(in))
		if err == nil || !strings.Contains(err.Error(), want) || len(got) > 0 {
			t.Errorf("%q: unexpected result; got %q, %v; want an error with %q", in, textOf(got), err, want)
		}
	}
	f("", "no workers")
	f("[]", "no workers")
	f("a:1", "line 1: a worker's url must be http://host:port")
	f("http://a:1\nftp://b:1", "line 2: a worker's url")
	f("http://a:1 3", `line 1: a url may be followed by weight=N, got "3"`)
	f("http://a:1 weight=x", `line 1: the weight must be a number, got "x"`)
	f("http://a:1 weight=0", "line 1: the weight must be from 1 to 65535, got 0")
	f("http://a:1 weight=65536", "from 1 to 65535, got 65536")
	f("- {url: http://a:1, wieght: 3}", "wieght not found")
	f("- {url: http://a:1, weight: 0}", "entry 0: the weight must be from 1")
	f("- http://a:1", "cannot unmarshal")
	f("[{url: http://a:1}]\n---\n[]", "something follows the list")
	f("[{\"url\": \"http://a:1\"}", "did not find expected")
	for _, in := range []string{"http://u:secret@a:1", "- url: http://u:secret@a:1"} {
		if _, err := parseList([]byte(in)); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("unexpected error for a url with a password; got %v", err)
		}
	}
}
