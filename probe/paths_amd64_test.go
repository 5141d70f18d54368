//go:build goexperiment.simd && amd64

package probe

// onEachPath calls f with every vector path of the machine.
func onEachPath(f func()) {
	f()
	if hasWide {
		hasWide = false
		f()
		hasWide = true
	}
}
