//go:build goexperiment.simd && amd64

package probe

import "math/bits"

// plainRoom is what plainMembers looks at at once: a block, and what may be read
// from its last byte on.
const plainRoom = blockSize + 32

// plainMembers reads members from i on into list, as long as they are what most
// are: a plain key, a short number, a literal or a plain string, all within 64
// bytes, without white space and with another member behind. It leaves members
// beyond the limit, and fields that are in seen or were read since.
//
// It returns where the first member begins that it has not read, with what it
// knows of its key, 0 if nothing, and seen with the fields that it read.
//
// NOTE: one flat function. Where a member begins and ends comes from the quotes of
// a block alone, so that no member waits for the one before it to be read.
func (s *scanner) plainMembers(i int, list *[]Member, limit int, seen FieldSet) (int, plainKey, FieldSet) {
	src := s.src
	for {
		if len(src)-i < plainRoom {
			return i, plainKey{}, seen
		}
		base, at := i, uint(0)
		b := (*[plainRoom]byte)(src[i:])
		quotes := plainQuotes(b) // from at on
		if quotes&1 == 0 {
			return i, plainKey{}, seen
		}
		for {
			keyEnd := quotes & (quotes - 1)
			next := keyEnd & (keyEnd - 1)
			if keyEnd == 0 {
				break
			}
			key := uint(bits.TrailingZeros64(keyEnd)) & 63
			if b[key+1] != ':' {
				return i, plainKey{}, seen
			}
			field := plainField(b, at+1, key-at-1)
			val, str := key+2, b[key+2] == '"'
			strEnd := uint64(0)
			if str {
				strEnd = next & (next - 1)
				next = strEnd & (strEnd - 1)
			}
			after := uint(bits.TrailingZeros64(next)) & 63
			if next == 0 || b[(after-1)&63] != ',' || seen.Has(field&63) || len(*list) >= limit {
				if next == 0 && at > 0 {
					break
				}
				return i, plainKey{uint32(base) + uint32(key), field}, seen
			}
			wanted := s.wants(field)
			kind, state, x := KindNumber, Absent, 0.0
			switch c := b[val]; c {
			case '"':
				if uint(bits.TrailingZeros64(strEnd)) != after-2 || wanted {
					return i, plainKey{uint32(base) + uint32(key), field}, seen
				}
				kind = KindString
			case 't', 'f', 'n':
				if kind = plainWord(b, val, after-1-val); kind == KindNone || wanted && kind != KindNull {
					return i, plainKey{uint32(base) + uint32(key), field}, seen
				}
			default:
				text, n := val, after-1-val
				if c == '-' {
					text, n = val+1, n-1
				}
				if n-1 > 7 {
					return i, plainKey{uint32(base) + uint32(key), field}, seen
				}
				if n == 1 && b[text]-'0' <= 9 {
					x = float64(b[text] - '0')
				} else {
					var ok bool
					if x, ok = eightDigits(load64(b[text:])^lowBits*'0', int(n)); !ok {
						return i, plainKey{uint32(base) + uint32(key), field}, seen
					}
				}
				if c == '-' {
					x = -x
				}
				if state = Number; !wanted {
					x, state = 0, Absent
				}
			}
			// NOTE: not appended as a whole, which would copy it from where it was just
			// put together in parts; the processor waits for these.
			m := another(list)
			m.Key = Span{uint32(i), uint32(base) + uint32(key) + 1}
			m.Val = Span{uint32(base) + uint32(val), uint32(base) + uint32(after) - 1}
			m.Num = x
			m.Field, m.Kind, m.State, m.Escaped = field, kind, state, false
			seen = seen.With(field) &^ 1
			at, quotes = after, next
			i = base + int(at)
		}
		if at == 0 {
			return i, plainKey{}, seen
		}
	}
}

// A plainKey is what plainMembers knows of the key of a member that it has not read:
// the offset of the closing quote, behind which a colon stands, and the field.
type plainKey struct {
	end   uint32
	field Field
}

// another returns the next member of list, which holds what it held before.
func another(list *[]Member) *Member {
	n := len(*list)
	if n < cap(*list) { // Fast path
		*list = (*list)[:n+1]
	} else {
		*list = append(*list, Member{})
	}
	return &(*list)[n]
}

// plainWord returns what the literal of n bytes at i is, KindNone if it is none.
func plainWord(b *[plainRoom]byte, i, n uint) Kind {
	switch string(b[i:][:n]) {
	case "true":
		return KindTrue
	case "false":
		return KindFalse
	case "null":
		return KindNull
	}
	return KindNone
}
