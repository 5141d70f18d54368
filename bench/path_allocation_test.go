//go:build !race

package bench

import "testing"

// The budgets of the whole path hold for small bodies and for large ones.
func TestAllocationsOfTheWholePath(t *testing.T) {
	for _, p := range paths {
		for _, size := range []int{1 << 10, 128 << 10} {
			addr := startPath(t, p)
			c := newCaller(t, addr, body(size))
			for range 200 { // pools and buffers fill
				c.call(t)
			}
			got := testing.AllocsPerRun(500, func() { c.call(t) })
			t.Logf("%s, %d bytes: %v allocations a request", p.name, size, got)
			if got > p.allocs {
				t.Errorf("%s, %d bytes: %v allocations a request; want at most %v", p.name, size, got, p.allocs)
			}
		}
	}
}
