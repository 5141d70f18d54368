package router

import (
	"strings"
	"testing"
	"time"

	"sluice/configs"
)

const chatBody = `{"model":"sim-8b","messages":[]}`

// What two parsers could read differently is refused and the connection
// closed, so that nothing that follows is taken for a request.
func TestB68_Framing(t *testing.T) {
	s := startStand(t, func(c *configs.Config) { c.Server.ReadTimeout = 5 * time.Second })
	const line = "POST /v1/chat/completions HTTP/1.1\r\n"
	const length = "Content-Length: 32\r\n"
	const chunked = "Transfer-Encoding: chunked\r\n"
	const chunks = "20\r\n" + chatBody + "\r\n0\r\n\r\n"
	for name, req := range map[string]string{
		"TE with CL":               line + "Host: a\r\n" + length + chunked + "\r\n" + chunks,
		"CL with TE":               line + "Host: a\r\n" + chunked + length + "\r\n" + chunks,
		"two CL":                   line + "Host: a\r\n" + length + length + "\r\n" + chatBody,
		"two CL that differ":       line + "Host: a\r\n" + length + "Content-Length: 3\r\n\r\n" + chatBody,
		"CL list":                  line + "Host: a\r\nContent-Length: 32, 32\r\n\r\n" + chatBody,
		"CL with sign":             line + "Host: a\r\nContent-Length: +32\r\n\r\n" + chatBody,
		"CL in hex":                line + "Host: a\r\nContent-Length: 0x20\r\n\r\n" + chatBody,
		"CL negative":              line + "Host: a\r\nContent-Length: -1\r\n\r\n" + chatBody,
		"CL empty":                 line + "Host: a\r\nContent-Length:\r\n\r\n" + chatBody,
		"CL with inner space":      line + "Host: a\r\nContent-Length: 3 2\r\n\r\n" + chatBody,
		"CL huge":                  line + "Host: a\r\nContent-Length: 99999999999999999999999\r\n\r\n" + chatBody,
		"TE twice":                 line + "Host: a\r\n" + chunked + chunked + "\r\n" + chunks,
		"TE gzip, chunked":         line + "Host: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" + chunks,
		"TE identity":              line + "Host: a\r\nTransfer-Encoding: identity\r\n" + length + "\r\n" + chatBody,
		"TE xchunked":              line + "Host: a\r\nTransfer-Encoding: xchunked\r\n\r\n" + chunks,
		"TE on HTTP/1.0":           "POST /v1/chat/completions HTTP/1.0\r\nHost: a\r\n" + chunked + "\r\n" + chunks,
		"space in name":            line + "Host: a\r\nX Y: 1\r\n" + length + "\r\n" + chatBody,
		"space before colon":       line + "Host: a\r\nContent-Length : 32\r\n\r\n" + chatBody,
		"tab before colon":         line + "Host: a\r\nX\t: 32\r\n" + length + "\r\n" + chatBody,
		"empty name":               line + "Host: a\r\n: 32\r\n" + length + "\r\n" + chatBody,
		"no colon":                 line + "Host: a\r\nnonsense\r\n" + length + "\r\n" + chatBody,
		"obs-fold":                 line + "Host: a\r\nX-A: 1\r\n 2\r\n" + length + "\r\n" + chatBody,
		"obs-fold of TE":           line + "Host: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n" + chunks,
		"space before first field": line + " X-A: 1\r\nHost: a\r\n" + length + "\r\n" + chatBody,
		"NUL in value":             line + "Host: a\r\nX-A: 1\x002\r\n" + length + "\r\n" + chatBody,
		"CR in value":              line + "Host: a\r\nX-A: 1\r2\r\n" + length + "\r\n" + chatBody,
		"two Hosts":                line + "Host: a\r\nHost: b\r\n" + length + "\r\n" + chatBody,
		"no Host":                  line + length + "\r\n" + chatBody,
		"absolute-form":            "POST http://evil/v1/chat/completions HTTP/1.1\r\nHost: a\r\n" + length + "\r\n" + chatBody,
		"authority-form":           "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
		"asterisk-form":            "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
		"network path":             "POST //v1/chat/completions HTTP/1.1\r\nHost: a\r\n" + length + "\r\n" + chatBody,
		"fragment":                 "POST /v1/chat/completions#x HTTP/1.1\r\nHost: a\r\n" + length + "\r\n" + chatBody,
		"HTTP/9.9":                 "POST /v1/chat/completions HTTP/9.9\r\nHost: a\r\n" + length + "\r\n" + chatBody,
		"HTTP/2 preface":           "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"garbage":                  "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n",
		"bare LF in a field":       line + "Host: a\nX-A: 1\r\n" + length + "\r\n" + chatBody,
		"bare LF everywhere":       strings.ReplaceAll(line+"Host: a\r\n"+length+"\r\n", "\r\n", "\n") + chatBody,
		"bare LF in request line":  strings.TrimSuffix(line, "\r\n") + "\nHost: a\r\n" + length + "\r\n" + chatBody,
		"bare LF at the end":       line + "Host: a\r\n" + length + "\n" + chatBody,
		"chunk size in bad hex":    line + "Host: a\r\n" + chunked + "\r\n0x20\r\n" + chatBody + "\r\n0\r\n\r\n",
		"chunk size overflows":     line + "Host: a\r\n" + chunked + "\r\nfffffffffffffffff\r\n" + chatBody,
		"chunk without CRLF":       line + "Host: a\r\n" + chunked + "\r\n20\r\n" + chatBody + "0\r\n\r\n",
		"chunk with bare LF":       line + "Host: a\r\n" + chunked + "\r\n20\n" + chatBody + "\n0\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := s.dial().write(req)
			c.t = t
			r := c.read()
			if r.status != 400 || r.header.Get(headerErrorCode) != "bad_request" || !strings.Contains(r.body, `"error":{"message":`) {
				t.Errorf("unexpected answer %d %q", r.status, r.body)
			}
			c.closed()
		})
	}
	if got := s.received(); len(got) != 0 {
		t.Errorf("unexpected requests at the engine: %+v", got)
	}
}

