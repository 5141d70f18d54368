package cache

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"sluice/upstream/h1"
)

// Entry is a stored answer. It never changes, and what it returns aliases it and
// must not be changed either: entries are shared by all who get them, without a
// copy, and belong to the garbage collector. Safe for concurrent use.
//
// An entry is one run of bytes, the same in memory and on a server:
//
//	offset size
//	0      4    "SLC" and the version, 1
//	4      1    flags
//	5      1    number of fields
//	6      8    when it was made, milliseconds since 1970
//	14     4    length of the body
//	18     4    where the event with the usage begins in the body
//	22     4    and where it ends
//	26     …    fields: index in replayed (1), length (2), value
//	…      …    body
//
// Numbers are little-endian.
type Entry struct {
	raw    []byte
	fields []byte // of raw
	body   []byte // of raw
}

const entryMagic = "SLC\x01"

// headSize is the length of what stands before the fields.
const headSize = 26

// The flags of an entry.
const (
	flagStream = 1 << iota // the body is an event stream
	flagUsage              // the engine was asked to include usage in it
	flagsEnd
)

// ErrNoEntry says that bytes are no entry: of another version, cut, or garbage.
var ErrNoEntry = errors.New("not an entry of this cache")

// Decode reads an entry from raw, which it keeps: it must not be changed any
// more. Any bytes but those of an entry are ErrNoEntry.
func Decode(raw []byte) (*Entry, error) {
	if len(raw) < headSize || string(raw[:len(entryMagic)]) != entryMagic || raw[4] >= flagsEnd || raw[4] == flagUsage {
		return nil, ErrNoEntry
	}
	rest, last := raw[headSize:], -1
	for range raw[5] {
		if len(rest) < 3 {
			return nil, ErrNoEntry
		}
		index, n := int(rest[0]), int(binary.LittleEndian.Uint16(rest[1:]))
		if index <= last || index >= len(replayed) || n > len(rest)-3 || !plainValue(rest[3:3+n]) {
			return nil, ErrNoEntry
		}
		last, rest = index, rest[3+n:]
	}
	e := &Entry{raw: raw, fields: raw[headSize : len(raw)-len(rest)], body: rest}
	from, to := e.usage()
	if uint64(len(rest)) != uint64(binary.LittleEndian.Uint32(raw[14:])) || from > to || to > uint64(len(rest)) {
		return nil, ErrNoEntry
	}
	if to > 0 && raw[4] != flagStream|flagUsage {
		return nil, ErrNoEntry
	}
	return e, nil
}

// Encoded returns the bytes that Decode reads.
func (e *Entry) Encoded() []byte { return e.raw }

// Body returns the body as the engine sent it.
func (e *Entry) Body() []byte { return e.body }

// Streamed reports that the body is an event stream.
func (e *Entry) Streamed() bool { return e.raw[4]&flagStream != 0 }

// Serves reports whether the entry answers a request that wants the event with
// the usage, or one that does not. A stream that was made without it serves the
// latter alone; what is no stream serves both.
func (e *Entry) Serves(usage bool) bool {
	return !usage || e.raw[4]&(flagStream|flagUsage) != flagStream
}

// Stream returns the body in two pieces, with the event that holds nothing but
// usage or without it. The second piece may be empty.
func (e *Entry) Stream(usage bool) (first, second []byte) {
	from, to := e.usage()
	if usage || to == 0 {
		return e.body, nil
	}
	return e.body[:from], e.body[to:]
}

// usage returns where the event with the usage stands; 0, 0 if there is none.
func (e *Entry) usage() (from, to uint64) {
	return uint64(binary.LittleEndian.Uint32(e.raw[18:])), uint64(binary.LittleEndian.Uint32(e.raw[22:]))
}

// Created returns when the answer was complete.
func (e *Entry) Created() time.Time {
	return time.UnixMilli(int64(binary.LittleEndian.Uint64(e.raw[6:])))
}

// Age returns the value of the Age field (RFC 9111 section 5.1) at now: whole
// seconds, never negative, whatever the clocks of two routers say.
func (e *Entry) Age(now time.Time) int64 {
	return min(max(now.UnixMilli()/1000-e.Created().UnixMilli()/1000, 0), math.MaxInt32)
}

// AppendFields appends the header fields to send with the answer. Content-Type
// comes first, if there is one.
func (e *Entry) AppendFields(dst []h1.Field) []h1.Field {
	for b := e.fields; len(b) > 0; {
		n := 3 + int(binary.LittleEndian.Uint16(b[1:]))
		dst = append(dst, h1.Field{Name: replayed[b[0]], Value: b[3:n:n]})
		b = b[n:]
	}
	return dst
}
