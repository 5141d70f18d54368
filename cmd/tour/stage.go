package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// startTime bounds the wait for a process to be ready.
const startTime = 20 * time.Second

// stage is what a tour runs: the processes, their addresses and their files.
// set builds it, strike stops the processes and clean removes the files.
type stage struct {
	sims, router *child
	engines      []string // base URLs
	data, admin  string   // addresses of the router
	client       http.Client

	dir     string // holds configuration and log
	logPath string
	log     *os.File

	mu     sync.Mutex
	access [][]byte // access log lines of the router
}

// configText is the configuration of the router. The verbs stand for the two
// addresses of the router and the URLs of the two engines.
const configText = `server:
  listen: %q
  admin_listen: %q
  drain: 5s
sampling_contract:
  on_conflict: reject
  params:
    temperature: 1              # a pin
    top_p: {min: 0.9, max: 1}   # a band
pools:
  - name: sim
    models: [sim-8b]
    aliases: {small: sim-8b}
    balance: round_robin
    workers:
      - url: %s
      - url: %s
`

const pace = 80 * time.Millisecond

// set starts the engines and the router and waits until it is ready.
func (st *stage) set(ctx context.Context, o options, p page, stderr io.Writer) error {
	for _, a := range []string{o.listen, o.admin} {
		if err := checkFree(a); err != nil {
			return err
		}
	}
	logs, err := st.files(o, stderr)
	if err != nil {
		return err
	}
	if err := st.startEngines(ctx, o, logs); err != nil {
		return err
	}
	text := fmt.Sprintf(configText, o.listen, o.admin, st.engines[0], st.engines[1])
	file := filepath.Join(st.dir, "tour.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	p.text("Two simulated engines run. The router in front of them has this configuration:\n\n")
	p.indented(text)
	if err := st.startRouter(ctx, o, logs, file); err != nil {
		return err
	}
	return st.waitReady(ctx)
}

// checkFree returns an error that says what to do if nothing can listen on addr.
func checkFree(addr string) error {
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is in use, perhaps by another tour or router: stop that one, or run "+
			"bin/tour -listen HOST:PORT -admin HOST:PORT with free ports (port 0 takes any)", addr)
	}
	if err != nil {
		return fmt.Errorf("cannot use the address %s: %w", addr, err)
	}
	return l.Close()
}

// files makes the directory and the log; logs takes lines for it and, if that
// is asked for, for stderr.
func (st *stage) files(o options, stderr io.Writer) (logs io.Writer, err error) {
	if st.dir, err = os.MkdirTemp("", "sluice-tour-"); err != nil {
		return nil, err
	}
	path := filepath.Join(st.dir, "log")
	if st.log, err = os.Create(path); err != nil {
		return nil, err
	}
	st.logPath = path
	if o.verbose {
		return &lockedWriter{w: io.MultiWriter(st.log, stderr)}, nil
	}
	return &lockedWriter{w: st.log}, nil
}

// startEngines starts the process of both engines, which prints the URL of each.
func (st *stage) startEngines(ctx context.Context, o options, logs io.Writer) (err error) {
	urls := make(chan string, 2)
	out := &output{log: logs, said: func(line []byte) {
		if len(urls) < cap(urls) && bytes.HasPrefix(line, []byte("http://")) {
			urls <- string(line)
		}
	}}
	st.sims, err = startChild("simulated engines", out, o.sluice, "sim", "-count", "2", "-listen", "127.0.0.1:0",
		"-model", "sim-8b", "-words", "6", "-pace", pace.String())
	if err != nil {
		return err
	}
	for range cap(urls) {
		url, err := await(ctx, urls, st.sims)
		if err != nil {
			return err
		}
		st.engines = append(st.engines, url)
	}
	return nil
}

// serving is the line of the router's log that tells where it listens.
type serving struct{ Msg, Listen, Admin string }

func (st *stage) startRouter(ctx context.Context, o options, logs io.Writer, config string) (err error) {
	listens := make(chan serving, 1)
	out := &output{log: logs, said: func(line []byte) {
		var s serving
		if json.Unmarshal(line, &s) != nil {
			return // a line of another kind, such as a fault of the configuration
		}
		switch {
		case s.Msg == "serving" && len(listens) < cap(listens):
			listens <- s
		case s.Msg == "request":
			st.noteAccess(line)
		}
	}}
	if st.router, err = startChild("router", out, o.sluice, "serve", "-config", config); err != nil {
		return err
	}
	s, err := await(ctx, listens, st.router)
	st.data, st.admin = s.Listen, s.Admin
	return err
}

// await returns what a child says on c, or an error if it ends or takes too
// long instead.
func await[T any](ctx context.Context, c <-chan T, from *child) (v T, err error) {
	select {
	case v = <-c:
		return v, nil
	case <-from.done:
		return v, from.ended()
	case <-time.After(startTime):
		return v, fmt.Errorf("the %s did not say within %s where it listens", from.name, startTime)
	case <-ctx.Done():
		return v, ctx.Err()
	}
}

// waitReady asks the router until it says that it is ready.
func (st *stage) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		status, body, err := st.get(ctx, "http://"+st.data+"/ready")
		if err == nil && status == http.StatusOK {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("/ready answers %d %s", status, body)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the router was not ready within %s: %w", startTime, err)
		case <-st.router.done:
			return st.router.ended()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// get fetches url.
func (st *stage) get(ctx context.Context, url string) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	resp, err := st.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, errors.Join(err, resp.Body.Close())
}

// keepAccess is how many access log lines are kept: those of the tour, not all
// that a visitor causes afterwards.
const keepAccess = 100

func (st *stage) noteAccess(line []byte) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(st.access) < keepAccess {
		st.access = append(st.access, bytes.Clone(line))
	}
}

// accessLine returns the access log line of the request with the given id, or "".
func (st *stage) accessLine(id string) string {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, line := range st.access {
		if strings.Contains(string(line), `"request_id":"`+id+`"`) {
			return string(line)
		}
	}
	return ""
}

// strike stops the processes, the router first, and closes the log.
func (st *stage) strike() error {
	st.client.CloseIdleConnections()
	err := errors.Join(st.router.stop(), st.sims.stop())
	if st.log != nil {
		err = errors.Join(err, st.log.Close())
	}
	return err
}

// clean removes the files.
func (st *stage) clean() error { return os.RemoveAll(st.dir) }
