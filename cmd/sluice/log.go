package main

import (
	"io"
	"log/slog"
	"sync"
	"time"
)

// logHandler returns what writes the router's own log and the access log to w, in
// a format of the configuration.
func logHandler(w io.Writer, format string, level *slog.LevelVar) slog.Handler {
	opts := &slog.HandlerOptions{Level: level}
	if format == "text" {
		return slog.NewTextHandler(w, opts)
	}
	return slog.NewJSONHandler(w, opts)
}

// flushEvery is how long a line may wait before it is written.
const flushEvery = 100 * time.Millisecond

// logBufferSize is the amount of lines that is written at once.
const logBufferSize = 64 << 10

// logBuffer gathers log lines and writes them together, so that a request does
// not pay for a system call. Close writes what is left. It is safe for
// concurrent use.
type logBuffer struct {
	mu  sync.Mutex
	w   io.Writer
	buf []byte

	stop chan struct{}
	done chan struct{}
}

func newLogBuffer(w io.Writer) *logBuffer {
	b := &logBuffer{w: w, buf: make([]byte, 0, logBufferSize), stop: make(chan struct{}), done: make(chan struct{})}
	go b.run()
	return b
}

// Write takes one line. It never fails: where the log cannot be written the
// lines are lost and traffic goes on.
func (b *logBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.buf)+len(line) > cap(b.buf) {
		b.flushLocked()
	}
	b.buf = append(b.buf, line...)
	return len(line), nil
}

// Close writes what is left and stops.
func (b *logBuffer) Close() {
	close(b.stop)
	<-b.done
}

func (b *logBuffer) run() {
	defer close(b.done)
	t := time.NewTicker(flushEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			b.flush()
		case <-b.stop:
			b.flush()
			return
		}
	}
}

func (b *logBuffer) flush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flushLocked()
}

func (b *logBuffer) flushLocked() {
	if len(b.buf) == 0 {
		return
	}
	_, _ = b.w.Write(b.buf) // see Write
	b.buf = b.buf[:0]
}
