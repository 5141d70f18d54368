package sim

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Options tunes an engine. The zero value is an engine that answers at once.
type Options struct {
	// Models are the names that the engine serves. A request for another one is
	// answered 404. Empty: every name is served, and /v1/models lists DefaultModel.
	Models []string
	// Flavour decides the shapes that differ between engines. Default VLLM.
	Flavour Flavour
	// Protocol is what the port speaks. Default Both.
	Protocol Protocol
	// MaxModelLen is the context window in tokens. A longer prompt is refused and
	// an answer ends where the window does. 0: no limit, 32768 is what is told.
	MaxModelLen int

	// Words is the length of an answer in words, each of them one token.
	// Default 16.
	Words int
	// Text, if set, is the answer itself, and Words counts for nothing.
	Text string
	// Dimensions is the length of an embedding. Default 8.
	Dimensions int

	// TTFB is the time before the first byte of any answer.
	TTFB time.Duration
	// TTFT is the further time, after the head of a stream, before the first token.
	TTFT time.Duration
	// Pace is the time between two tokens. A buffered answer takes as long as
	// the stream would.
	Pace time.Duration
	// Jitter makes each of the three times random between d*(1-Jitter) and
	// d*(1+Jitter). It is between 0 and 1.
	Jitter float64
	// Seed makes Jitter and FailRate the same from run to run: they depend on
	// it and on the number of the request alone.
	Seed uint64

	// Fail is what fails, if anything, on the surfaces (not on probes, models
	// and /sim/).
	Fail Failure
	// FailEvery lets only every k-th request fail, the k-th first. 0: all.
	FailEvery int
	// FailRate lets only this share of requests fail, between 0 and 1. 0: all.
	FailRate float64

	// History is the number of requests kept for Requests. Default 128.
	History int
	// KeepBody is the number of bytes kept of each body; the hash and the size
	// are always of the whole. Default 1 MiB.
	KeepBody int
	// MaxBody is the longest body taken, in bytes; 413 beyond. Default 64 MiB.
	MaxBody int64
	// IdleTimeout closes a connection that idles that long. 0: never.
	IdleTimeout time.Duration
	// MaxStreams bounds the streams of one h2c connection. 0: net/http's own limit.
	MaxStreams int
}

// DefaultModel is the model of an engine without configured models.
const DefaultModel = "sim-model"

func (o Options) withDefaults() Options {
	if o.Flavour == "" {
		o.Flavour = VLLM
	}
	for _, d := range []struct {
		n   *int
		def int
	}{
		{&o.Words, 16},
		{&o.Dimensions, 8},
		{&o.History, 128},
		{&o.KeepBody, 1 << 20},
	} {
		if *d.n <= 0 {
			*d.n = d.def
		}
	}
	if o.MaxBody <= 0 {
		o.MaxBody = 64 << 20
	}
	return o
}

// Flavour is the engine that is simulated.
type Flavour string

// The flavours.
const (
	VLLM   Flavour = "vllm"
	SGLang Flavour = "sglang"
	OpenAI Flavour = "openai"
)

// UnmarshalText reads a flavour by its name.
func (f *Flavour) UnmarshalText(text []byte) error {
	switch v := Flavour(text); v {
	case VLLM, SGLang, OpenAI:
		*f = v
		return nil
	}
	return fmt.Errorf("unknown engine %q, want vllm, sglang or openai", text)
}

// MarshalText returns the name of f.
func (f Flavour) MarshalText() ([]byte, error) { return []byte(f), nil }

// Protocol is what a port speaks.
type Protocol string

// The protocols. Real vLLM and SGLang servers speak HTTP/1.1 only.
const (
	Both  Protocol = ""
	HTTP1 Protocol = "http1"
	H2C   Protocol = "h2c"
)

// UnmarshalText reads a protocol by its name; "both" is Both.
func (p *Protocol) UnmarshalText(text []byte) error {
	switch v := Protocol(text); v {
	case "both":
		*p = Both
		return nil
	case Both, HTTP1, H2C:
		*p = v
		return nil
	}
	return fmt.Errorf("unknown protocol %q, want both, http1 or h2c", text)
}

// MarshalText returns the name of p.
func (p Protocol) MarshalText() ([]byte, error) {
	if p == Both {
		return []byte("both"), nil
	}
	return []byte(p), nil
}

func (p Protocol) protocols() *http.Protocols {
	var ps http.Protocols
	ps.SetHTTP1(p != H2C)
	ps.SetUnencryptedHTTP2(p != HTTP1)
	return &ps
}

