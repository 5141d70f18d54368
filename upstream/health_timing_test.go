package upstream

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// engineProcess makes the test binary serve a fleet, see TestEngineProcess.
const engineProcess = "UPSTREAM_TEST_ENGINES"

// TestEngineProcess is no test: it is a fleet of engines in a process of its
// own, so that what they cost is not counted as ours. It ends with its input.
func TestEngineProcess(t *testing.T) {
	var n int
	if _, err := fmt.Sscan(os.Getenv(engineProcess), &n); err != nil {
		return // not told to serve
	}
	var all sync.WaitGroup
	for i := range n {
		ln, err := net.Listen("tcp", fmt.Sprintf("127.1.%d.%d:0", i/250, 1+i%250))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = ln.Close() }()
		all.Go(func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				all.Go(func() {
					defer func() { _ = c.Close() }()
					in := bufio.NewReaderSize(c, 512)
					for {
						line, err := in.ReadString('\n')
						if err != nil {
							return
						}
						if line == "\r\n" {
							_, _ = io.WriteString(c, okAnswer)
						}
					}
				})
			}
		})
		fmt.Println("http://" + ln.Addr().String())
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0) // the connections end with the process
}

// BenchmarkProbes measures what probing a fleet costs: the share of a core, for
// as many seconds as there are iterations (-benchtime 20x).
func BenchmarkProbes(b *testing.B) {
	const n = 4096
	cmd := exec.Command(os.Args[0], "-test.run=^TestEngineProcess$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", engineProcess, n))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	}()
	spec := PoolSpec{Name: "fleet", Balance: LeastRequests, Health: Health{
		Path: "/health", Interval: 5 * time.Second, Timeout: 2 * time.Second, UnhealthyAfter: 3, HealthyAfter: 2,
	}}
	lines := bufio.NewScanner(stdout)
	for len(spec.Workers) < n && lines.Scan() {
		if strings.HasPrefix(lines.Text(), "http://") {
			spec.Workers = append(spec.Workers, WorkerSpec{URL: lines.Text()})
		}
	}
	if len(spec.Workers) < n {
		b.Fatalf("only %d engines", len(spec.Workers))
	}
	begin := time.Now()
	p, err := NewPool(spec)
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	b.ReportMetric(float64(time.Since(begin).Milliseconds()), "ms/pool")
	time.Sleep(2 * spec.Health.Interval) // until each was probed
	before, probes, start := processTime(b), probesOf(p), time.Now()
	b.ResetTimer()
	for range b.N {
		time.Sleep(time.Second)
	}
	b.StopTimer()
	spent, passed := processTime(b)-before, time.Since(start)
	b.ReportMetric(100*spent.Seconds()/passed.Seconds(), "%core")
	b.ReportMetric(float64(probesOf(p)-probes)/passed.Seconds(), "probes/s")
	if p.Usable() != n {
		b.Errorf("unexpected number of usable workers; got %d; want %d", p.Usable(), n)
	}
}

func probesOf(p *Pool) (n uint64) {
	for _, w := range p.Workers() {
		n += w.probes.Load()
	}
	return n
}

// processTime returns how long this process has computed.
func processTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkApply measures a reload of a fleet that changes nothing of its
// workers, and one that moves a hundred of them.
func BenchmarkApply(b *testing.B) {
	for _, balance := range []string{RoundRobin, PrefixAware} {
		b.Run(balance, func(b *testing.B) {
			p := newFleet(b, balance, 4096)
			spec := PoolSpec{Name: "fleet", Balance: balance, LoadFactor: 1.25, Prefix: Prefix{MaxBytes: 16 << 20, Block: 512}}
			for _, w := range p.Workers() {
				spec.Workers = append(spec.Workers, WorkerSpec{URL: w.URL()})
			}
			for b.Loop() {
				if err := p.Apply(spec); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
