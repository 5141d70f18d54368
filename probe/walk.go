package probe

// A walker goes over the members of one object or the elements of one array of
// an engine's answer, which is read and never governed. It is a value on the
// stack of its user, who may take the present value as bytes, go down into it, or
// leave it alone.
type walker struct {
	s       scanner
	i       int    // where to read on
	m       Member // the present member or element
	open    byte   // the opening bracket
	started bool   // the opening bracket was read
	waiting bool   // the present value was not read yet
	broken  bool   // something was not sound
	closed  bool   // the closing bracket was read, everything before it was sound
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
	if w.waiting {
		w.val()
	}
	src := w.s.src
	first := !w.started
	i := skipSpace(src, w.i)
	if w.broken || i >= len(src) {
		return false
	}
	if first {
		if src[i] != w.open {
			return false
		}
		w.started = true
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
	w.i = i
	w.waiting = f == FaultNone && i < len(src)
	return w.waiting
}

// kind returns the first byte of the present value, which tells what it is. The
// value must not have been read.
func (w *walker) kind() byte { return w.s.src[w.i] }

// val reads the present value, once.
func (w *walker) val() []byte {
	end, f := w.s.value(w.i, 1, &w.m)
	w.waiting = false
	if f != FaultNone {
		w.broken = true
		return nil
	}
	w.i = end
	return w.m.Val.Of(w.s.src)
}

// down begins to walk over the present value, if it begins with the bracket open.
// The walk must be ended with up.
func (w *walker) down(open byte) walker { return walker{s: w.s, i: w.i, open: open} }

// up ends the walk d over the present value.
func (w *walker) up(d *walker) {
	switch {
	case d.closed:
		w.i, w.waiting = d.i, false
	case d.started:
		w.broken, w.waiting = true, false
	}
}

// whole reports whether nothing but white space follows the closing bracket.
func (w *walker) whole() bool {
	return w.closed && skipSpace(w.s.src, w.i) == len(w.s.src)
}

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
