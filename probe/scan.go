package probe

import "bytes"

// routing are the fields that route a request or bound its cost. Two copies of
// one are refused, null or not: parsers differ in which copy they keep, and a
// bound that is read from the wrong one is none.
const routing = FieldSet(0) |
	1<<FieldModel | 1<<FieldStream | 1<<FieldN |
	1<<FieldMaxTokens | 1<<FieldMaxCompletionTokens |
	1<<FieldMaxOutputTokens | 1<<FieldMaxNewTokens

// Scan reads the JSON object src once and records its members in dst, which is
// reset first and keeps its capacity: there is no allocation once it has grown.
// src is not changed and not kept.
//
// The known fields are recorded with their Field wherever they stand: at the
// top level and in Objects. On SurfaceGenerate the Objects are those of
// sampling_params (an object or the elements of a list), on any other surface
// stream_options. Which of the two levels is governed is the caller's matter:
// a top-level temperature of SurfaceGenerate is recorded and means nothing to
// the engine. Num and State are settled at both levels for the fields in
// numbers, all copies of a repeated one.
//
// A repeated routing key (model, stream, n and the output limits) is
// FaultDuplicate, at the top level, inside one object of sampling_params, and
// for sampling_params itself on SurfaceGenerate. Of other fields the last copy
// counts, see Body.Repeated and Object.Repeated.
//
// A leading byte order mark is skipped. The package comment says what is
// refused and why. On a fault dst.FaultAt is set, and dst holds what was read
// until then.
func Scan(src []byte, surface Surface, numbers FieldSet, dst *Body) Fault {
	dst.reset()
	if uint64(len(src)) > MaxBody {
		return FaultTooLarge
	}
	cleanVectors()
	s := scanner{src: src, dst: dst, tmp: &dst.tmp, numbers: numbers &^ 1, // no FieldNone
		wanted: FieldStreamOptions, unique: routing}
	if surface == SurfaceGenerate {
		s.wanted = FieldSamplingParams
		s.unique = routing.With(FieldSamplingParams)
	}
	s.seen = s.seen.With(s.wanted)
	at, f := s.body()
	if f != FaultNone {
		dst.FaultAt = uint32(at)
	}
	return f
}

// TrimBOM returns b without a leading UTF-8 byte order mark. The result aliases
// b.
func TrimBOM(b []byte) []byte {
	if len(b) >= 3 && b[0] == 0xEF && b[1] == 0xBB && b[2] == 0xBF {
		return b[3:]
	}
	return b
}

// A scanner is the state of one Scan. Its methods take the offset at which to
// read and return the one after what they read, or that of the fault.
type scanner struct {
	src     []byte
	dst     *Body
	tmp     *scratch
	numbers FieldSet
	unique  FieldSet // fields that may stand only once at the top level
	wanted  Field    // the member whose objects are recorded
	seen    FieldSet // wanted and the fields read so far at the top level
}

func (s *scanner) body() (int, Fault) {
	src := s.src
	i := skipSpace(src, len(src)-len(TrimBOM(src)))
	if i >= len(src) || src[i] != '{' {
		return i, FaultNotObject
	}
	start := i
	i, f := s.topObject(i + 1)
	if f != FaultNone {
		return i, f
	}
	s.dst.Span = Span{uint32(start), uint32(i)}
	if i = skipSpace(src, i); i < len(src) {
		return i, FaultTrailing
	}
	return i, FaultNone
}

// topObject reads the members of the top-level object and its closing brace.
func (s *scanner) topObject(i int) (int, Fault) {
	src, dst := s.src, s.dst
	i = skipSpace(src, i)
	if i < len(src) && src[i] == '}' {
		return i + 1, FaultNone
	}
	for {
		var key plainKey
		if hasVectors { // Fast path
			n := len(dst.Members)
			i, key, s.seen = s.plainMembers(i, &dst.Members, MaxMembers, s.seen)
			for ; n < len(dst.Members); n++ {
				dst.last[dst.Members[n].Field] = uint16(n + 1)
			}
			dst.last[FieldNone] = 0
		}
		if len(dst.Members) == MaxMembers {
			return i, FaultMembers
		}
		dst.Members = append(dst.Members, Member{})
		end, f := s.topMember(i, key, &dst.Members[len(dst.Members)-1])
		if f != FaultNone {
			return end, f
		}
		if i = skipSpace(src, end); i >= len(src) {
			return i, FaultTruncated
		}
		switch src[i] {
		case ',':
			i = skipSpace(src, i+1)
		case '}':
			return i + 1, FaultNone
		default:
			return i, FaultSyntax
		}
	}
}

