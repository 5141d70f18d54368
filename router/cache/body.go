package cache

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"sluice/probe"
)

// member is a member of a body that takes part in a key.
type member struct {
	key   []byte // see keyOf
	form  byte
	index int // in Body.Members
}

// The forms of a key.
const (
	formRead    = 0 // as it reads after un-escaping
	formWritten = 1 // as it stands, with its quotes
)

// Body feeds the surface and the digest of the body that the client sent: src,
// which probe.Scan has read into body without a fault. See the package comment
// for what takes part.
func (b *Builder) Body(surface probe.Surface, src []byte, body *probe.Body) {
	b.sort(surface, src, body)
	b.begin()
	for i := range b.order {
		b.member(src, &b.order[i], &body.Members[b.order[i].index])
	}
	clear(b.order) // they alias src
	digest := b.end()
	b.Part(PartBody, digest[:])
	b.Part(PartSurface, append(b.sum[:0], surface.String()...))
}

// sort fills b.order with the members that take part in canonical order: by key,
// copies of one in body order.
func (b *Builder) sort(surface probe.Surface, src []byte, body *probe.Body) {
	b.order, b.keys = b.order[:0], b.keys[:0]
	for i := range body.Members {
		m := &body.Members[i]
		key, form := b.keyOf(src, m)
		if form == formRead && idle(surface, key, body, m) {
			continue
		}
		b.order = append(b.order, member{key, form, i})
	}
	slices.SortFunc(b.order, func(x, y member) int {
		if c := bytes.Compare(x.key, y.key); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(x.form, y.form), cmp.Compare(x.index, y.index))
	})
}

// keyOf returns the key of m as it is compared. Without escapes it aliases src.
// Escaped surrogates are not decoded: lone ones would all read as U+FFFD.
func (b *Builder) keyOf(src []byte, m *probe.Member) ([]byte, byte) {
	raw := m.Key.Of(src)
	switch {
	case !m.Escaped:
		return raw[1 : len(raw)-1], formRead
	case hasSurrogate(raw):
		return raw, formWritten
	}
	n := len(b.keys)
	b.keys = probe.AppendUnquoted(b.keys, raw)
	return b.keys[n:len(b.keys):len(b.keys)], formRead
}

// hasSurrogate reports whether raw may hold an escape from \uD800 to \uDFFF.
func hasSurrogate(raw []byte) bool {
	for i := 0; i+3 < len(raw); i++ {
		if raw[i] == '\\' && raw[i+1] == 'u' && raw[i+2]|0x20 == 'd' && (raw[i+3] >= '8' && raw[i+3] <= '9' || raw[i+3] >= 'A') {
			return true
		}
	}
	return false
}

// member hashes one member: the value, the key, and then the form and both
// lengths. Read from its end, what is hashed can be taken apart in one way only.
func (b *Builder) member(src []byte, o *member, m *probe.Member) {
	n := b.value(m.Val.Of(src), m.Kind)
	b.write(o.key)
	var tail [9]byte
	tail[0] = o.form
	binary.LittleEndian.PutUint32(tail[1:], uint32(len(o.key)))
	binary.LittleEndian.PutUint32(tail[5:], uint32(n))
	b.writeShort(tail[:])
}

// idle reports whether a member cannot change the answer. The package comment
// gives the reasons.
func idle(surface probe.Surface, key []byte, body *probe.Body, m *probe.Member) bool {
	switch m.Field {
	case probe.FieldStream:
		return surface.Generative() && (m.Kind == probe.KindFalse || m.Kind == probe.KindNull)
	case probe.FieldStreamOptions:
		return (surface == probe.SurfaceChat || surface == probe.SurfaceCompletions) && usageOnly(body, m)
	case probe.FieldNone:
	default:
		return false
	}
	switch surface {
	case probe.SurfaceChat:
		switch string(key) {
		case "user", "metadata", "safety_identifier", "prompt_cache_key", "prompt_cache_retention":
			return true
		}
	case probe.SurfaceMessages:
		return string(key) == "metadata"
	case probe.SurfaceCompletions, probe.SurfaceEmbeddings, probe.SurfaceRerank, probe.SurfaceScore, probe.SurfaceClassify:
		return string(key) == "user"
	}
	return false
}

// usageOnly reports a stream_options that says nothing, or nothing but whether
// usage is included.
func usageOnly(body *probe.Body, m *probe.Member) bool {
	if m.Kind == probe.KindNull {
		return true
	}
	for i := range body.Objects {
		o := &body.Objects[i]
		if o.Of != probe.FieldStreamOptions || o.Span != m.Val {
			continue
		}
		for _, in := range body.Inner[o.First:o.Last] {
			if in.Field != probe.FieldIncludeUsage || in.Kind > probe.KindTrue {
				return false
			}
		}
		return true
	}
	return false
}

// value hashes a value without the white space outside its strings and returns
// how many bytes that are. White space between two letters or digits, which is
// in no JSON but which the scan lets pass far down, counts as one space.
func (b *Builder) value(v []byte, kind probe.Kind) int {
	if kind < probe.KindObject {
		b.write(v)
		return len(v)
	}
	n, start := 0, 0 // start: of what is not hashed yet
	for i := 0; ; {
		i = tokensEnd(v, i)
		if i >= len(v) {
			break
		}
		if v[i] == '"' {
			i = stringEnd(v, i+1)
			continue
		}
		b.write(v[start:i])
		n += i - start
		start = i
		for v[start] <= ' ' { // a bracket ends v
			start++
		}
		if wordByte(v[i-1]) && wordByte(v[start]) {
			b.writeShort([]byte{' '})
			n++
		}
		i = start
	}
	b.write(v[start:])
	return n + len(v) - start
}

// wordByte reports whether c may be part of a number or a literal.
func wordByte(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.'
}

// tokensEnd returns the offset of the first quote or white space from i on, which
// is outside a string; len(v) if there is none.
func tokensEnd(v []byte, i int) int {
	for i < len(v) && v[i] != '"' && v[i] > ' ' {
		i++
	}
	return i
}

// stringEnd returns the offset after the quote that ends the string whose first
// character is at i.
func stringEnd(v []byte, i int) int {
	for {
		quote := bytes.IndexByte(v[i:], '"')
		if quote < 0 {
			panic("BUG: a scanned string has no end")
		}
		n := 0 // the backslashes in a row before it
		for n < quote && v[i+quote-1-n] == '\\' {
			n++
		}
		i += quote + 1
		if n&1 == 0 {
			return i
		}
	}
}
