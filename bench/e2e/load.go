//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"sluice/upstream/h1"
)

// job is one thing that the load generator is told to do.
type job struct {
	Do       action
	Addr     string
	Scenario scenario
	For      time.Duration
}

type action string

const (
	actRun   action = "run"   // the scenario, for a time
	actOpen  action = "open"  // its streams, up to their first event each
	actWatch action = "watch" // them, for a time
	actClose action = "close" // them
)

// tally is what the load generator has seen.
type tally struct {
	Requests  int64 // answered to the end
	Events    int64
	Elapsed   time.Duration
	FirstByte histogram // of the body, from when the request was written
	Gaps      histogram // what was added to the time between two events
	Whole     histogram // answers from request to end
	Failed    string    // the first thing that went wrong
}

// serveLoad is the role of the load generator.
func serveLoad(in io.Reader, out io.Writer) error {
	var held *crowd
	defer func() { held.close() }()
	return serveLines(in, out, func(j *job) (*tally, error) {
		switch j.Do {
		case actRun:
			return runLoad(j), nil
		case actOpen:
			held.close()
			held = openCrowd(j)
			return held.opened(), nil
		case actWatch:
			return held.watch(j.For), nil
		case actClose:
			held.close()
			held = nil
			return &tally{}, nil
		}
		return nil, fmt.Errorf("no such action: %q", j.Do)
	})
}

// runLoad keeps the clients of the scenario busy for the time of the job.
func runLoad(j *job) *tally {
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		total tally
	)
	start := time.Now()
	end := start.Add(j.For)
	for range j.Scenario.Conns {
		all.Go(func() {
			t := oneClient(j, end)
			mu.Lock()
			defer mu.Unlock()
			total.merge(t)
		})
	}
	all.Wait()
	total.Elapsed = time.Since(start)
	return &total
}

func (t *tally) merge(o *tally) {
	t.Requests += o.Requests
	t.Events += o.Events
	t.FirstByte.merge(&o.FirstByte)
	t.Gaps.merge(&o.Gaps)
	t.Whole.merge(&o.Whole)
	if t.Failed == "" {
		t.Failed = o.Failed
	}
}

func oneClient(j *job, end time.Time) *tally {
	t := &tally{}
	c, err := dialClient(j)
	if err != nil {
		t.Failed = err.Error()
		return t
	}
	defer func() { _ = c.nc.Close() }()
	for time.Now().Before(end) {
		if err := c.exchange(t); err != nil {
			t.Failed = err.Error()
			break
		}
	}
	return t
}

// client is one connection to a target, which sends the same request again and
// again.
type client struct {
	nc      net.Conn
	request []byte
	want    want
	answer  h1.Response
	in      []byte
	event   []byte // the beginning of one whose end has not come
	last    int64  // when the event before was sent, 0: none was
	lastGot int64
}

func dialClient(j *job) (*client, error) {
	d := net.Dialer{Timeout: 10 * time.Second}
	nc, err := d.DialContext(context.Background(), "tcp", j.Addr)
	if err != nil {
		return nil, err
	}
	buffer := 32 * kib
	if j.Scenario.Kind == kindHold {
		buffer = 2 * kib
	}
	return &client{nc: nc, request: j.Scenario.request(j.Addr), want: j.Scenario.Want, in: make([]byte, buffer)}, nil
}

var post = []byte("POST")

// patience bounds every wait for a target.
const patience = 20 * time.Second

// exchange sends the request and reads the answer to its end.
func (c *client) exchange(t *tally) error {
	start := time.Now()
	if err := c.nc.SetDeadline(start.Add(patience)); err != nil {
		return err
	}
	if _, err := c.nc.Write(c.request); err != nil {
		return err
	}
	c.answer.Reset(post)
	c.event, c.last = c.event[:0], 0
	var events int64
	for begun := false; ; {
		body, done, err := c.read()
		if err != nil {
			return fmt.Errorf("after %d events: %w", events, err)
		}
		if !begun && len(body) > 0 {
			begun = true
			t.FirstByte.add(time.Since(start))
		}
		if c.want.Events > 0 {
			events += c.events(body, &t.Gaps)
		}
		if done {
			break
		}
	}
	t.Events += events
	if events != int64(c.want.Events) {
		return fmt.Errorf("%d events instead of %d", events, c.want.Events)
	}
	t.Requests++
	t.Whole.add(time.Since(start))
	return nil
}

