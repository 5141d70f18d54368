package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// built is the folder that holds sluice and tour.
var built string

// TestMain builds both once. The environment is that of a visitor who has
// settings of his own for the router, which must not count.
func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "tour-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }() // a folder left behind fails no test
	built = dir
	out, err := exec.Command("go", "build", "-o", dir, "sluice/cmd/sluice", "sluice/cmd/tour").CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "cannot build: %v\n%s", err, out)
		return 1
	}
	for name, value := range map[string]string{"TMPDIR": dir, "SLUICE_SERVER__MAX_BODY": "1B"} {
		if err := os.Setenv(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

func freeOptions() options {
	return options{sluice: filepath.Join(built, "sluice"), listen: "127.0.0.1:0", admin: "127.0.0.1:0", once: true}
}

func TestOnce(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), freeOptions(), &stdout, &stderr); code != 0 {
		t.Fatalf("unexpected exit code %d; stderr: %s\nstdout: %s", code, &stderr, &stdout)
	}
	if stderr.Len() > 0 {
		t.Errorf("unexpected output on stderr: %s", &stderr)
	}
	for _, want := range []string{"UNTOUCHED", "the same 144 bytes", "engines received: nothing", "[DONE]", "All went as promised."} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, &stdout)
		}
	}
	for line := range strings.Lines(stdout.String()) {
		if len([]rune(strings.TrimSuffix(line, "\n"))) > width {
			t.Errorf("line is wider than %d columns: %q", width, line)
		}
	}
}

func TestSignalEndsServingTourWithItsChildren(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			testSignal(t, sig)
		})
	}
}

func testSignal(t *testing.T, sig syscall.Signal) {
	addrs, cmd, stderr := serveTour(t)
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("unexpected end: %v; want exit code 0; stderr: %s", err, stderr)
	}
	for _, addr := range addrs {
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			t.Errorf("%s still accepts connections", addr)
		}
	}
}

// serveTour starts a tour as a process and returns, once it serves, the
// addresses of the router and the engines.
func serveTour(t *testing.T) (addrs []string, cmd *exec.Cmd, stderr *bytes.Buffer) {
	t.Helper()
	cmd = exec.Command(filepath.Join(built, "tour"), "-listen", "127.0.0.1:0", "-admin", "127.0.0.1:0")
	stderr = &bytes.Buffer{}
	cmd.Stderr = stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended by now, unless the test failed
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "- url: http://"); ok {
			addrs = append(addrs, rest)
		}
		if rest, ok := strings.CutPrefix(line, "curl http://"); ok {
			addr, _, _ := strings.Cut(rest, "/")
			addrs = append(addrs, addr)
		}
		if strings.HasSuffix(line, "/workers") {
			return addrs, cmd, stderr
		}
	}
	t.Fatalf("the tour ended before it served: %v; stderr: %s", lines.Err(), stderr)
	return nil, nil, nil
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	o := freeOptions()
	o.admin = l.Addr().String()
	var stderr bytes.Buffer
	code := run(t.Context(), o, io.Discard, &stderr)
	if want := o.admin + " is in use"; code != 1 || !strings.Contains(stderr.String(), want) {
		t.Errorf("unexpected exit code %d and message %q; want 1 and %q", code, &stderr, want)
	}
}

func TestInterruptedBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stderr bytes.Buffer
	code := run(ctx, freeOptions(), io.Discard, &stderr)
	if code != 1 || !strings.Contains(stderr.String(), errInterrupted.Error()) {
		t.Errorf("unexpected exit code %d and message %q; want 1 and %q", code, &stderr, errInterrupted)
	}
}

func TestRouterCannotStart(t *testing.T) {
	o := freeOptions()
	o.sluice = filepath.Join(built, "tour") // a program that does not know the verbs
	var stderr bytes.Buffer
	code := run(t.Context(), o, io.Discard, &stderr)
	for _, want := range []string{"the simulated engines ended by itself", "the logs of router and engines are in "} {
		if code != 1 || !strings.Contains(stderr.String(), want) {
			t.Errorf("unexpected exit code %d and message %q; want 1 and %q", code, &stderr, want)
		}
	}
}

