//go:build !(goexperiment.simd && amd64)

package probe

// hasVectors reports that this build and machine have the vector path.
const hasVectors = false

// A scratch is what skipNested needs while it runs. It need not be cleared.
type scratch struct {
	kinds [MaxDepth]byte // of the open containers: their opening brackets
}

func vectorString([]byte, int) (end int, ok bool) { return 0, false }

func vectorNested([]byte, int, int, *scratch) (end int, ok bool) { return 0, false }

func vectorLine([]byte) (n int, tells bool) { return 0, false }

func shortString(src []byte, i int) int { return portableShort(src, i) }

type plainKey struct {
	end   uint32
	field Field
}

func (s *scanner) plainMembers(i int, _ *[]Member, _ int, seen FieldSet) (int, plainKey, FieldSet) {
	return i, plainKey{}, seen
}

func cleanVectors() {}
