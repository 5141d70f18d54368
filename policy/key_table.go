package policy

import (
	"math/bits"

	"sluice/probe"
)

// keyTable finds the value of a key among a few, without an allocation: the keys
// of a config or of an API. It is immutable once it is built and safe for
// concurrent use. The zero value holds no keys.
type keyTable struct {
	slots   []keySlot // a power of two of them, at most a quarter taken
	lengths uint64    // the lengths of the keys, a bit each, modulo 64
}

type keySlot struct {
	key   string
	value int // 1 + the value, 0: free
}

// maxKey bounds the keys that a keyTable holds, in bytes.
const maxKey = 128

// newKeyTable returns the table that maps each key to its index in keys, or to
// that of its first copy. No key is longer than maxKey.
func newKeyTable(keys []string) keyTable {
	if len(keys) == 0 {
		return keyTable{}
	}
	t := keyTable{slots: make([]keySlot, 4<<bits.Len(uint(len(keys))))}
	for i, key := range keys {
		if len(key) > maxKey {
			panic("BUG: a key is too long for a table")
		}
		slot := t.slot([]byte(key))
		if slot.value == 0 {
			*slot = keySlot{key, i + 1}
		}
		t.lengths |= 1 << (len(key) & 63)
	}
	return t
}

// find returns the value of key, or -1.
func (t *keyTable) find(key []byte) int {
	if !t.hasLength(len(key)) { // Fast path
		return -1
	}
	return t.slot(key).value - 1
}

// hasLength reports false if no key has n bytes.
func (t *keyTable) hasLength(n int) bool { return t.lengths>>(n&63)&1 != 0 }

// slot returns the slot of key, or the free one where it would be. A client that
// sends keys of one hash makes it look at the taken slots in a row, no more.
func (t *keyTable) slot(key []byte) *keySlot {
	mask := uint32(len(t.slots) - 1)
	for i := hashKey(key) & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.value == 0 || s.key == string(key) {
			return s
		}
	}
}

// hashKey mixes the length and three bytes of key, which tell the keys of the
// APIs apart well enough.
func hashKey(key []byte) uint32 {
	n := len(key)
	if n == 0 {
		return 0
	}
	h := uint32(n)*0x9E3779B1 ^ uint32(key[0])*0x85EBCA77 ^ uint32(key[n>>1])*0xC2B2AE3D ^ uint32(key[n-1])*0x27D4EB2F
	return h ^ h>>15
}

// findMember returns the value of the key of m after un-escaping, or -1.
func (t *keyTable) findMember(src []byte, m *probe.Member) int {
	raw := m.Key.Of(src)
	if m.Escaped {
		return t.findEscaped(raw)
	}
	return t.find(raw[1 : len(raw)-1])
}

// findEscaped is findMember for a key, with its quotes, that holds escapes.
func (t *keyTable) findEscaped(raw []byte) int {
	var buf [6*maxKey + 2]byte
	if len(raw) > len(buf) {
		return -1
	}
	return t.find(probe.AppendUnquoted(buf[:0], raw))
}
