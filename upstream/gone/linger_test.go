package gone

import (
	"io"
	"testing"
	"time"
)

func TestB28_AnswerBeforeTheBodyWasRead(t *testing.T) {
	server, client := newTestbed(t, newNotifier).pair()
	const answer = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n"
	closed := make(chan error, 1)
	go func() {
		// One byte is read of it all, and then the answer is given.
		if _, err := server.Read(make([]byte, 1)); err != nil {
			t.Errorf("cannot read: %v", err)
		}
		if _, err := server.Write([]byte(answer)); err != nil {
			t.Errorf("cannot write: %v", err)
		}
		server.Linger(64<<20, time.Hour)
		closed <- server.Close()
	}()
	must(t, client.SetDeadline(time.Now().Add(patience)))
	// The client sends everything before it reads, which takes a server that
	// takes everything: a reset would fail the writes or the read.
	body := make([]byte, 1<<20)
	for range 16 {
		if _, err := client.Write(body); err != nil {
			t.Fatalf("cannot write: %v", err)
		}
	}
	got, err := io.ReadAll(client)
	if err != nil || string(got) != answer {
		t.Fatalf("unexpected answer; got %q, %v; want %q", got, err, answer)
	}
	must(t, client.Close())
	must(t, <-closed)
}

func TestLinger_IsBounded(t *testing.T) {
	f := func(name string, maxBytes int64, maxTime time.Duration, endless bool) {
		t.Helper()
		server, client := newTestbed(t, newNotifier).pair()
		server.Linger(maxBytes, maxTime)
		closed := make(chan error, 1)
		go func() { closed <- server.Close() }()
		if endless {
			go func() {
				body := make([]byte, 64<<10)
				for {
					if _, err := client.Write(body); err != nil {
						return // the server has had enough
					}
				}
			}()
		}
		select {
		case err := <-closed:
			if err != nil {
				t.Fatalf("%s: unexpected error: %v", name, err)
			}
		case <-time.After(patience):
			t.Fatalf("%s: Close does not end", name)
		}
		if err := server.Close(); err == nil {
			t.Fatalf("%s: closed twice", name)
		}
	}
	f("silent client", 1<<20, 20*time.Millisecond, false)
	f("endless client, bytes", 1<<20, time.Hour, true)
	f("endless client, time", 1<<62, 20*time.Millisecond, true)
	f("no linger", 0, 0, true)
}
