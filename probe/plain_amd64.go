//go:build goexperiment.simd && amd64

package probe

import "math/bits"

// plainMembers reads top-level members from i on as long as they are what most
// are: a plain key, a short number, a literal or a plain string, all within 64
// bytes, known once, without white space and with another member behind. It
// returns where the first member begins that it has not read.
//
// NOTE: one flat function. Where a member begins and ends comes from the quotes of
// a block alone, so that no member waits for the one before it to be read.
func (s *scanner) plainMembers(i int) int {
	src, dst := s.src, s.dst
	quotes, base := uint64(0), i // the quotes from i on, counted from base
	for len(dst.Members) < MaxMembers {
		keyEnd := quotes & (quotes - 1)
		next := keyEnd & (keyEnd - 1)
		key := base + bits.TrailingZeros64(keyEnd)
		val := key + 2
		str := next != 0 && src[val] == '"'
		strEnd := uint64(0)
		if str {
			strEnd = next & (next - 1)
			next = strEnd & (strEnd - 1)
		}
		if next == 0 {
			if base == i && quotes != 0 || len(src)-i < blockSize+16 {
				return i
			}
			if quotes, base = plainQuotes(src, i), i; quotes&1 == 0 {
				return i
			}
			continue
		}
		after := base + bits.TrailingZeros64(next)
		if src[key+1] != ':' || src[after-1] != ',' {
			return i
		}
		field := fieldByName(src[i+1 : key])
		wanted := s.wants(field)
		if field == s.wanted || dst.last[field] != 0 || str && wanted {
			return i
		}
		var kind Kind
		x, state := 0.0, Absent
		switch c := src[val]; c {
		case '"':
			if base+bits.TrailingZeros64(strEnd) != after-2 {
				return i
			}
			kind = KindString
		case 't':
			if string(src[val:after-1]) != "true" || wanted {
				return i
			}
			kind = KindTrue
		case 'f':
			if string(src[val:after-1]) != "false" || wanted {
				return i
			}
			kind = KindFalse
		case 'n':
			if string(src[val:after-1]) != "null" {
				return i
			}
			kind = KindNull
		default:
			text, n := val, after-1-val
			if c == '-' {
				text, n = val+1, n-1
			}
			if n < 1 || n > 8 {
				return i
			}
			kind = KindNumber
			if n == 1 && src[text]-'0' <= 9 {
				x = float64(src[text] - '0')
			} else {
				var ok bool
				if x, ok = eightDigits(load64(src[text:])^lowBits*'0', n); !ok {
					return i
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
		dst.Members = append(dst.Members, Member{})
		m := &dst.Members[len(dst.Members)-1]
		m.Key = Span{uint32(i), uint32(key + 1)}
		m.Val = Span{uint32(val), uint32(after - 1)}
		m.Num, m.State, m.Field, m.Kind = x, state, field, kind
		if field != FieldNone {
			dst.last[field] = uint16(len(dst.Members))
		}
		i, quotes = after, next
	}
	return i
}
