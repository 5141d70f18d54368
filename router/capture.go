package router

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"sluice/configs"
	"sluice/policy"
)

// capture writes a share of the requests to a file that Replay reads. A request
// costs the data path its hash, and a copy of the body if it is in the sample; the
// rest is done by a goroutine of the capture's own, behind a bounded queue. What
// the queue has no room for is dropped and counted. Safe for concurrent use.
//
// A line has the path without the query, the method, a few header fields, see
// captureFields, and the body after its Content-Encoding was undone. Bodies that
// are no JSON object are left out: nothing could be replaced in them.
type capture struct {
	cfg    configs.Capture
	fields []string
	redact *redactor // nil: bodies are written as they came
	log    *slog.Logger

	queue  chan *captured
	queued atomic.Int64 // bytes in the queue
	stop   chan struct{}
	done   chan struct{}
	free   sync.Pool

	written, dropped, failed atomic.Uint64
	full                     atomic.Bool // nothing is written any more
}

const (
	// Bounds of the queue.
	captureQueue = 256
	captureBytes = 64 << 20
	// captureFlush is how long a line waits to be written.
	captureFlush = time.Second
	// maxKeptCapture is the largest buffer that is used again.
	maxKeptCapture = 1 << 20
)

// captured is a request on its way to the file: its line up to the body, and from
// bodyAt on the body.
type captured struct {
	line   []byte
	bodyAt int
}

// newCapture opens the file of cfg and starts to write. It returns nil where none
// is asked for.
func newCapture(cfg *configs.Config, log *slog.Logger) (*capture, error) {
	if cfg.Capture.File == "" {
		return nil, nil
	}
	f, size, err := openCapture(cfg.Capture.File)
	if err != nil {
		return nil, fmt.Errorf("capture.file: %w", err)
	}
	c := &capture{
		cfg: cfg.Capture, fields: captureFields(cfg), log: log,
		queue: make(chan *captured, captureQueue), stop: make(chan struct{}), done: make(chan struct{}),
	}
	c.free.New = func() any { return &captured{} }
	if cfg.Capture.Redact {
		c.redact = newRedactor(cfg)
	}
	go c.write(f, size)
	return c, nil
}

