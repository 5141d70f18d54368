package router

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"sluice/configs"
	"sluice/probe"
)

// Replay holds recorded requests against a configuration, and, if asked, against
// another one beside it, and sums what becomes of them. Nothing is sent. It runs
// the code of the data path, so that what it counts is what the metrics would.
//
// A request is a line, see capture: a JSON object with path (or url), method
// (default POST), headers (strings, or lists of them) and body (the JSON value
// itself, or a string that holds the bytes). Where chance shares requests among
// pools, a replay takes the request's hash in its place, so that two of them
// agree.
//
// Read is for one goroutine at a time; Bytes and Lines may be called meanwhile.
type Replay struct {
	sides   []replaySide // the configuration, and the one it is compared with
	numbers probe.FieldSet
	workers []*replayWorker
	files   []string
	bytes   atomic.Int64
	lines   atomic.Int64
}

// replaySide is one of the configurations that a replay holds requests against.
type replaySide struct {
	rules   *Rules
	maxBody int
}

const (
	// replayBlock is how much is read at once, and stays in a core's own cache
	// while the lines of it are worked on.
	replayBlock = 512 << 10
	// maxReplayLine bounds a line in bytes.
	maxReplayLine = 256 << 20
	// maxReplayFiles bounds the files of one replay.
	maxReplayFiles = 1 << 16
)

// NewReplay compiles valid configurations; against may be nil. It uses the given
// number of goroutines, at least one.
func NewReplay(cfg, against *configs.Config, workers int) (*Replay, error) {
	p := &Replay{}
	for _, c := range []*configs.Config{cfg, against} {
		if c == nil {
			continue
		}
		rules, err := NewRules(c)
		if err != nil {
			return nil, err
		}
		p.sides = append(p.sides, replaySide{rules, int(c.Server.MaxBody)})
		p.numbers |= rules.numbers
	}
	for range max(workers, 1) {
		p.workers = append(p.workers, newReplayWorker(p))
	}
	return p, nil
}

// Read reads requests to the end of r, which is called name in the report. A line
// that is no request is counted and passed over; the error is one of r.
func (p *Replay) Read(name string, r io.Reader) error {
	if len(p.files) == maxReplayFiles {
		return fmt.Errorf("too many files; at most %d", maxReplayFiles)
	}
	p.files = append(p.files, name)
	feed := &lineFeed{r: r, limit: maxReplayLine, line: uint64(len(p.files)-1)<<lineBits + 1}
	var wg sync.WaitGroup
	for _, w := range p.workers {
		wg.Go(func() { w.work(feed) })
	}
	wg.Wait()
	if feed.err != io.EOF {
		return feed.err
	}
	return nil
}

// Bytes returns how many bytes of lines have been worked on, and Lines how many
// lines.
func (p *Replay) Bytes() int64 { return p.bytes.Load() }

// Lines returns how many lines have been worked on, empty ones left out.
func (p *Replay) Lines() int64 { return p.lines.Load() }

// lineBits is how many bits of the number of a line count within its file; those
// above are the index of the file. Numbers are in the order in which lines come.
const lineBits = 47

// place returns file:line for the number of a line.
func (p *Replay) place(line uint64) string {
	return fmt.Sprintf("%s:%d", p.files[line>>lineBits], line&(1<<lineBits-1))
}

// lineFeed hands out blocks of whole lines. The workers take turns at reading, so
// that each works on what its own core has just read. Safe for concurrent use.
type lineFeed struct {
	r     io.Reader
	limit int // no line is longer

	mu   sync.Mutex
	rest []byte // the beginning of a line, read with the lines before it
	line uint64 // the number of the next line
	err  error  // why there is no more
}

// errLongLine is the error of next for one line, which it has passed over.
var errLongLine = errors.New("is longer than 256 MiB")

// next fills *buf with whole lines, the last of which may lack its end at the end
// of the input, and returns the number of the first one. The block is *buf, which
// may have grown.
func (f *lineFeed) next(buf *[]byte) (first uint64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := append((*buf)[:0], f.rest...)
	f.rest = f.rest[:0]
	first = f.line
	searched, end := 0, -1 // the last newline of b[:searched]
	for f.err == nil && end < 0 {
		if len(b) == cap(b) {
			if len(b) >= f.limit {
				*buf = b[:0]
				f.passLine(b[:cap(b)])
				return first, errLongLine
			}
			b = append(b, make([]byte, len(b))...)[:len(b)]
		}
		b = f.fill(b)
		if i := bytes.LastIndexByte(b[searched:], '\n'); i >= 0 {
			end = searched + i
		}
		searched = len(b)
	}
	if end >= 0 {
		f.rest = append(f.rest, b[end+1:]...)
		b = b[:end+1]
	}
	*buf = b
	if len(b) == 0 {
		return first, f.err
	}
	f.line += uint64(bytes.Count(b, newline))
	return first, nil
}

var newline = []byte{'\n'}

// fill reads until b is full. Bytes that come before an error other than the end
// may be half a line, which is then told to be malformed.
func (f *lineFeed) fill(b []byte) []byte {
	for len(b) < cap(b) && f.err == nil {
		var n int
		n, f.err = f.r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
	}
	return b
}

// passLine reads to the end of a line.
func (f *lineFeed) passLine(buf []byte) {
	f.line++
	for f.err == nil {
		var n int
		n, f.err = f.r.Read(buf)
		if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
			f.rest = append(f.rest, buf[i+1:n]...)
			return
		}
	}
}

// work takes blocks from feed until there are no more.
func (w *replayWorker) work(feed *lineFeed) {
	for {
		line, err := feed.next(&w.block)
		if err == errLongLine {
			w.malformed(line, err.Error())
			continue
		}
		if err != nil {
			return
		}
		w.lines(w.block, line)
	}
}

// lines works on a block; first is the number of its first line.
func (w *replayWorker) lines(block []byte, first uint64) {
	w.replay.bytes.Add(int64(len(block)))
	n := int64(0)
	for line := first; len(block) > 0; line++ {
		text := block
		if i := bytes.IndexByte(block, '\n'); i >= 0 {
			text, block = block[:i], block[i+1:]
		} else {
			block = nil
		}
		if text = bytes.TrimSpace(text); len(text) > 0 {
			n++
			w.request(text, line)
		}
	}
	w.replay.lines.Add(n)
}
