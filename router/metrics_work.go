package router

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

// workBounds are the upper bounds, inclusive, of the times that the router itself
// needs for a request, and of those between two pieces of a stream.
var workBounds = [...]time.Duration{
	5 * time.Microsecond, 10 * time.Microsecond, 25 * time.Microsecond, 50 * time.Microsecond, 100 * time.Microsecond,
	250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, time.Second, 5 * time.Second,
}

// work is the router's own share of all requests. The histograms of the metrics
// package have a lock each, which all requests would meet at.
type work struct {
	policy   spent // scan, decision, rules and splice
	overhead spent // from the end of a request to its being sent, without the queue
	gaps     spent // between two reads of an event stream after its first event
}

func (wk *work) write(w io.Writer) {
	wk.policy.write(w, "sluice_policy_duration_seconds")
	wk.overhead.write(w, "sluice_router_overhead_seconds")
	wk.gaps.write(w, "sluice_inter_token_seconds")
}

// spent is a histogram of durations that takes no lock. The zero value is ready.
type spent struct {
	buckets [len(workBounds) + 1]atomic.Uint64 // the last one is above all bounds
	sum     atomic.Int64
}

func (s *spent) observe(d time.Duration) {
	i := 0
	for i < len(workBounds) && d > workBounds[i] {
		i++
	}
	s.buckets[i].Add(1)
	s.sum.Add(int64(d))
}

// write writes the histogram as Prometheus has it, whose buckets hold those below
// them as well.
func (s *spent) write(w io.Writer, metric string) {
	n := uint64(0)
	for i := range s.buckets {
		n += s.buckets[i].Load()
		bound := "+Inf"
		if i < len(workBounds) {
			bound = fmt.Sprintf("%g", workBounds[i].Seconds())
		}
		metrics.WriteCounterUint64(w, fmt.Sprintf("%s_bucket{le=%q}", metric, bound), n)
	}
	metrics.WriteCounterFloat64(w, metric+"_sum", time.Duration(s.sum.Load()).Seconds())
	metrics.WriteCounterUint64(w, metric+"_count", n)
}
