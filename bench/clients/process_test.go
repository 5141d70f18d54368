package clients

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// buildSluice builds the command, with the race detector where the test has it.
func buildSluice(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "sluice")
	args := []string{"build", "-o", binary}
	if raceEnabled {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "sluice/cmd/sluice")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build sluice: %v\n%s", err, out)
	}
	return binary
}

// process is a running command whose output is read line by line.
type process struct {
	cmd   *exec.Cmd
	lines chan string // of both outputs, closed at their end

	once sync.Once
	err  error           // of the end
	rest strings.Builder // lines that waitLine has not returned
}

// startProcess starts a command without the caller's SLUICE_ variables, which
// would configure it. It is stopped at the end of the test.
func startProcess(t *testing.T, name string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(name, args...), lines: make(chan string, 1<<16)}
	r, w := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = w, w
	p.cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "SLUICE_") })
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() {
		exited <- p.cmd.Wait()
		_ = w.Close() // never fails
	}()
	go func() {
		defer close(p.lines)
		s := bufio.NewScanner(r)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			p.lines <- s.Text()
		}
		_ = r.CloseWithError(s.Err()) // never fails; what a longer line would leave is not waited for
		p.err = errors.Join(s.Err(), <-exited)
	}()
	t.Cleanup(func() { p.stop(t) })
	return p
}

// waitLine returns the next line of output that contains part.
func (p *process) waitLine(t *testing.T, part string) string {
	t.Helper()
	limit := time.After(30 * time.Second)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				t.Fatalf("%v ended before it printed %q: %v\n%s", p.cmd.Args, part, p.err, &p.rest)
			}
			if strings.Contains(line, part) {
				return line
			}
			p.rest.WriteString(line + "\n")
		case <-limit:
			t.Fatalf("%v has not printed %q\n%s", p.cmd.Args, part, &p.rest)
		}
	}
}

// stop sends SIGTERM, upon which the process must end well, and returns what it
// has printed. It may be called twice.
func (p *process) stop(t *testing.T) string {
	t.Helper()
	p.once.Do(func() { p.end(t) })
	return p.rest.String()
}

func (p *process) end(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("%v has ended by itself: %v", p.cmd.Args, err)
	}
	kill := time.AfterFunc(time.Minute, func() { _ = p.cmd.Process.Kill() }) // it fails only when the process is gone
	defer kill.Stop()
	for line := range p.lines {
		p.rest.WriteString(line + "\n")
	}
	if p.err != nil {
		var exit *exec.ExitError
		if errors.As(p.err, &exit) {
			t.Errorf("%v must end well on SIGTERM; got %v\n%s", p.cmd.Args, exit, tail(p.rest.String()))
			return
		}
		t.Errorf("cannot wait for %v: %v", p.cmd.Args, p.err)
	}
}

// tail returns the last lines of a long text.
func tail(text string) string {
	const most = 8 << 10
	if len(text) > most {
		return "…" + text[len(text)-most:]
	}
	return text
}