// topMember reads the last of the top-level members.
func (s *scanner) topMember(i int, key plainKey, m *Member) (int, Fault) {
	i, f := s.restOfKey(i, key, m)
	if f != FaultNone {
		return i, f
	}
	if m.Field != FieldNone {
		dst := s.dst
		if dst.last[m.Field] != 0 {
			if s.unique.Has(m.Field) {
				dst.FaultField = m.Field
				return int(m.Key.Start), FaultDuplicate
			}
			dst.Repeated = dst.Repeated.With(m.Field)
		}
		dst.last[m.Field] = uint16(len(dst.Members))
		s.seen = s.seen.With(m.Field)
		if m.Field == s.wanted {
			return s.wantedValue(i, m)
		}
	}
	return s.value(i, 1, m)
}

// wantedValue reads the value of stream_options or sampling_params and records
// the objects in it.
func (s *scanner) wantedValue(i int, m *Member) (int, Fault) {
	generate := m.Field == FieldSamplingParams
	if i < len(s.src) {
		switch s.src[i] {
		case '{':
			m.Kind = KindObject
			if end := s.usageOption(i, m.Field); end != 0 { // Fast path
				m.Val = Span{uint32(i), uint32(end)}
				return end, FaultNone
			}
			end, f := s.innerObject(i, 2, m.Field)
			m.Val = Span{uint32(i), uint32(end)}
			return end, f
		case '[':
			if generate {
				m.Kind = KindArray
				end, f := s.innerList(i+1, m.Field)
				m.Val = Span{uint32(i), uint32(end)}
				return end, f
			}
		}
	}
	end, f := s.value(i, 1, m)
	if generate && m.Kind != KindNull {
		s.dst.OddSampling = true
	}
	return end, f
}

// usageOption is innerObject for the one that nearly all clients of streams send. It
// returns 0 for any other.
func (s *scanner) usageOption(i int, of Field) int {
	const option = `{"include_usage":true}`
	src, dst := s.src, s.dst
	if len(src)-i < len(option) || string(src[i:i+16]) != option[:16] || string(src[i+16:i+len(option)]) != option[16:] || s.wants(FieldIncludeUsage) ||
		len(dst.Inner) >= MaxInner || len(dst.Objects) >= MaxObjects {
		return 0
	}
	start, end, first := uint32(i), uint32(i+len(option)), uint32(len(dst.Inner))
	dst.Inner = append(dst.Inner, Member{
		Key: Span{start + 1, end - uint32(len(`:true}`))}, Val: Span{end - uint32(len(`true}`)), end - 1},
		Field: FieldIncludeUsage, Kind: KindTrue,
	})
	dst.Objects = append(dst.Objects, Object{Span: Span{start, end}, First: first, Last: first + 1, Of: of})
	return int(end)
}

// innerList reads the elements of a list of sampling_params and its closing
// bracket.
func (s *scanner) innerList(i int, of Field) (int, Fault) {
	i = skipSpace(s.src, i)
	if i < len(s.src) && s.src[i] == ']' {
		return i + 1, FaultNone
	}
	for {
		var f Fault
		if i < len(s.src) && s.src[i] == '{' {
			i, f = s.innerObject(i, 3, of)
		} else {
			var odd Member
			i, f = s.value(i, 2, &odd)
			s.dst.OddSampling = true
		}
		if f != FaultNone {
			return i, f
		}
		i = skipSpace(s.src, i)
		if i >= len(s.src) {
			return i, FaultTruncated
		}
		switch s.src[i] {
		case ',':
			i = skipSpace(s.src, i+1)
		case ']':
			return i + 1, FaultNone
		default:
			return i, FaultSyntax
		}
	}
}

// innerObject reads and records the object at i, which is the depth-th open
// container.
func (s *scanner) innerObject(i, depth int, of Field) (int, Fault) {
	dst := s.dst
	if len(dst.Objects) == MaxObjects {
		return i, FaultMembers
	}
	o := Object{Of: of, First: uint32(len(dst.Inner))}
	start := i
	var seen FieldSet
	i = skipSpace(s.src, i+1)
	if i < len(s.src) && s.src[i] == '}' {
		i++
	} else {
		var f Fault
		for more := true; more; {
			var key plainKey
			if hasVectors && len(dst.Inner) > int(o.First) { // Fast path
				i, key, seen = s.plainMembers(i, &dst.Inner, min(MaxInner, int(o.First)+MaxMembers), seen)
			}
			if i, f = s.innerMember(i, depth, key, &o, &seen); f != FaultNone {
				return i, f
			}
			i = skipSpace(s.src, i)
			if i >= len(s.src) {
				return i, FaultTruncated
			}
			switch s.src[i] {
			case ',':
				i = skipSpace(s.src, i+1)
			case '}':
				i++
				more = false
			default:
				return i, FaultSyntax
			}
		}
	}
	o.Span = Span{uint32(start), uint32(i)}
	o.Last = uint32(len(dst.Inner))
	dst.Objects = append(dst.Objects, o)
	return i, FaultNone
}

