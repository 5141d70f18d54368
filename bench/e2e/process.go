//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// process is one that was started here. It is of our session.
type process struct {
	cmd  *exec.Cmd
	in   io.WriteCloser // of a role
	out  *bufio.Reader
	said firstWords    // on standard error, by a role
	done chan struct{} // closed when it has ended
}

// startProcess runs args. A role takes lines of JSON.
func startProcess(args []string, role bool) (*process, error) {
	p := &process{cmd: exec.Command(args[0], args[1:]...), done: make(chan struct{})}
	// It ends with us even where we are killed.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	// An access log must cost what writing it costs: it goes to a file, not to
	// a pipe that we would have to read.
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }()
	p.cmd.Stdout, p.cmd.Stderr = null, null
	if role {
		p.cmd.Stdout, p.cmd.Stderr = nil, &p.said
		if p.in, err = p.cmd.StdinPipe(); err != nil {
			return nil, err
		}
		out, err := p.cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		p.out = bufio.NewReader(out)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if err := inOurSession(p.cmd.Process.Pid); err != nil {
		return nil, errors.Join(err, p.cmd.Process.Kill(), p.cmd.Wait())
	}
	if !role {
		go p.wait()
	}
	return p, nil
}

func (p *process) wait() {
	_ = p.cmd.Wait() // it was stopped by a signal
	close(p.done)
}

func (p *process) exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// ask sends a role a line and reads its answer into a.
func (p *process) ask(line []byte, a any) error {
	if _, err := p.in.Write(line); err != nil {
		return err
	}
	return p.read(a)
}

func (p *process) read(a any) error {
	answer, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("%s ended: %w %s", p.cmd.Args[1], err, p.said.String())
	}
	return json.Unmarshal(answer, a)
}

// do is ask for a value.
func (p *process) do(q, a any) error {
	line, err := json.Marshal(q)
	if err != nil {
		return err
	}
	return p.ask(append(line, '\n'), a)
}

// stop ends the process and waits for its end.
func (p *process) stop() {
	if p.in != nil {
		_ = p.in.Close()
		go p.wait()
	} else {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails where it has ended
	}
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// firstWords keeps the beginning of what is written to it.
type firstWords struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *firstWords) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if room := 4*kib - b.buf.Len(); room > 0 {
		b.buf.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (b *firstWords) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
