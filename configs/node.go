package configs

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of one source. A real configuration is far below them; they keep a
// hostile or a wrong file from costing memory.
const (
	maxSourceBytes = 1 << 20
	maxDepth       = 64
	maxNodes       = 1 << 17
)

type kind uint8

const (
	kindBad kind = iota // a fault was reported; whoever meets it stays silent
	kindNull
	kindBool
	kindInt
	kindFloat
	kindString
	kindDate
	kindList
	kindMap
)

// node is one value of a source, as it was written and where. Every format is
// read into nodes: they keep what a Go map loses, the order of the keys, the
// text of the numbers and the position of each value.
type node struct {
	kind   kind
	origin Origin
	// text is a scalar as it was written, without the quotes of a string.
	text string
	// value is the scalar: bool, int, uint64 (only above the largest int),
	// float64, string, or nil.
	value any
	// items are those of a list, members those of a mapping, in source order.
	items   []*node
	members []member
	index   map[string]int // of members, by key
}

type member struct {
	key    string
	origin Origin
	value  *node
}

// find returns the member with key, or nil. It is valid until the next add.
func (n *node) find(key string) *member {
	if i, ok := n.index[key]; ok {
		return &n.members[i]
	}
	return nil
}

// add appends a member whose key is not there yet.
func (n *node) add(key string, origin Origin, value *node) {
	if n.index == nil {
		n.index = make(map[string]int)
	}
	n.index[key] = len(n.members)
	n.members = append(n.members, member{key: key, origin: origin, value: value})
}

// plain returns n as plain Go values: the scalar types of node.value, []any
// and map[string]any.
func (n *node) plain() any {
	switch n.kind {
	case kindList:
		list := make([]any, len(n.items))
		for i, item := range n.items {
			list[i] = item.plain()
		}
		return list
	case kindMap:
		m := make(map[string]any, len(n.members))
		for _, mem := range n.members {
			m[mem.key] = mem.value.plain()
		}
		return m
	}
	return n.value
}

// describe names n in a fault.
func (n *node) describe() string {
	switch n.kind {
	case kindNull:
		return "nothing"
	case kindString:
		return quote(n.text)
	case kindList:
		return "a list"
	case kindMap:
		return "a mapping"
	}
	return n.text
}

// quote returns s in quotes, cut when it is long.
func quote(s string) string {
	const limit = 64
	if len(s) <= limit {
		return strconv.Quote(s)
	}
	cut := limit
	for cut > limit-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + "…"
}

// keyFault says what is wrong with a key of a mapping, or returns "".
func keyFault(key string) string {
	if key == "" {
		return "a key must not be empty"
	}
	if strings.ContainsFunc(key, isControl) {
		return "a key must not hold control characters, got " + quote(key)
	}
	return ""
}

func isControl(r rune) bool { return r < 0x20 || 0x7f <= r && r < 0xa0 }

// integer returns the node value of a whole number within 64 bits.
func integer(text string, base int) (v any, ok bool) {
	if i, err := strconv.ParseInt(text, base, strconv.IntSize); err == nil {
		return int(i), true
	}
	if u, err := strconv.ParseUint(text, base, 64); err == nil {
		return u, true
	}
	return nil, false
}

// cursor turns byte offsets into lines and columns. Asked in ascending order
// it reads the source once.
type cursor struct {
	data         []byte
	off          int
	line, column int
}

func newCursor(data []byte) *cursor { return &cursor{data: data, line: 1, column: 1} }

// at returns the line and the column, in characters, of the byte at off.
func (c *cursor) at(off int) (line, column int) {
	if off < c.off {
		*c = *newCursor(c.data)
	}
	for c.off < min(off, len(c.data)) {
		switch b := c.data[c.off]; {
		case b == '\n':
			c.line, c.column = c.line+1, 1
		case utf8.RuneStart(b):
			c.column++
		}
		c.off++
	}
	return c.line, c.column
}