func TestChecksFindBrokenPromises(t *testing.T) {
	completion := `{"object":"chat.completion"}`
	violation := `{"error":{"message":"temperature violates this deployment's sampling contract: d"}}`
	coded := http.Header{"X-Router-Error-Code": {"sampling_contract_violation"}}
	events := []event{{0, "{}"}, {pace, "{}"}, {2 * pace, "[DONE]"}}

	pass := func(x *exchange) error { return passed(x, "b") }
	refuse := func(x *exchange) error { return refused(x, "d") }
	for _, tt := range []struct {
		name  string
		check func(*exchange) error
		good  exchange
		spoil func(*exchange)
	}{
		{"no engine", pass, exchange{engine: 1, received: "b", status: 200, body: completion}, func(x *exchange) { x.engine = 0 }},
		{"other bytes", pass, exchange{engine: 1, received: "b", status: 200, body: completion}, func(x *exchange) { x.received = "b " }},
		{"other status", pass, exchange{engine: 1, received: "b", status: 200, body: completion}, func(x *exchange) { x.status = 502 }},
		{"other answer", pass, exchange{engine: 1, received: "b", status: 200, body: completion}, func(x *exchange) { x.body = "{}" }},
		{"forwarded", refuse, exchange{status: 400, header: coded, body: violation}, func(x *exchange) { x.engine = 2 }},
		{"not refused", refuse, exchange{status: 400, header: coded, body: violation}, func(x *exchange) { x.status = 200 }},
		{"no code", refuse, exchange{status: 400, header: coded, body: violation}, func(x *exchange) { x.header = nil }},
		{"other detail", refuse, exchange{status: 400, header: coded, body: violation}, func(x *exchange) { x.body = "{}" }},
		{"stream of nobody", streamed, exchange{engine: 1, status: 200, events: events}, func(x *exchange) { x.engine = 0 }},
		{"stream refused", streamed, exchange{engine: 1, status: 200, events: events}, func(x *exchange) { x.status = 400 }},
		{"stream cut", streamed, exchange{engine: 1, status: 200, events: events}, func(x *exchange) { x.events = x.events[:2] }},
		{"stream at once", streamed, exchange{engine: 1, status: 200, events: events}, func(x *exchange) {
			x.events = []event{{0, "{}"}, {0, "{}"}, {time.Millisecond, "[DONE]"}}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := tt.good
			if err := tt.check(&x); err != nil {
				t.Fatalf("unexpected error of a kept promise: %v", err)
			}
			tt.spoil(&x)
			if err := tt.check(&x); err == nil {
				t.Error("unexpected success of a broken promise")
			}
		})
	}
}

func TestParse(t *testing.T) {
	f := func(args string, ok bool) {
		t.Helper()
		_, err := parse(strings.Fields(args), false, io.Discard)
		if (err == nil) != ok {
			t.Errorf("unexpected error for %q: %v; want success: %v", args, err, ok)
		}
	}
	f("", true)
	f("-sluice bin/sluice -listen :0 -admin :0 -v", true)
	f("-sluice", false)
	f("-bogus", false)
	f("extra", false)
}

func TestWrap(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		if got := wrap(text); strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("unexpected lines of %q; got %q; want %q", text, got, want)
		}
	}
	const most = width - indent
	long := strings.Repeat("x", most)
	f("")
	f("a\nb\n", "a", "b")
	f(long, long)
	f(long+"y", long, "y")
	f(long[:most-2]+",yyy", long[:most-2]+",", "yyy")
	f("a,"+long, "a,"+long[:most-2], "xx")
	f(strings.Repeat("é", most)+"é", strings.Repeat("é", most), "é")
}

func TestOutputSplitsLines(t *testing.T) {
	var log bytes.Buffer
	var got []string
	o := &output{log: &log, said: func(line []byte) { got = append(got, string(line)) }}
	for _, p := range []string{"one\ntw", "o\n", "\nthree"} {
		if _, err := o.Write([]byte(p)); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Join(got, "|") != "one|two|" || log.String() != "one\ntwo\n\n" {
		t.Errorf("unexpected lines %q and log %q", got, &log)
	}
	o.log = failing{}
	if _, err := o.Write([]byte("\n")); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("unexpected error; got %v; want %v", err, io.ErrShortWrite)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
