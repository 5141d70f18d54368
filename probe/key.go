package probe

import "unicode/utf8"

// fieldOf returns the known field that a key, given with its quotes, names.
func fieldOf(raw []byte, escaped bool) Field {
	key := raw[1 : len(raw)-1]
	if !escaped {
		return fieldByName(key)
	}
	return escapedField(key)
}

// escapedField is fieldOf for a key that holds escapes.
func escapedField(key []byte) Field {
	var buf [longestField + utf8.UTFMax]byte
	n := 0
	for len(key) > 0 {
		r, size := nextRune(key)
		key = key[size:]
		n += utf8.EncodeRune(buf[n:], r)
		if n > longestField {
			return FieldNone
		}
	}
	return fieldByName(buf[:n])
}

// longestField is the length of the longest known field's name.
const longestField = len("max_completion_tokens")

// fieldByName returns the known field of that name.
func fieldByName(name []byte) Field {
	n := len(name)
	if n == 0 || n > longestField {
		return FieldNone
	}
	f := fieldTable[fieldHash(uint8(n), name[0], name[n-1])]
	if string(name) != fieldNames[f] {
		return FieldNone
	}
	return f
}

// fieldHash tells all known fields apart by their length, first and last byte.
func fieldHash(n, first, last byte) byte { return (first + last + 5*n) & 63 }

// fieldTable holds the field of each fieldHash.
var fieldTable = func() (t [64]Field) {
	for f := FieldNone + 1; f < NumFields; f++ {
		name := f.String()
		at := &t[fieldHash(byte(len(name)), name[0], name[len(name)-1])]
		if *at != FieldNone {
			panic("BUG: fieldHash does not tell the fields apart")
		}
		*at = f
	}
	return t
}()

// EqualKey reports whether the JSON string raw, given with its quotes, reads as
// name, byte by byte after un-escaping. Case is not folded. A lone surrogate
// reads as U+FFFD. raw must come from a Scan without a fault.
func EqualKey(raw []byte, name string) bool {
	if len(raw) < 2 {
		return false
	}
	key := raw[1 : len(raw)-1]
	for len(key) > 0 && len(name) > 0 {
		if key[0] != '\\' {
			if key[0] != name[0] {
				return false
			}
			key, name = key[1:], name[1:]
			continue
		}
		r, size := nextRune(key)
		var buf [utf8.UTFMax]byte
		n := utf8.EncodeRune(buf[:], r)
		if len(name) < n || name[:n] != string(buf[:n]) {
			return false
		}
		key, name = key[size:], name[n:]
	}
	return len(key) == 0 && len(name) == 0
}

// AppendUnquoted appends what the JSON string raw, given with its quotes, reads
// as to dst and returns the extended slice. A lone surrogate becomes U+FFFD.
// raw must come from a Scan without a fault.
func AppendUnquoted(dst, raw []byte) []byte {
	if len(raw) < 2 {
		return dst
	}
	text := raw[1 : len(raw)-1]
	for len(text) > 0 {
		if n := plainEnd(text, 0); n > 0 {
			dst = append(dst, text[:n]...)
			text = text[n:]
			continue
		}
		if text[0] != '\\' {
			dst = append(dst, text[0])
			text = text[1:]
			continue
		}
		r, size := nextRune(text)
		dst = utf8.AppendRune(dst, r)
		text = text[size:]
	}
	return dst
}

// nextRune reads one character, escaped or not, from the start of b, which is
// not empty, and returns it with its length in b. A surrogate pair is one
// character; a lone surrogate and whatever is no escape read as U+FFFD.
func nextRune(b []byte) (rune, int) {
	if b[0] < utf8.RuneSelf && b[0] != '\\' {
		return rune(b[0]), 1
	}
	if b[0] != '\\' {
		return utf8.DecodeRune(b)
	}
	switch escapeLen(b) {
	case 2:
		return rune(shortEscape[b[1]]), 2
	case 6:
		r := hexRune(b)
		if r < 0xD800 || r > 0xDFFF {
			return r, 6
		}
		if r < 0xDC00 && len(b) >= 12 && b[6] == '\\' && escapeLen(b[6:]) == 6 {
			if low := hexRune(b[6:]); low >= 0xDC00 && low <= 0xDFFF {
				return 0x10000 + (r-0xD800)<<10 + (low - 0xDC00), 12
			}
		}
		return utf8.RuneError, 6
	}
	return utf8.RuneError, 1
}

// hexRune reads the escape \uXXXX at the start of b.
func hexRune(b []byte) rune {
	return rune(hexDigit[b[2]])<<12 | rune(hexDigit[b[3]])<<8 | rune(hexDigit[b[4]])<<4 | rune(hexDigit[b[5]])
}

var shortEscape = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}