// openCapture opens a file to append to. A line that was cut off there is ended.
func openCapture(name string) (f *os.File, size int64, err error) {
	if f, err = os.OpenFile(name, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600); err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New(name + " is not a regular file")
	}
	if err == nil {
		err = f.Chmod(0o600)
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	size = info.Size()
	var last [1]byte
	if size > 0 {
		if _, err = f.ReadAt(last[:], size-1); err == nil && last[0] != '\n' {
			_, err = f.WriteString("\n")
			size++
		}
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, size, nil
}

// captureFields returns the header fields that are written: those that say how a
// request is read, and those that the rules of cfg ask for. What may be a
// credential, or a session, is never written.
func captureFields(cfg *configs.Config) []string {
	fields := []string{"content-type", "user-agent", headerThinking}
	add := func(name string) {
		name = strings.ToLower(name)
		for _, part := range []string{"auth", "cookie", "token", "secret", "password", "credential", "key", "session", "signature"} {
			if strings.Contains(name, part) {
				return
			}
		}
		if name != "" && !slices.Contains(fields, name) {
			fields = append(fields, name)
		}
	}
	add(cfg.Server.TenantHeader)
	eachRule(cfg, func(r *configs.Rule) {
		if r.Type == "header" {
			add(r.Name)
		}
	})
	return fields
}

// eachRule calls f with all conditions of cfg.
func eachRule(cfg *configs.Config, f func(*configs.Rule)) {
	var walk func(*configs.Rule)
	walk = func(r *configs.Rule) {
		if r == nil {
			return
		}
		f(r)
		for i := range r.Conditions {
			walk(&r.Conditions[i])
		}
	}
	for i := range cfg.Routing.Decisions {
		walk(cfg.Routing.Decisions[i].Rules)
	}
}

// nextCapture returns the capture of a configuration that follows s, which may be
// nil: that of s, if it would be the same.
func (s *snapshot) nextCapture(cfg *configs.Config, log *slog.Logger) (*capture, error) {
	if s == nil || s.capture == nil || s.capture.cfg != cfg.Capture || !slices.Equal(s.capture.fields, captureFields(cfg)) ||
		s.capture.redact != nil && !reflect.DeepEqual(s.capture.redact, newRedactor(cfg)) {
		return newCapture(cfg, log)
	}
	return s.capture, nil
}

// closeCapture ends the capture of s, unless it is that of other, which may be nil.
func (s *snapshot) closeCapture(other *snapshot) {
	if other == nil || other.capture != s.capture {
		s.capture.close()
	}
}

// writeMetrics writes the metrics of a capture; a nil one has none.
func (c *capture) writeMetrics(w io.Writer) {
	if c == nil {
		return
	}
	metrics.WriteCounterUint64(w, "sluice_capture_written_total", c.written.Load())
	metrics.WriteCounterUint64(w, "sluice_capture_dropped_total", c.dropped.Load())
	metrics.WriteCounterUint64(w, "sluice_capture_errors_total", c.failed.Load())
	metrics.WriteGaugeUint64(w, "sluice_capture_stopped", uint64(number(c.full.Load())))
}

// sampled reports whether a request of the hash is captured. Which ones are has
// nothing to do with those that a rollout takes.
func (c *capture) sampled(hash uint64) bool {
	return policy.InShare(hash*0x9e3779b97f4a7c15+1, float64(c.cfg.Sample))
}

// capture passes the request on to the capture, if it is in the sample.
func (q *request) capture() {
	c := q.snap.capture
	if c == nil || c.full.Load() || !q.json() || !c.sampled(q.requestHash(&q.intake)) {
		return
	}
	// Counted before the copy, so that many at once do not pass the bound.
	n := int64(len(q.body))
	if c.queued.Add(n) > captureBytes {
		c.queued.Add(-n)
		c.dropped.Add(1)
		return
	}
	x := c.free.Get().(*captured)
	x.line = append(c.appendHead(x.line[:0], q.path, &q.ctx.Request.Header), `,"body":`...)
	x.bodyAt = len(x.line)
	x.line = append(x.line, q.body...)
	select {
	case c.queue <- x:
	default:
		c.dropped.Add(1)
		c.release(x)
	}
}

func (c *capture) release(x *captured) {
	c.queued.Add(int64(x.bodyAt - len(x.line)))
	if cap(x.line) <= maxKeptCapture {
		c.free.Put(x)
	}
}

// appendHead appends a line up to its body.
func (c *capture) appendHead(dst, path []byte, h *fasthttp.RequestHeader) []byte {
	dst = appendText(append(dst, `{"path":`...), path)
	dst = appendText(append(dst, `,"method":`...), h.Method())
	dst = append(dst, `,"headers":{`...)
	comma := false
	for _, name := range c.fields {
		values := h.PeekAll(name)
		if len(values) == 0 {
			continue
		}
		if comma {
			dst = append(dst, ',')
		}
		comma = true
		dst = append(appendText(dst, []byte(name)), ':', '[')
		for i, v := range values {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendText(dst, v)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// appendText appends b as a JSON string. Bytes that are no ASCII become U+FFFD:
// what they stand for in a header nobody knows.
func appendText(dst, b []byte) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	for _, c := range b {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= 0x80:
			dst = append(dst, "\ufffd"...)
		case c < ' ' || c == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// write takes requests from the queue until the capture is closed.
func (c *capture) write(f *os.File, size int64) {
	defer close(c.done)
	out := bufio.NewWriterSize(f, 64<<10)
	defer func() { c.note(errors.Join(out.Flush(), f.Close())) }()
	tick := time.NewTicker(captureFlush)
	defer tick.Stop()
	for {
		select {
		case x := <-c.queue:
			size = c.put(out, x, size)
		case <-tick.C:
			c.note(out.Flush())
		case <-c.stop:
			for {
				select {
				case x := <-c.queue:
					size = c.put(out, x, size)
				default:
					return
				}
			}
		}
	}
}

// put writes one line and returns the size of the file after it.
func (c *capture) put(out io.Writer, x *captured, size int64) int64 {
	defer c.release(x)
	if c.full.Load() {
		c.dropped.Add(1)
		return size
	}
	body := x.line[x.bodyAt:]
	oneLine(body)
	if c.redact != nil {
		c.redact.redact(body)
	}
	if size += int64(len(x.line)) + 2; size > int64(c.cfg.MaxBytes) {
		c.dropped.Add(1)
		if c.full.CompareAndSwap(false, true) {
			c.log.Warn("capture stopped: the file has max_bytes", "file", c.cfg.File, "max_bytes", c.cfg.MaxBytes.String())
		}
		return size
	}
	_, err := out.Write(x.line)
	if err == nil {
		_, err = io.WriteString(out, "}\n")
	}
	if c.note(err); err == nil {
		c.written.Add(1)
	}
	return size
}

// oneLine replaces the line ends of a JSON text, which are between its tokens.
func oneLine(body []byte) {
	for i, c := range body {
		if c == '\n' || c == '\r' {
			body[i] = ' '
		}
	}
}

// note ends the writing after an error: half a line may be in the file. A writer
// repeats its error; it is told once.
func (c *capture) note(err error) {
	if err == nil || c.failed.Load() > 0 {
		return
	}
	c.full.Store(true)
	c.failed.Add(1)
	c.log.Error("capture stopped: cannot write", "file", c.cfg.File, "error", err)
}

// close writes what is in the queue and ends. It may be called once; a nil capture
// has nothing to end. No request may be passed on any more.
func (c *capture) close() {
	if c != nil {
		close(c.stop)
		<-c.done
	}
}
