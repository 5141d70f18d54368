package cache

import "sync/atomic"

// ErrorKind is a way in which a server failed to serve.
type ErrorKind uint8

// The kinds of errors.
const (
	// ErrorTimeout: the server did not answer in time.
	ErrorTimeout ErrorKind = iota
	// ErrorDown: there is no connection to the server, or it cannot serve.
	ErrorDown
	// ErrorBusy: too much is under way already.
	ErrorBusy
	// ErrorFull: the server has no memory for the entry.
	ErrorFull
	// ErrorForeign: what the server has at the key is not ours: of another type,
	// of another version, or garbage.
	ErrorForeign
	// ErrorOther: the server says something else.
	ErrorOther
	// NumErrors is the number of kinds.
	NumErrors
)

var errorNames = [NumErrors]string{
	ErrorTimeout: "timeout",
	ErrorDown:    "down",
	ErrorBusy:    "busy",
	ErrorFull:    "full",
	ErrorForeign: "foreign",
	ErrorOther:   "other",
}

// String returns the name of k as it stands in metrics.
func (k ErrorKind) String() string {
	if k >= NumErrors {
		return "other"
	}
	return errorNames[k]
}

// Stats counts what a cache does. All may be read at any time. The zero value is
// ready; it must not be copied.
type Stats struct {
	// Hits are look-ups that found an entry to serve, Misses those that did not.
	Hits, Misses atomic.Uint64
	// Bypass are requests that were not looked up because their client or their
	// kind forbids it. The request path counts them.
	Bypass atomic.Uint64
	// Coalesced are misses that got the answer of an equal request under way.
	Coalesced atomic.Uint64
	// Stores are entries handed to the store, TooLarge answers and entries larger
	// than they may be.
	Stores, TooLarge atomic.Uint64
	// Evictions are entries removed to make room, Expired those found too old.
	// A server counts its own.
	Evictions, Expired atomic.Uint64
	// Bytes is what Memory holds, with what it costs to hold it, and Entries how
	// many that are.
	Bytes, Entries atomic.Int64
	// Errors are look-ups and stores that a server failed, by kind.
	Errors [NumErrors]atomic.Uint64
}
