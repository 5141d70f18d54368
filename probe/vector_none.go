//go:build !(goexperiment.simd && amd64)

package probe

// hasVectors reports that this build and machine have the vector path.
const hasVectors = false

type vectorScratch struct{}

func vectorString([]byte, int) (end int, escaped, ok bool) { return 0, false, false }

func vectorNested([]byte, int, int, *scratch) (end int, ok bool) { return 0, false }