// read reads once. body is what of it belongs to the body of the answer, done
// whether that ended.
func (c *client) read() (body []byte, done bool, err error) {
	n, err := c.nc.Read(c.in)
	if err != nil {
		return nil, false, err
	}
	p := c.in[:n]
	n, head, err := c.answer.FeedHead(p) // takes nothing where it is complete
	if err != nil || !head {
		return nil, false, err
	}
	if c.answer.Status != 200 {
		return nil, false, fmt.Errorf("status %d", c.answer.Status)
	}
	body, _, done, err = c.answer.FeedBody(p[n:])
	return body, done, err
}

// events counts the events that end in p. A gap is what the time between two of
// them has become longer by on their way.
func (c *client) events(p []byte, gaps *histogram) (n int64) {
	now := monotonic()
	if len(c.event) > 0 {
		c.event = append(c.event, p...)
		p = c.event
	}
	for {
		i := bytes.Index(p, []byte("\n\n"))
		if i < 0 {
			c.event = append(c.event[:0], p...) // which it may be part of
			return n
		}
		if sent, ok := sentAt(p[:i+2]); ok {
			n++
			if c.last != 0 && c.want.Pace > 0 {
				gaps.add(time.Duration((now - c.lastGot) - (sent - c.last)))
			}
			c.last, c.lastGot = sent, now
		}
		p = p[i+2:]
	}
}

// crowd is the streams of a scenario that stay open.
type crowd struct {
	clients []*client
	begun   sync.WaitGroup // up to their first events
	all     sync.WaitGroup
	events  atomic.Int64
	failed  atomic.Pointer[string]
	start   time.Time
	closing atomic.Bool
}

// openers bounds how many streams are opened at a time.
const openers = 64

// openCrowd opens the streams.
func openCrowd(j *job) *crowd {
	cr := &crowd{start: time.Now()}
	places := make(chan struct{}, openers)
	for range j.Scenario.Conns {
		places <- struct{}{}
		c, err := dialClient(j)
		if err != nil {
			cr.fail(err)
			break
		}
		cr.clients = append(cr.clients, c)
		cr.begun.Add(1)
		cr.all.Go(func() {
			first := sync.OnceFunc(func() {
				cr.begun.Done()
				<-places
			})
			defer first()
			if err := cr.hold(c, first); !cr.closing.Load() {
				cr.fail(err)
			}
		})
	}
	return cr
}

// hold reads one stream until it breaks, and calls first at its first event. It
// returns why it broke.
func (cr *crowd) hold(c *client, first func()) error {
	if _, err := c.nc.Write(c.request); err != nil {
		return err
	}
	c.answer.Reset(post)
	var gaps histogram
	for {
		body, done, err := c.read()
		if err != nil {
			return err
		}
		if done {
			return errors.New("a stream ended early")
		}
		if n := c.events(body, &gaps); n > 0 {
			cr.events.Add(n)
			first()
		}
	}
}

func (cr *crowd) fail(err error) {
	text := err.Error()
	cr.failed.CompareAndSwap(nil, &text)
}

// opened waits until every stream has had its first event.
func (cr *crowd) opened() *tally {
	cr.begun.Wait()
	return cr.tally(cr.start, 0, int64(len(cr.clients)))
}

func (cr *crowd) watch(d time.Duration) *tally {
	start, before := time.Now(), cr.events.Load()
	time.Sleep(d)
	return cr.tally(start, before, 0)
}

func (cr *crowd) tally(start time.Time, before, requests int64) *tally {
	t := &tally{Requests: requests, Events: cr.events.Load() - before, Elapsed: time.Since(start)}
	if text := cr.failed.Load(); text != nil {
		t.Failed = *text
	}
	return t
}

// close leaves every stream. It does no harm on nil.
func (cr *crowd) close() {
	if cr == nil {
		return
	}
	cr.closing.Store(true)
	for _, c := range cr.clients {
		_ = c.nc.Close()
	}
	cr.all.Wait()
}
