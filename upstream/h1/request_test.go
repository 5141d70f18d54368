package h1

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"testing"
)

func TestAppendRequest(t *testing.T) {
	f := func(method, target, host string, fields []Field, contentLength int64, want string) {
		t.Helper()
		got := AppendRequest([]byte("before|"), []byte(method), []byte(target), []byte(host), fields, contentLength)
		if string(got) != "before|"+want {
			t.Fatalf("unexpected request; got %q; want %q", got, "before|"+want)
		}
	}
	fields := []Field{{[]byte("X-Request-Id"), []byte("7")}, {[]byte("empty"), nil}}
	f("POST", "/v1/chat/completions", "w:30000", fields, 12,
		"POST /v1/chat/completions HTTP/1.1\r\nHost: w:30000\r\nX-Request-Id: 7\r\nempty: \r\nContent-Length: 12\r\n\r\n")
	f("GET", "/health", "w", nil, -1, "GET /health HTTP/1.1\r\nHost: w\r\n\r\n")
	f("POST", "/abort", "w", nil, 0, "POST /abort HTTP/1.1\r\nHost: w\r\nContent-Length: 0\r\n\r\n")
	f("GET", "/v1/models/org%2Fmodel?x=%2B", "", nil, -1, "GET /v1/models/org%2Fmodel?x=%2B HTTP/1.1\r\nHost: \r\n\r\n")
}

func TestB62_LengthOfARequestIsTheOneGiven(t *testing.T) {
	body := "{\"temperature\":1}"
	head := AppendRequest(nil, []byte("PUT"), []byte("/generate"), []byte("w:1"), []Field{{[]byte("Content-Type"), []byte("application/json")}}, int64(len(body)))
	req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(append(head, body...))))
	if err != nil {
		t.Fatalf("cannot read the request: %v", err)
	}
	got, err := io.ReadAll(req.Body)
	if err != nil || string(got) != body || req.ContentLength != int64(len(body)) {
		t.Fatalf("unexpected body; got %q, %d, %v", got, req.ContentLength, err)
	}
	if req.Method != "PUT" || req.RequestURI != "/generate" || req.Host != "w:1" || req.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("unexpected request; got %+v", req)
	}
}