// FailKind is a way to fail.
type FailKind string

// The ways to fail.
const (
	FailNone FailKind = ""
	// FailStatus answers with Status, RetryAfter and Body.
	FailStatus FailKind = "status"
	// FailReset breaks the connection before any byte of an answer: TCP RST on
	// HTTP/1.1, RST_STREAM on h2c.
	FailReset FailKind = "reset"
	// FailCut breaks off after After events of a stream or After bytes of a
	// buffered body: the connection closes without an end (h2c: RST_STREAM).
	FailCut FailKind = "cut"
	// FailSilence takes the request and never answers.
	FailSilence FailKind = "silence"
	// FailGarbage writes bytes that are not HTTP and closes the connection.
	FailGarbage FailKind = "garbage"
	// FailSlowHead writes the first 64 bytes of the answer one at a time, with
	// Pause between them.
	FailSlowHead FailKind = "slow-head"
	// FailError ends a stream after After events with an error event, as an
	// engine does that fails inside; a buffered answer becomes a 500.
	FailError FailKind = "error"
)

// Failure is one way to fail with its arguments. Its text form is the kind,
// with "=" and its argument where it has one: status=503, reset, cut=3,
// silence, garbage, slow-head=10ms, error=2; "" or "none" is no failure.
type Failure struct {
	Kind FailKind
	// After counts events or bytes. Of FailCut and FailError.
	After int
	// Pause is the time between two bytes. Of FailSlowHead.
	Pause time.Duration
	// Status, RetryAfter (the header, if not empty) and Body (default: an error
	// in the surface's shape) are of FailStatus.
	Status     int
	RetryAfter string
	Body       string
}

// UnmarshalText reads the text form of a failure. It leaves RetryAfter and Body
// as they are.
func (f *Failure) UnmarshalText(text []byte) error {
	kind, arg, _ := strings.Cut(string(text), "=")
	v := Failure{Kind: FailKind(kind), RetryAfter: f.RetryAfter, Body: f.Body}
	var err error
	switch v.Kind {
	case "none", FailNone:
		v.Kind = FailNone
	case FailReset, FailSilence, FailGarbage:
		if arg != "" {
			err = fmt.Errorf("%s takes no argument", kind)
		}
	case FailStatus:
		v.Status, err = parseStatus(arg)
	case FailCut, FailError:
		v.After, err = parseCount(arg)
	case FailSlowHead:
		v.Pause, err = time.ParseDuration(arg)
	default:
		err = fmt.Errorf("unknown kind, want status=N, reset, cut=N, silence, garbage, slow-head=DURATION or error=N")
	}
	if err != nil {
		return fmt.Errorf("cannot read failure %q: %w", text, err)
	}
	*f = v
	return nil
}

// MarshalText returns the text form of f, without RetryAfter and Body.
func (f Failure) MarshalText() ([]byte, error) {
	switch f.Kind {
	case FailStatus:
		return fmt.Appendf(nil, "%s=%d", f.Kind, f.Status), nil
	case FailCut, FailError:
		return fmt.Appendf(nil, "%s=%d", f.Kind, f.After), nil
	case FailSlowHead:
		return fmt.Appendf(nil, "%s=%s", f.Kind, f.Pause), nil
	case FailNone:
		return []byte("none"), nil
	}
	return []byte(f.Kind), nil
}

func parseStatus(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 200 || n > 599 {
		return 0, fmt.Errorf("status %q is not a number between 200 and 599", s)
	}
	return n, nil
}

func parseCount(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is not a number of 0 or more", s)
	}
	return n, nil
}

// parseSize reads a number of bytes, with KiB, MiB or GiB or without.
func parseSize(s string) (int, error) {
	shift := 0
	for i, unit := range []string{"KiB", "MiB", "GiB"} {
		if rest, ok := strings.CutSuffix(s, unit); ok {
			s, shift = rest, 10*(i+1)
		}
	}
	n, err := parseCount(s)
	if err != nil || n > (1<<31)>>shift {
		return 0, fmt.Errorf("%q is not a size up to 2GiB", s)
	}
	return n << shift, nil
}

// served returns the models that the engine names as its own.
func (o *Options) served() []string {
	if len(o.Models) == 0 {
		return []string{DefaultModel}
	}
	return o.Models
}

func (o *Options) serves(model string) bool {
	return len(o.Models) == 0 || slices.Contains(o.Models, model)
}

// window returns the context window that the engine tells its clients.
func (o *Options) window() int {
	if o.MaxModelLen > 0 {
		return o.MaxModelLen
	}
	return 32768
}
