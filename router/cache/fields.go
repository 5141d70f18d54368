package cache

import (
	"bytes"

	"sluice/upstream/h1"
)

// replayed are the header fields of an answer that are stored with it. Their
// indexes are in stored entries: only ever append.
var replayed = [...][]byte{
	[]byte("Content-Type"),
	[]byte("Content-Language"),
	[]byte("Content-Disposition"), // the file name of audio
	[]byte("Cache-Control"),       // no-cache keeps proxies from caching a stream
	[]byte("X-Accel-Buffering"),   // no keeps nginx from holding a stream back
	[]byte("OpenAI-Version"),
}

// Replayed returns the names of the header fields that are stored with an answer
// and sent again. All others are of the one exchange: framing, cookies, rate
// limits, ids, times.
func Replayed() []string {
	names := make([]string, len(replayed))
	for i, name := range replayed {
		names[i] = string(name)
	}
	return names
}

// replayedIndex returns the index of name in replayed, or -1.
func replayedIndex(name []byte) int {
	for i := range replayed {
		if len(name) == len(replayed[i]) && bytes.EqualFold(name, replayed[i]) {
			return i
		}
	}
	return -1
}

// maxField bounds the value of a stored field; a longer one is left out.
const maxField = 1 << 10

// plainValue reports whether v may be the value of a header field: no control
// characters but tabs (RFC 9110 section 5.5). It keeps whoever can write to the
// server from splitting an answer in two.
func plainValue(v []byte) bool {
	for _, c := range v {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return len(v) <= maxField
}

// Storable reports whether an answer with that status and those header fields may
// be stored, if it comes whole: 200, readable for everybody, and not forbidden.
// Cache-Control: private and no-cache do not forbid it: providers say so of every
// answer, to browsers and shared proxies, while who shares a namespace here is for
// the operator to say.
func Storable(status int, fields []h1.Field) bool {
	if status != 200 {
		return false
	}
	for _, f := range fields {
		switch {
		case h1.EqualFold(f.Name, "content-encoding"):
			if len(f.Value) > 0 && !h1.EqualFold(f.Value, "identity") {
				return false
			}
		case h1.EqualFold(f.Name, "cache-control"):
			if ParseDirectives(f.Value).NoStore {
				return false
			}
		case h1.EqualFold(f.Name, "vary"):
			if bytes.IndexByte(f.Value, '*') >= 0 {
				return false
			}
		}
	}
	return true
}

// Varies reports whether engines answer differently to different values of the
// request header field of that name, so that it should be fed as a PartField.
// Accept is none of them: the APIs have the format in the body.
//
// NOTE: credentials are none either. A hit asks no engine whether the client may:
// where engines check that, and not the router, a credential has to be fed, too, or
// the namespace has to be the tenant's.
func Varies(name []byte) bool {
	switch len(name) {
	case len("openai-beta"):
		return h1.EqualFold(name, "openai-beta")
	case len("anthropic-beta"):
		return h1.EqualFold(name, "anthropic-beta")
	case len("anthropic-version"):
		return h1.EqualFold(name, "anthropic-version")
	}
	return false
}
