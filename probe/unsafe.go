package probe

import "unsafe"

// unsafeString returns the bytes of b as a string without a copy. The string is
// valid only as long as b is unchanged.
func unsafeString(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// unsafeBlock returns the 64 bytes of b at i, which must lie within b; nothing
// checks that they do.
func unsafeBlock(b []byte, i int) *[blockSize]byte {
	return (*[blockSize]byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), i))
}
