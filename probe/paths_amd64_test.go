//go:build goexperiment.simd && amd64

package probe

import "testing"

// onEachPath calls f with every vector path of the machine.
func onEachPath(f func()) {
	f()
	if hasWide {
		hasWide = false
		f()
		hasWide = true
	}
}

// withoutVectors calls f with the portable path.
func withoutVectors(f func()) {
	defer func(vectors bool) { hasVectors = vectors }(hasVectors)
	hasVectors = false
	f()
}

// BenchmarkScanAVX2 is BenchmarkScan without registers of 64 bytes.
func BenchmarkScanAVX2(b *testing.B) {
	defer func(wide bool) { hasWide = wide }(hasWide)
	hasWide = false
	benchmarkScan(b, timedBodies())
	benchmarkScan(b, hostileBodies())
}
