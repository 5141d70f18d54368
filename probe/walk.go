package probe

// A walker goes over the members of one object or the elements of one array of
// an engine's answer, which is read and never governed. It is a value on the
// stack of its user.
type walker struct {
	s      scanner
	i      int    // where to read on, 0 before the opening bracket
	m      Member // the present member or element
	open   byte   // the opening bracket
	closed bool   // the closing bracket was read, everything before it was sound
}

// walk starts at src, which begins with the bracket open, '{' or '[', white space
// before it allowed. Of anything else there is nothing to walk over.
//
// NOTE: kept simple to keep it inlinable.
func walk(src []byte, open byte, tmp *scratch) walker {
	return walker{s: scanner{src: src, tmp: tmp}, open: open}
}

// next moves on to the next member or element.
func (w *walker) next() bool {
	src := w.s.src
	first := w.i == 0
	i := skipSpace(src, w.i)
	if i >= len(src) {
		return false
	}
	if first {
		if src[i] != w.open {
			return false
		}
		i = skipSpace(src, i+1)
	}
	switch {
	case i < len(src) && src[i] == w.open+2: // '[' and ']', '{' and '}' are two apart
		w.i, w.closed = i+1, true
		return false
	case first:
	case src[i] != ',':
		return false
	default:
		i = skipSpace(src, i+1)
	}
	w.m = Member{}
	f := FaultNone
	if w.open == '{' {
		i, f = w.s.key(i, &w.m)
	}
	if f == FaultNone {
		w.i, f = w.s.value(i, 1, &w.m)
	}
	return f == FaultNone
}

// whole reports whether nothing but white space follows the closing bracket.
func (w *walker) whole() bool {
	return w.closed && skipSpace(w.s.src, w.i) == len(w.s.src)
}

// val returns the bytes of the present value.
func (w *walker) val() []byte { return w.m.Val.Of(w.s.src) }

// name returns the present key. An escaped one is written to buf; one that is
// longer than anything looked for is nothing.
func (w *walker) name(buf *[maxAnswerKey]byte) []byte {
	raw := w.m.Key.Of(w.s.src)
	if !w.m.Escaped {
		return raw[1 : len(raw)-1]
	}
	if len(raw) > maxAnswerKey {
		return nil
	}
	return AppendUnquoted(buf[:0], raw)
}

// maxAnswerKey bounds the escaped keys that are looked at, quotes included.
const maxAnswerKey = 6*len("input_tokens_details") + 2
