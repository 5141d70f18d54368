package record

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// What is kept of values whose size a client or a worker chooses.
const (
	// MaxText is the most that is kept of a Text, in bytes.
	MaxText = 256
	// MaxSampling is the longest Row.Sampling that is kept, in bytes. Half an
	// object would be none: {"omitted_bytes":N} is written for a longer one.
	MaxSampling = 4096
)

// Unknown is a number of tokens that nobody reported.
const Unknown = -1

// Kind says what a row tells of.
type Kind uint8

// The kinds.
const (
	// Attempt is one try to have a worker answer.
	Attempt Kind = iota
	// CacheHit is an answer from the cache.
	CacheHit
	// TerminalFailure is a request that ended with an error of the router.
	TerminalFailure
)

var kindNames = [...]string{"attempt", "cache_hit", "terminal_failure"}

// String returns the kind as it is in the table.
func (k Kind) String() string { return kindNames[k] }

// Text is a value that a client or a worker chose. It has memory of its own,
// which a row keeps when it is used again.
type Text []byte

// Set copies b, up to MaxText bytes and not into the middle of a character.
func (t *Text) Set(b []byte) {
	n := len(b)
	if n > MaxText {
		for n = MaxText; n > MaxText-utf8.UTFMax+1 && !utf8.RuneStart(b[n]); n-- {
		}
	}
	*t = append((*t)[:0], b[:n]...)
}

// SetString is Set of a string.
func (t *Text) SetString(s string) {
	*t = append((*t)[:0], s[:min(len(s), MaxText+utf8.UTFMax)]...)
	t.Set(*t)
}

// Row is one row of the table; see the package comment for what its columns
// mean. A row comes from Recorder.Get and belongs to the caller until it is
// given to Add or Put, after which it must not be touched. It is not safe for
// concurrent use.
//
// A string is kept as it is until the row is written. It must come from the
// configuration or be a constant: never a view of the memory of a request, and
// never a value that names a series without bound.
type Row struct {
	// CreatedAt is when the attempt, or else the request, began. Where it is
	// zero it is the time of Add.
	CreatedAt time.Time
	RequestID Text
	Kind      Kind
	// Attempt counts from 1. Zero is NULL.
	Attempt int
	// Surface, Decision, Pool, Worker, Provider, ErrorCode and FinishReason
	// are NULL where empty, as each Text is. A worker's URL must be without
	// credentials.
	Surface       string
	Decision      string
	Tenant        Text
	Pool          string
	Worker        string
	Provider      string
	Model         Text
	ModelReported Text
	// Status is NULL where it is zero.
	Status    int
	ErrorCode string
	// PromptTokens, CachedPromptTokens and CompletionTokens are NULL where they
	// are Unknown, which is how Get returns them.
	PromptTokens       int64
	CachedPromptTokens int64
	CompletionTokens   int64
	// TTFT is NULL where it is zero.
	TTFT         time.Duration
	Duration     time.Duration
	Stream       bool
	FinishReason string
	// Sampling is a JSON object, NULL where empty. Append to Sampling[:0].
	Sampling []byte
}

// reset makes the row as good as new. What has grown too large is dropped.
func (w *Row) reset() {
	*w = Row{
		RequestID:          w.RequestID[:0],
		Tenant:             w.Tenant[:0],
		Model:              w.Model[:0],
		ModelReported:      w.ModelReported[:0],
		PromptTokens:       Unknown,
		CachedPromptTokens: Unknown,
		CompletionTokens:   Unknown,
		Sampling:           w.Sampling[:0],
	}
	if cap(w.Sampling) > MaxSampling {
		w.Sampling = nil
	}
}

// bound holds Sampling to its limit. The other values are bounded when they are
// set.
func (w *Row) bound() {
	if n := len(w.Sampling); n > MaxSampling {
		w.Sampling = append(w.Sampling[:0], `{"omitted_bytes":`...)
		w.Sampling = strconv.AppendInt(w.Sampling, int64(n), 10)
		w.Sampling = append(w.Sampling, '}')
	}
}

// clean makes every value one that both databases take: PostgreSQL refuses the
// whole batch for one zero byte or one byte that is not UTF-8.
func (w *Row) clean() {
	for _, t := range [...]*Text{&w.RequestID, &w.Tenant, &w.Model, &w.ModelReported, (*Text)(&w.Sampling)} {
		if !isClean(*t) {
			*t = append((*t)[:0], cleaned(string(*t))...)
		}
	}
	for _, s := range [...]*string{&w.Surface, &w.Decision, &w.Pool, &w.Worker, &w.Provider, &w.ErrorCode, &w.FinishReason} {
		if !isClean(*s) {
			*s = cleaned(*s)
		}
	}
}

// isClean reports whether s is made of visible ASCII and spaces, as nearly
// everything is.
func isClean[T string | []byte | Text](s T) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func cleaned(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return utf8.RuneError
		}
		return r
	}, s)
}
