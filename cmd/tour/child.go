package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopTime is how long a child may take to end after SIGTERM. It is longer than
// the drain time of the router.
const stopTime = 15 * time.Second

// child is a process that the tour has started. It must be stopped.
type child struct {
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	err  error         // how it ended; valid after done
}

// startChild starts a process; out gets all that it prints.
func startChild(name string, out io.Writer, bin string, args ...string) (*child, error) {
	c := &child{name: name, cmd: exec.Command(bin, args...), done: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = out, out
	c.cmd.SysProcAttr = childAttr()
	c.cmd.WaitDelay = time.Second
	// The visitor's own settings for the router would change what is shown.
	c.cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SLUICE_") })
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the %s: %w", name, err)
	}
	go func() {
		defer close(c.done)
		c.err = c.cmd.Wait()
	}()
	return c, nil
}

// ended says how the child ended although nobody had asked it to.
func (c *child) ended() error {
	<-c.done
	if c.err == nil {
		return fmt.Errorf("the %s ended by itself", c.name)
	}
	return fmt.Errorf("the %s ended by itself: %w", c.name, c.err)
}

// stop ends the child and waits for it. It returns an error unless the child
// ended in time and with exit code 0. It does nothing on a nil child and on one
// that has ended by itself, of which ended tells.
func (c *child) stop() error {
	if c == nil {
		return nil
	}
	select {
	case <-c.done:
		return nil
	default:
	}
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return errors.Join(fmt.Errorf("cannot stop the %s: %w", c.name, err), c.cmd.Process.Kill())
	}
	select {
	case <-c.done:
		if c.err != nil {
			return fmt.Errorf("the %s did not stop well: %w", c.name, c.err)
		}
		return nil
	case <-time.After(stopTime):
		err := c.cmd.Process.Kill()
		<-c.done
		return errors.Join(fmt.Errorf("the %s did not stop within %s of SIGTERM", c.name, stopTime), err)
	}
}

// output takes what a child prints: every line goes to the log and to said. It
// is used by one goroutine of the child.
type output struct {
	log  io.Writer
	said func(line []byte)
	part []byte // of a line whose end has not come
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.part = append(o.part, p...)
	for {
		i := bytes.IndexByte(o.part, '\n')
		if i < 0 {
			return len(p), nil
		}
		o.said(o.part[:i])
		if _, err := o.log.Write(o.part[:i+1]); err != nil {
			return 0, err
		}
		o.part = o.part[i+1:]
	}
}

// lockedWriter lets several goroutines write, one line at a time.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements io.Writer.
func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
