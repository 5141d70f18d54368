package probe

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// twin is a slow and obvious Scan: it follows the rules of the package comment
// one byte at a time, with other means where the standard library has some.
type twin struct {
	src string
	i   int
}

// twinMember is a member as the twin sees it.
type twinMember struct{ key, raw, val string }

// twinScan returns the top-level members, or false where the body is refused.
func twinScan(src []byte) ([]twinMember, bool) {
	t := &twin{src: strings.TrimPrefix(string(src), "\uFEFF")}
	if !utf8.Valid(src) {
		return nil, false
	}
	var members []twinMember
	t.space()
	if !t.take("{") {
		return nil, false
	}
	t.space()
	if t.take("}") {
		t.space()
		return nil, t.i == len(t.src)
	}
	for {
		t.space()
		start := t.i
		if !t.str() {
			return nil, false
		}
		m := twinMember{raw: t.src[start:t.i]}
		if json.Unmarshal([]byte(m.raw), &m.key) != nil {
			return nil, false
		}
		t.space()
		if !t.take(":") {
			return nil, false
		}
		t.space()
		start = t.i
		if !t.value() {
			return nil, false
		}
		m.val = t.src[start:t.i]
		members = append(members, m)
		t.space()
		if t.take(",") {
			continue
		}
		if !t.take("}") {
			return nil, false
		}
		t.space()
		return members, t.i == len(t.src)
	}
}

func (t *twin) take(s string) bool {
	if strings.HasPrefix(t.src[t.i:], s) {
		t.i += len(s)
		return true
	}
	return false
}

func (t *twin) space() {
	for t.i < len(t.src) && strings.IndexByte(" \t\r\n", t.src[t.i]) >= 0 {
		t.i++
	}
}

// str reads a string: up to the first quote that an even number of backslashes
// precedes, if encoding/json takes it.
func (t *twin) str() bool {
	start := t.i
	if !t.take(`"`) {
		return false
	}
	for t.i < len(t.src) {
		c := t.src[t.i]
		t.i++
		switch c {
		case '\\':
			t.i++
		case '"':
			return t.i <= len(t.src) && json.Valid([]byte(t.src[start:t.i]))
		}
	}
	return false
}

func (t *twin) value() bool {
	if t.i == len(t.src) {
		return false
	}
	switch t.src[t.i] {
	case '"':
		return t.str()
	case '{', '[':
		return t.nested()
	}
	for _, word := range []string{"true", "false", "null", "NaN", "Infinity", "-Infinity"} {
		if t.take(word) {
			return true
		}
	}
	// The longest number.
	end := t.i
	for end < len(t.src) && strings.IndexByte("+-.0123456789eE", t.src[end]) >= 0 {
		end++
	}
	for ; end > t.i; end-- {
		if json.Valid([]byte(t.src[t.i:end])) {
			t.i = end
			return true
		}
	}
	return false
}

func (t *twin) nested() bool {
	var open []byte
	for t.i < len(t.src) {
		c := t.src[t.i]
		switch {
		case c == '"':
			if !t.str() {
				return false
			}
			continue
		case c == '{' || c == '[':
			open = append(open, c)
			if len(open)+1 > MaxDepth {
				return false
			}
		case c == '}' || c == ']':
			want := byte('{')
			if c == ']' {
				want = '['
			}
			if open[len(open)-1] != want {
				return false
			}
			open = open[:len(open)-1]
			if len(open) == 0 {
				t.i++
				return true
			}
		case strings.IndexByte(" \t\r\n,:+-.0123456789eEtruefalsnNIiy", c) < 0:
			return false
		}
		t.i++
	}
	return false
}
