package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"sluice/router"
)

// readFiles reads all files into r. It stops at the first one that cannot be read
// and at a signal.
func readFiles(p *process, r *router.Replay, names []string) error {
	bar := newProgress(p.stderr, r, names)
	defer bar.end()
	for _, name := range names {
		if err := readFile(p, r, name, bar); err != nil {
			return fmt.Errorf("cannot read %s: %w", name, err)
		}
	}
	return nil
}

func readFile(p *process, r *router.Replay, name string, bar *progress) error {
	source := p.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // it was only read
		source = f
	}
	plain, end, err := decompressed(name, &counted{source, &bar.read, p.stop})
	if err != nil {
		return err
	}
	defer end()
	return r.Read(name, plain)
}

// decompressed returns what r holds, and a function that frees what that takes. A
// file is under gzip or zstd if its name or its first bytes say so.
func decompressed(name string, r io.Reader) (plain io.Reader, end func(), err error) {
	b := bufio.NewReaderSize(r, 64<<10)
	magic, err := b.Peek(4)
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	switch {
	case len(magic) == 0:
	case strings.HasSuffix(name, ".gz") || strings.HasPrefix(string(magic), "\x1f\x8b"):
		z, err := gzip.NewReader(b)
		return z, func() {}, err
	case strings.HasSuffix(name, ".zst") || string(magic) == "\x28\xb5\x2f\xfd":
		z, err := zstd.NewReader(b)
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return b, func() {}, nil
}

// counted counts what is read and ends it with stop.
type counted struct {
	r    io.Reader
	n    *atomic.Int64
	stop context.Context
}

var errInterrupted = errors.New("interrupted; what follows is of what was read")

func (c *counted) Read(p []byte) (int, error) {
	if c.stop != nil && c.stop.Err() != nil {
		return 0, errInterrupted
	}
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// progress draws a bar on a terminal, five times a second. On anything else it
// only counts.
type progress struct {
	read  atomic.Int64 // bytes of the files, compressed ones as they are
	total int64        // 0: not known
	start time.Time
	w     io.Writer
	r     *router.Replay
	stop  chan struct{}
	done  chan struct{}
}

func newProgress(w io.Writer, r *router.Replay, names []string) *progress {
	b := &progress{w: w, r: r, start: time.Now()}
	if !isTerminal(w) {
		return b
	}
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() {
			b.total = 0
			break
		}
		b.total += info.Size()
	}
	b.stop, b.done = make(chan struct{}), make(chan struct{})
	go b.draw()
	return b
}

// isTerminal reports whether w is one. On one of no width a bar has no room.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil && size.Col > 0
}

const eraseLine = "\r\x1b[K"

func (b *progress) draw() {
	defer close(b.done)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			fmt.Fprint(b.w, eraseLine+b.text(time.Since(b.start)))
		case <-b.stop:
			fmt.Fprint(b.w, eraseLine)
			return
		}
	}
}

// text returns the bar after the given time.
func (b *progress) text(d time.Duration) string {
	const width = 30
	rate := float64(b.r.Bytes()) / max(d.Seconds(), 1e-3)
	line := fmt.Sprintf("%d requests, %s, %s/s", b.r.Lines(), size(float64(b.r.Bytes())), size(rate))
	if b.total == 0 {
		return line
	}
	part := min(float64(b.read.Load())/float64(b.total), 1)
	full := int(part * width)
	return fmt.Sprintf("[%s%s] %3.0f%%  %s", strings.Repeat("#", full), strings.Repeat(".", width-full), 100*part, line)
}

// end erases the bar.
func (b *progress) end() {
	if b.stop != nil {
		close(b.stop)
		<-b.done
	}
}

// size returns a number of bytes for people.
func size(n float64) string {
	units := []string{"B", "KB", "MB", "GB", "TB"}
	i := 0
	for n >= 1000 && i < len(units)-1 {
		n /= 1000
		i++
	}
	if i == 0 {
		return fmt.Sprintf("%.0f B", n)
	}
	return fmt.Sprintf("%.1f %s", n, units[i])
}
