package cache

import (
	"bytes"

	"sluice/upstream/h1"
)

// Directives are what a Cache-Control field says that matters here.
type Directives struct {
	// NoStore: neither look up nor store.
	NoStore bool
	// NoCache: do not look up; the answer may be stored. From a client,
	// max-age=0 says the same.
	NoCache bool
}

// ParseDirectives reads the value of a Cache-Control field (RFC 9111 section
// 5.2). Case and unknown directives are ignored, as are names within quoted
// arguments. Values of several fields are parsed each and joined with Or.
func ParseDirectives(value []byte) Directives {
	var d Directives
	for len(value) > 0 {
		end := directiveEnd(value)
		name, arg, _ := bytes.Cut(value[:end], []byte("="))
		name, arg = bytes.Trim(name, " \t"), bytes.Trim(arg, " \t\"")
		switch {
		case h1.EqualFold(name, "no-store"):
			d.NoStore = true
		case h1.EqualFold(name, "no-cache"):
			d.NoCache = true
		case h1.EqualFold(name, "max-age"):
			d.NoCache = d.NoCache || len(arg) > 0 && len(bytes.Trim(arg, "0")) == 0
		}
		value = value[min(end+1, len(value)):]
	}
	return d
}

// Or returns what either of d and e says.
func (d Directives) Or(e Directives) Directives {
	return Directives{NoStore: d.NoStore || e.NoStore, NoCache: d.NoCache || e.NoCache}
}

// directiveEnd returns the offset of the first comma outside quotes, or the
// length. A quote without an end ends with the value.
func directiveEnd(value []byte) int {
	quoted := false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == ',' && !quoted:
			return i
		}
	}
	return len(value)
}
