//go:build goexperiment.simd && amd64

package probe

import "unsafe"

// unsafeBlock returns the 64 bytes of b at i, which must lie within b; nothing
// checks that they do.
func unsafeBlock(b []byte, i int) *[blockSize]byte {
	return (*[blockSize]byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), i))
}
