package router

import (
	"fmt"
	"io"

	"github.com/VictoriaMetrics/metrics"

	"sluice/upstream"
)

// writeUpstream writes what the pool has counted of its workers, those that have
// left included.
func (p *pool) writeUpstream(w io.Writer) {
	name := p.up.Name()
	pool := fmt.Sprintf("{pool=%q}", name)
	for r, n := range p.up.RetriesBy() {
		metrics.WriteCounterUint64(w, fmt.Sprintf("sluice_retries_by_reason_total{pool=%q,reason=%q}", name, upstream.RetryReason(r)), n)
	}
	joined, left := p.up.MembershipChanges()
	metrics.WriteCounterUint64(w, "sluice_workers_joined_total"+pool, joined)
	metrics.WriteCounterUint64(w, "sluice_workers_left_total"+pool, left)
	for _, s := range p.up.Sources() {
		metrics.WriteCounterUint64(w, fmt.Sprintf("sluice_discovery_failures_total{pool=%q,source=%q}", name, s.Name), s.Failures)
	}
	c := p.up.Counters()
	for class, n := range c.Ends {
		metrics.WriteCounterUint64(w, fmt.Sprintf("sluice_exchanges_total{pool=%q,class=%q}", name, upstream.Class(class)), n)
	}
	metrics.WriteCounterUint64(w, "sluice_exchanges_resent_total"+pool, c.Resends)
	writeTimes(w, "sluice_upstream_connect_seconds", name, &c.Connect)
	writeTimes(w, "sluice_upstream_first_byte_seconds", name, &c.FirstByte)
}

// writeTimes writes a histogram as Prometheus has it, whose buckets hold those
// below them as well.
func writeTimes(w io.Writer, metric, pool string, t *upstream.Times) {
	sum := uint64(0)
	for i, bound := range upstream.TimeBounds() {
		sum += t.Buckets[i]
		metrics.WriteCounterUint64(w, fmt.Sprintf("%s_bucket{pool=%q,le=\"%g\"}", metric, pool, bound.Seconds()), sum)
	}
	labels := fmt.Sprintf("{pool=%q}", pool)
	metrics.WriteCounterUint64(w, fmt.Sprintf("%s_bucket{pool=%q,le=\"+Inf\"}", metric, pool), t.Count())
	metrics.WriteCounterFloat64(w, metric+"_sum"+labels, t.Sum.Seconds())
	metrics.WriteCounterUint64(w, metric+"_count"+labels, t.Count())
}

// classesOfWorker are the ends of exchanges that say how a worker fares; those of
// all workers of the pool tell the rest.
var classesOfWorker = [...]upstream.Class{
	upstream.ClassOK, upstream.ClassBusy, upstream.ClassServerError, upstream.ClassConnect,
	upstream.ClassClosed, upstream.ClassProtocol, upstream.ClassTimeout, upstream.ClassIncomplete,
}

// writeWorkerState writes the state of a worker and how its exchanges ended.
func writeWorkerState(w io.Writer, pool string, wk *upstream.Worker) {
	state, _ := wk.State()
	labels := fmt.Sprintf("pool=%q,worker=%q", pool, wk.URL())
	for s := range upstream.StateLeaving {
		metrics.WriteGaugeUint64(w, fmt.Sprintf("sluice_worker_state{%s,state=%q}", labels, s), uint64(number(s == state)))
	}
	c := wk.Counters()
	for _, class := range classesOfWorker {
		if n := c.Ends[class]; n > 0 || class == upstream.ClassOK {
			metrics.WriteCounterUint64(w, fmt.Sprintf("sluice_worker_exchanges_total{%s,class=%q}", labels, class), n)
		}
	}
}
