package h2c

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// app is an ASGI application: / echoes the body, /events sends 50 events, /wait
// waits until the client has gone, and /gone tells how often that has been seen.
const app = `
import asyncio
gone = 0
async def app(scope, receive, send):
    global gone
    if scope["type"] == "lifespan":
        while True:
            m = await receive()
            await send({"type": m["type"] + ".complete"})
            if m["type"] == "lifespan.shutdown":
                return
    body = b""
    more = True
    while more:
        m = await receive()
        body += m.get("body", b"")
        more = m.get("more_body", False)
    async def start(headers):
        await send({"type": "http.response.start", "status": 200, "headers": headers})
    if scope["path"] == "/events":
        await start([(b"content-type", b"text/event-stream")])
        for i in range(50):
            await send({"type": "http.response.body", "body": b"data: %d\n\n" % i, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        return
    if scope["path"] == "/wait":
        await start([(b"content-type", b"text/event-stream")])
        await send({"type": "http.response.body", "body": b"data: first\n\n", "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass
        gone += 1
        return
    if scope["path"] == "/gone":
        body = b"%d" % gone
    await start([(b"content-type", b"application/octet-stream"), (b"content-length", b"%d" % len(body))])
    await send({"type": "http.response.body", "body": body})
`

// skipOrFail skips t for what is missing, which must not be in CI.
func skipOrFail(t *testing.T, missing string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("must run in CI: %s", missing)
	}
	t.Skipf("skipped: %s", missing)
}

// python returns an interpreter that has the package of that name.
func python(t *testing.T, name string) string {
	t.Helper()
	path := os.Getenv("CLIENTS_PYTHON")
	if path == "" {
		path = filepath.Join("..", "..", "bench", "clients", ".venv", "bin", "python")
	}
	path, err := filepath.Abs(path)
	if err == nil {
		err = exec.Command(path, "-c", "import "+name).Run()
	}
	if err != nil {
		skipOrFail(t, "no Python with "+name+": make bench/clients/.venv as .ci/run does, or set CLIENTS_PYTHON")
	}
	return path
}

// launch starts a server that listens on the port that is put for PORT in its
// arguments, and waits until it does. It ends with the test.
func launch(t *testing.T, dir, name string, args ...string) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = ln.Addr().String()
	_ = ln.Close() // the server takes the port over
	port := strconv.Itoa(ln.Addr().(*net.TCPAddr).Port)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "PORT", port)
	}
	var log bytes.Buffer
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &log, &log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is interrupted
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		if t.Failed() {
			t.Logf("%s:\n%s", name, log.String())
		}
	})
	eventually(t, name+" listens", func() bool {
		select {
		case <-ended:
			t.Fatalf("%s ended:\n%s", name, log.String())
		default:
		}
		nc, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err == nil {
			_ = nc.Close()
		}
		return err == nil
	})
	return addr
}

func writeApp(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "engine.py"), []byte(app), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestHypercorn(t *testing.T) {
	interpreter := python(t, "hypercorn")
	checkApp(t, launch(t, writeApp(t), interpreter, "-m", "hypercorn", "--bind", "127.0.0.1:PORT", "engine:app"))
}

func TestGranian(t *testing.T) {
	interpreter := python(t, "granian")
	checkApp(t, launch(t, writeApp(t), interpreter, "-m", "granian", "--interface", "asgi", "--http", "2", "--host", "127.0.0.1", "--port", "PORT", "engine:app"))
}

// checkApp holds a connection against a server that runs app.
func checkApp(t *testing.T, addr string) {
	t.Helper()
	nc, err := new(net.Dialer).DialContext(context.Background(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Probe(nc, Config{}, time.Now().Add(patience))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, size := range []int{0, 1, 20000, 1 << 20} {
		body := strings.Repeat("x", size)
		mustDo(t, c, post(body), body)
	}
	var want strings.Builder
	for i := range 50 {
		fmt.Fprintf(&want, "data: %d\n\n", i)
	}
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 5 {
				if _, got, err := do(t, c, get("/events")); err != nil || got != want.String() {
					t.Errorf("unexpected events; got %q, %v", got, err)
				}
			}
		})
	}
	all.Wait()

	// The application learns that its client has gone.
	s := reserve(t, c)
	if err := s.Do(get("/wait")); err != nil {
		t.Fatal(err)
	}
	if p, err := s.Next(); err != nil || string(p) != "data: first\n\n" {
		t.Errorf("unexpected event; got %q, %v", p, err)
	}
	s.Cancel()
	s.Close()
	eventually(t, "the application sees its client gone", func() bool {
		_, body, err := do(t, c, get("/gone"))
		if err != nil {
			t.Fatal(err)
		}
		return body == "1"
	})
	eventually(t, "the slots", func() bool { return c.InFlight() == 0 })
	if c.Err() != nil {
		t.Errorf("unexpected end of the connection: %v", c.Err())
	}
}

// TestNghttpd holds the client against the server of nghttp2, which is strict.
func TestNghttpd(t *testing.T) {
	name, err := exec.LookPath("nghttpd")
	if err != nil {
		skipOrFail(t, "no nghttpd on the PATH: install nghttp2-server")
	}
	dir := t.TempDir()
	body := strings.Repeat("0123456789", 300000)
	for file, content := range map[string]string{"large": body, "empty": ""} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"--no-tls"},
		{"--no-tls", "--padding=255", "--trailer", "x-trailer: y", "--max-concurrent-streams=7"},
		{"--no-tls", "--echo-upload", "--window-bits=10", "--connection-window-bits=12"},
		{"--no-tls", "--header-table-size=0", "--encoder-header-table-size=0"},
	} {
		t.Run(strings.Join(args[1:], " "), func(t *testing.T) {
			addr := launch(t, dir, name, append([]string{"-d", dir}, append(args, "PORT")...)...)
			c := dial(t, addr, Config{})
			if args[len(args)-1] == "--connection-window-bits=12" {
				mustDo(t, c, post(body[:200000]), body[:200000])
				return
			}
			mustDo(t, c, get("/empty"), "")
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() {
					for range 3 {
						if _, got, err := do(t, c, get("/large")); err != nil || got != body {
							t.Errorf("unexpected file; got %d bytes, %v; want %d", len(got), err, len(body))
						}
					}
				})
			}
			all.Wait()
			if status, _, err := do(t, c, get("/none")); err != nil || status != 404 {
				t.Errorf("unexpected answer; got %d, %v; want 404", status, err)
			}
			s := reserve(t, c)
			if err := s.Do(get("/large")); err != nil {
				t.Fatal(err)
			}
			s.Close() // with most of the file still to come
			eventually(t, "the slots", func() bool { return c.InFlight() == 0 })
			mustDo(t, c, get("/large"), body)
			if c.Err() != nil {
				t.Errorf("unexpected end of the connection: %v", c.Err())
			}
		})
	}
}
