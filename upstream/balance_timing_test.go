package upstream

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkPick measures the choice of a worker for one of many sessions, and
// its release, on a fleet whose workers are all busy and, in "down", one in a
// hundred of them is not usable.
func BenchmarkPick(b *testing.B) {
	for _, balance := range Balances {
		for _, n := range []int{4, 64, 1024, 4096} {
			b.Run(fmt.Sprintf("%s/%d", balance, n), func(b *testing.B) { benchmarkPick(b, newBusyFleet(b, balance, n, 1)) })
		}
		b.Run(balance+"/4096/weighted", func(b *testing.B) { benchmarkPick(b, newBusyFleet(b, balance, 4096, 7)) })
		b.Run(balance+"/4096/down", func(b *testing.B) {
			p := newBusyFleet(b, balance, 4096, 1)
			for i := 0; i < 4096; i += 100 {
				p.setHealthy(b.Context(), p.Workers()[i], false)
			}
			benchmarkPick(b, p)
		})
		b.Run(balance+"/4096/parallel", func(b *testing.B) {
			p := newBusyFleet(b, balance, 4096, 1)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				k := Key{Session: rand.Uint64()}
				for pb.Next() {
					k.Session = mix(k.Session, wy1)
					w, _ := p.Acquire(&k)
					w.Release()
				}
			})
		})
	}
}

func benchmarkPick(b *testing.B, p *Pool) {
	k := Key{Session: 1}
	b.ReportAllocs()
	for b.Loop() {
		k.Session = mix(k.Session, wy1)
		w, _ := p.Acquire(&k)
		w.Release()
	}
}

// BenchmarkPrefix measures what prefix_aware adds to a request of 32 KiB: a turn
// of a conversation that is known up to its last 2 KiB, a new conversation, and
// one of 1 MiB. The memory holds far more than the caches of the processor.
func BenchmarkPrefix(b *testing.B) {
	for _, v := range []struct {
		name         string
		size, before int
	}{{"turn", 32 << 10, 30 << 10}, {"new", 32 << 10, 0}, {"new/1MiB", 1 << 20, 0}} {
		b.Run(v.name, func(b *testing.B) {
			p := newBusyFleet(b, PrefixAware, 64, 1)
			for i := range 20_000 { // fill the memory
				p.conf.Load().prefixes.served(p.Affinity().AppendBlocks(nil, uint64(i)<<32, zeros[:32<<10], false), p.Workers()[i%64])
			}
			const conversations = 4096
			keys := make([]Key, conversations)
			n := b.N
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < n; i++ {
				if i%conversations == 0 {
					b.StopTimer()
					for j := range keys {
						seed := rand.Uint64()
						keys[j].Blocks = p.Affinity().AppendBlocks(keys[j].Blocks[:0], seed, zeros[:v.before], false)
						p.conf.Load().prefixes.served(keys[j].Blocks, p.Workers()[j%64])
						keys[j].Blocks = p.Affinity().AppendBlocks(keys[j].Blocks[:0], seed, zeros[:v.size], false)
					}
					b.StartTimer()
				}
				w, _ := p.Acquire(&keys[i%conversations])
				w.Release()
			}
		})
	}
}

var zeros [1 << 20]byte

func BenchmarkAppendBlocks(b *testing.B) {
	a := Affinity{Block: 256}
	var blocks []uint64
	b.SetBytes(32 << 10)
	b.ReportAllocs()
	for b.Loop() {
		blocks = a.AppendBlocks(blocks[:0], 1, zeros[:32<<10], false)
	}
}

// BenchmarkNewRoster measures what a worker that comes or goes costs a fleet.
func BenchmarkNewRoster(b *testing.B) {
	for _, balance := range Balances {
		b.Run(balance, func(b *testing.B) {
			p := newBusyFleet(b, balance, 4096, 7)
			for b.Loop() {
				p.arrange.roster(p.Workers())
			}
		})
	}
}

func BenchmarkNewRing(b *testing.B) {
	p := newFleet(b, Random, 4096)
	for b.Loop() {
		newRing(p.Workers())
	}
}

// newBusyFleet returns a pool whose workers have about ten requests for each
// unit of weight, and weights from 1 to most.
func newBusyFleet(tb testing.TB, balance string, n, most int) *Pool {
	tb.Helper()
	p := newPool(tb, balance, weights(n, func(i int) int { return 1 + i%most }))
	for i, w := range p.Workers() {
		load := int64((10 + i%3) * w.weight)
		w.load.Store(load)
		p.inFlight.Add(load)
	}
	return p
}

func weights(n int, of func(i int) int) []int {
	w := make([]int, n)
	for i := range w {
		w[i] = of(i)
	}
	return w
}

func newFleet(tb testing.TB, balance string, n int) *Pool {
	tb.Helper()
	return newPool(tb, balance, weights(n, func(int) int { return 1 }))
}

// newPool returns a pool of workers with the given weights.
func newPool(tb testing.TB, balance string, weights []int) *Pool {
	tb.Helper()
	spec := PoolSpec{Name: "fleet", Balance: balance, LoadFactor: 1.25, Prefix: Prefix{MaxBytes: 16 << 20, Block: 512}}
	for i, weight := range weights {
		spec.Workers = append(spec.Workers, WorkerSpec{URL: fmt.Sprintf("http://10.0.%d.%d:30000", i/256, i%256), Weight: weight})
	}
	p, err := NewPool(spec)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	return p
}
