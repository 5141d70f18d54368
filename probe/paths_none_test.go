//go:build !(goexperiment.simd && amd64)

package probe

// onEachPath calls f with every vector path of the machine: there is none.
func onEachPath(f func()) { f() }

// withoutVectors calls f with the portable path: there is no other.
func withoutVectors(f func()) { f() }
