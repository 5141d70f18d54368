package probe

import "unsafe"

// unsafeString returns the bytes of b as a string without a copy. The string is
// valid only as long as b is unchanged.
func unsafeString(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b))
}