func TestB68_AcceptedFraming(t *testing.T) {
	s := startStand(t, nil)
	const line = "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n"
	for name, req := range map[string]string{
		"Chunked in capitals": line + "transfer-encoding: Chunked\r\n\r\n20\r\n" + chatBody + "\r\n0\r\n\r\n",
		"several chunks":      line + "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1F;ext=1\r\n" + chatBody[1:] + "\r\n0\r\nX-Trailer: 1\r\n\r\n",
		"empty value":         line + "X-A:\r\nContent-Length: 32\r\n\r\n" + chatBody,
		"obs-text":            line + "X-A: \xe9\r\nContent-Length: 32\r\n\r\n" + chatBody,
	} {
		t.Run(name, func(t *testing.T) {
			c := s.dial().write(req + req) // the second one over the same connection
			c.t = t
			for range 2 {
				if r := c.read(); r.status != 200 {
					t.Errorf("unexpected answer %d %q", r.status, r.body)
				}
			}
			got := s.received()
			if len(got) != 2 || string(got[0].Body) != chatBody || string(got[1].Body) != chatBody {
				t.Fatalf("unexpected requests at the engine: %+v", got)
			}
			for _, r := range got {
				if hasField(r.Header, "transfer-encoding") || hasField(r.Header, "trailer") || hasField(r.Header, "x-trailer") {
					t.Errorf("framing crossed to the engine: %+v", r.Header)
				}
			}
		})
	}
}

func TestHugeHeader(t *testing.T) {
	s := startStand(t, nil)
	c := s.dial().write("GET /health HTTP/1.1\r\nHost: a\r\nX-A: " + strings.Repeat("a", headBytes) + "\r\n\r\n")
	if r := c.read(); r.status != 431 || !strings.Contains(r.body, "too large") {
		t.Errorf("unexpected answer %d %q", r.status, r.body)
	}
}

func TestSlowRequestTimesOut(t *testing.T) {
	s := startStand(t, func(c *configs.Config) { c.Server.ReadTimeout = 200 * time.Millisecond })
	for _, part := range []string{
		"POST /v1/chat/completions HTTP/1.1\r\nHo",
		"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 32\r\n\r\n{",
		"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n{" + strings.Repeat(" ", 50000),
		"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{",
	} {
		c := s.dial().write(part)
		if r := c.read(); r.status != 408 {
			t.Errorf("%.80q: unexpected answer %d %q", part, r.status, r.body)
		}
		c.closed()
	}
	if got := s.received(); len(got) != 0 {
		t.Errorf("unexpected requests at the engine: %+v", got)
	}
}

func TestTruncatedBodyIsNeverForwarded(t *testing.T) {
	s := startStand(t, nil)
	for _, part := range []string{
		"Content-Length: 33\r\n\r\n" + chatBody,
		"Transfer-Encoding: chunked\r\n\r\n20\r\n" + chatBody + "\r\n",
	} {
		c := s.dial().write("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n" + part)
		if err := c.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		b := make([]byte, 4096)
		n, _ := c.Conn.Read(b) // an answer or the end, never a 200
		if n > 0 && !strings.HasPrefix(string(b[:n]), "HTTP/1.1 400 ") {
			t.Errorf("unexpected answer %q", b[:n])
		}
	}
	if got := s.received(); len(got) != 0 {
		t.Errorf("unexpected requests at the engine: %+v", got)
	}
}