// restOfKey is key where plainMembers has begun to read it, or not.
func (s *scanner) restOfKey(i int, key plainKey, m *Member) (int, Fault) {
	if key.end == 0 {
		return s.key(i, m)
	}
	m.Key = Span{uint32(i), key.end + 1}
	m.Field = key.field
	return skipSpace(s.src, int(key.end)+2), FaultNone
}

// innerMember reads one member of o; seen are the fields read before it.
func (s *scanner) innerMember(i, depth int, key plainKey, o *Object, seen *FieldSet) (int, Fault) {
	dst := s.dst
	n := len(dst.Inner)
	if n == MaxInner || n-int(o.First) == MaxMembers {
		return i, FaultMembers
	}
	dst.Inner = append(dst.Inner, Member{})
	m := &dst.Inner[n]
	i, f := s.restOfKey(i, key, m)
	if f != FaultNone {
		return i, f
	}
	if m.Field != FieldNone {
		if seen.Has(m.Field) {
			if o.Of == FieldSamplingParams && routing.Has(m.Field) {
				dst.FaultField = m.Field
				return int(m.Key.Start), FaultDuplicate
			}
			o.Repeated = o.Repeated.With(m.Field)
		}
		*seen = seen.With(m.Field)
	}
	return s.value(i, depth, m)
}

// key reads a key, its colon and the white space around it.
func (s *scanner) key(i int, m *Member) (int, Fault) {
	src := s.src
	if i >= len(src) {
		return i, FaultTruncated
	}
	if src[i] != '"' {
		return i, FaultSyntax
	}
	end := shortString(src, i+1)
	if end != 0 { // Fast path
		m.Field = fieldByName(src[i+1 : end-1])
	} else {
		var f Fault
		if end, f = skipString(src, i+1); f != FaultNone {
			return end, f
		}
		m.Escaped = bytes.IndexByte(src[i:end], '\\') >= 0
		m.Field = fieldOf(src[i:end], m.Escaped)
	}
	m.Key = Span{uint32(i), uint32(end)}
	i = skipSpace(src, end)
	if i >= len(src) {
		return i, FaultTruncated
	}
	if src[i] != ':' {
		return i, FaultSyntax
	}
	return skipSpace(src, i+1), FaultNone
}

// value reads the value of m, with depth containers open around it.
func (s *scanner) value(i, depth int, m *Member) (int, Fault) {
	src := s.src
	if i >= len(src) {
		return i, FaultTruncated
	}
	var end int
	var f Fault
	switch c := src[i]; c {
	case '"':
		m.Kind = KindString
		if end = shortString(src, i+1); end == 0 {
			end, f = skipString(src, i+1)
		}
	case '{', '[':
		m.Kind = KindArray
		if c == '{' {
			m.Kind = KindObject
		}
		end, f = skipNested(src, i, depth, s.tmp)
	case 't':
		m.Kind = KindTrue
		end, f = skipWord(src, i, "true")
	case 'f':
		m.Kind = KindFalse
		end, f = skipWord(src, i, "false")
	case 'n':
		m.Kind = KindNull
		end, f = skipWord(src, i, "null")
	default:
		m.Kind = KindNumber
		x, after, ok := shortNumber(src, i)
		if ok { // Fast path
			m.Val = Span{uint32(i), uint32(after)}
			if s.wants(m.Field) {
				m.Num, m.State = x, Number
			}
			return after, FaultNone
		}
		end, f = skipNumber(src, i)
	}
	if f != FaultNone {
		return end, f
	}
	m.Val = Span{uint32(i), uint32(end)}
	if s.wants(m.Field) {
		m.Num, m.State = ReadNumber(src[i:end], m.Kind)
	}
	return end, FaultNone
}

// wants reports whether the number in a field is wanted.
func (s *scanner) wants(f Field) bool { return s.numbers>>(f&63)&1 != 0 }

// skipWord reads the literal word at i.
func skipWord(src []byte, i int, word string) (int, Fault) {
	if len(src)-i < len(word) {
		return i, FaultSyntax
	}
	if string(src[i:i+len(word)]) != word {
		return i, FaultSyntax
	}
	return i + len(word), FaultNone
}

// skipSpace returns the offset of the first byte from i on that is not JSON
// white space.
func skipSpace(src []byte, i int) int {
	// Fast path: NOTE: kept simple to keep it inlinable.
	if i < len(src) && src[i] > ' ' {
		return i
	}
	return skipSpaceSlow(src, i)
}

func skipSpaceSlow(src []byte, i int) int {
	for i < len(src) && (src[i] == ' ' || src[i] == '\n' || src[i] == '\r' || src[i] == '\t') {
		i++
	}
	return i
}
