package bench

import (
	"runtime"
	"strconv"
	"testing"
)

// BenchmarkPath is one request through the whole router, beside the same
// request straight to the worker. Client, router and worker share the process,
// so that the difference between the two is what the router adds.
func BenchmarkPath(b *testing.B) {
	for _, p := range paths {
		for _, size := range []int{1 << 10, 16 << 10, 128 << 10} {
			name := p.name + "/" + strconv.Itoa(size>>10) + "KiB/"
			b.Run(name+"direct", func(b *testing.B) {
				run(b, newCaller(b, startWorker(b, p.answer), body(size)), size)
			})
			b.Run(name+"router", func(b *testing.B) {
				run(b, newCaller(b, startPath(b, p), body(size)), size)
			})
		}
	}
}

// clients is the number of clients at once in BenchmarkPathParallel.
const clients = 64

func BenchmarkPathParallel(b *testing.B) {
	for _, p := range paths {
		f := func(name, addr string) {
			callers := make(chan *caller, clients)
			for range clients {
				callers <- newCaller(b, addr, body(1<<10))
			}
			b.Run(p.name+"/1KiB/"+name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetParallelism(clients / runtime.GOMAXPROCS(0))
				b.RunParallel(func(pb *testing.PB) {
					c := <-callers
					defer func() { callers <- c }()
					for pb.Next() {
						c.call(b)
					}
				})
			})
		}
		f("direct", startWorker(b, p.answer))
		f("router", startPath(b, p))
	}
}

func run(b *testing.B, c *caller, size int) {
	b.ReportAllocs()
	b.SetBytes(int64(size))
	for b.Loop() {
		c.call(b)
	}
}
