package upstream

import (
	"fmt"
	"testing"
)

// BenchmarkPick measures the choice of a worker, and its release, on a fleet
// whose workers are all busy.
func BenchmarkPick(b *testing.B) {
	for _, balance := range Balances {
		for _, n := range []int{4, 64, 1024, 4096} {
			b.Run(fmt.Sprintf("%s/%d", balance, n), func(b *testing.B) {
				p := newFleet(b, balance, n)
				for i, w := range p.Workers() {
					w.load.Store(int64(10 + i%7))
				}
				b.ReportAllocs()
				for b.Loop() {
					p.Pick().Release()
				}
			})
			b.Run(fmt.Sprintf("%s/%d/parallel", balance, n), func(b *testing.B) {
				p := newFleet(b, balance, n)
				for i, w := range p.Workers() {
					w.load.Store(int64(10 + i%7))
				}
				b.ReportAllocs()
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						p.Pick().Release()
					}
				})
			})
		}
	}
}

func newFleet(tb testing.TB, balance string, n int) *Pool {
	tb.Helper()
	spec := PoolSpec{Name: "fleet", Balance: balance}
	for i := range n {
		spec.Workers = append(spec.Workers, WorkerSpec{URL: fmt.Sprintf("http://10.0.%d.%d:30000", i/256, i%256)})
	}
	p, err := NewPool(spec)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	return p
}
