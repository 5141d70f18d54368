package sim

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// framing is how the end of a buffered answer is marked on HTTP/1.1.
type framing string

const (
	framingLength  framing = "length"
	framingChunked framing = "chunked"
	framingEOF     framing = "eof"
)

// plan is how one request is served: the options with the request's own x-sim-
// headers over them.
type plan struct {
	Options
	framing framing // "": length for buffered answers, chunked for streams
	pad     int     // bytes of filler in the answer
	headers [][2]string
	rng     *rand.Rand
}

// newPlan makes the plan of the n-th request. An error names the header.
func newPlan(o *Options, n uint64, h http.Header) (*plan, error) {
	p := &plan{Options: *o, rng: rand.New(rand.NewPCG(o.Seed, n))}
	if !p.fails(n) {
		p.Fail = Failure{}
	}
	for _, o := range overrides {
		v := h.Get(o.name)
		if v == "" {
			continue
		}
		if err := o.set(p, v); err != nil {
			return nil, fmt.Errorf("cannot read header %s: %w", o.name, err)
		}
	}
	for _, v := range h.Values("X-Sim-Header") {
		name, value, ok := strings.Cut(v, ":")
		if !ok {
			return nil, fmt.Errorf("cannot read header x-sim-header: %q is not «name: value»", v)
		}
		p.headers = append(p.headers, [2]string{name, strings.TrimSpace(value)})
	}
	return p, nil
}

// overrides are the x-sim- headers that change one request, and how each is read,
// in the order in which they apply.
var overrides = []struct {
	name string
	set  func(*plan, string) error
}{
	{"X-Sim-Ttfb", func(p *plan, v string) error { return setDuration(&p.TTFB, v) }},
	{"X-Sim-Ttft", func(p *plan, v string) error { return setDuration(&p.TTFT, v) }},
	{"X-Sim-Pace", func(p *plan, v string) error { return setDuration(&p.Pace, v) }},
	{"X-Sim-Words", func(p *plan, v string) (err error) {
		p.Words, err = parseCount(v)
		p.Text = ""
		return err
	}},
	{"X-Sim-Text", func(p *plan, v string) error { p.Text = v; return nil }},
	{"X-Sim-Pad", func(p *plan, v string) (err error) {
		p.pad, err = parseSize(v)
		return err
	}},
	{"X-Sim-Chunking", (*plan).setFraming},
	{"X-Sim-Fail", func(p *plan, v string) error { return p.Fail.UnmarshalText([]byte(v)) }},
	{"X-Sim-Status", func(p *plan, v string) error { return p.Fail.UnmarshalText([]byte("status=" + v)) }},
	{"X-Sim-Retry-After", func(p *plan, v string) error { p.Fail.RetryAfter = v; return nil }},
	{"X-Sim-Body", func(p *plan, v string) error { p.Fail.Body = v; return nil }},
}

func (p *plan) setFraming(v string) error {
	switch f := framing(v); f {
	case framingLength, framingChunked, framingEOF:
		p.framing = f
		return nil
	}
	return fmt.Errorf("%q is none of length, chunked and eof", v)
}

func setDuration(d *time.Duration, v string) (err error) {
	*d, err = time.ParseDuration(v)
	return err
}

// fails reports whether the options let the n-th request fail. Requests count
// from 1.
func (p *plan) fails(n uint64) bool {
	if p.FailEvery > 1 && n%uint64(p.FailEvery) != 0 {
		return false
	}
	// NOTE: the draw is the first one of the request's generator, so that
	// Jitter does not change which requests fail.
	return p.FailRate <= 0 || p.rng.Float64() < p.FailRate
}

// jittered returns d with the plan's jitter on it.
func (p *plan) jittered(d time.Duration) time.Duration {
	if d <= 0 || p.Jitter <= 0 {
		return d
	}
	return time.Duration(float64(d) * (1 + p.Jitter*(2*p.rng.Float64()-1)))
}
