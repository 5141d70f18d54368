package router

import (
	"fmt"
	"io"
	"sync/atomic"

	"github.com/VictoriaMetrics/metrics"

	"sluice/policy"
	"sluice/probe"
	"sluice/upstream"
)

// Upper bounds of the histograms, in seconds: from a cached first token to the
// longest answer of a reasoning model.
var (
	ttftBuckets     = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}
	durationBuckets = []float64{.001, .005, .01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600}
)

// noPool is the pool label of what reached no pool.
const noPool = "none"

// metricSet holds the handles of all metrics. They are made when the
// configuration is compiled, so that a request only adds to them.
type metricSet struct {
	set      *metrics.Set
	inFlight atomic.Int64
	panics   *metrics.Counter
	none     [probe.NumSurfaces]*series // requests that reached no pool

	rejected, observed, injected, replaced [probe.NumFields]*metrics.Counter
}

func newMetricSet() *metricSet {
	m := &metricSet{set: metrics.NewSet()}
	m.set.NewGauge("sluice_requests_in_flight", func() float64 { return float64(m.inFlight.Load()) })
	m.panics = m.set.NewCounter("sluice_panics_total")
	for i := range m.none {
		m.none[i] = m.series(probe.Surface(i), noPool)
	}
	param := func(name string, f probe.Field) *metrics.Counter {
		return m.set.NewCounter(fmt.Sprintf("sluice_contract_%s_total{param=%q}", name, f))
	}
	for f := probe.FirstSampling; f <= probe.LastSampling; f++ {
		m.rejected[f] = param("rejected", f)
		m.observed[f] = param("observed", f)
		m.injected[f] = param("injected", f)
		m.replaced[f] = param("replaced", f)
	}
	m.rejected[probe.FieldSamplingParams] = param("rejected", probe.FieldSamplingParams)
	m.observed[probe.FieldSamplingParams] = param("observed", probe.FieldSamplingParams)
	return m
}

// contract counts what a contract said of one request.
func (m *metricSet) contract(v *policy.Verdict) {
	if v.Violated|v.Injected|v.Replaced == 0 {
		return
	}
	violated := &m.observed
	if v.Refused {
		violated = &m.rejected
	}
	for f := probe.FieldNone + 1; f < probe.NumFields; f++ {
		if v.Violated.Has(f) && violated[f] != nil {
			violated[f].Inc()
		}
		if v.Injected.Has(f) {
			m.injected[f].Inc()
		}
		if v.Replaced.Has(f) {
			m.replaced[f].Inc()
		}
	}
}

// export adds the metrics that read the router's state.
func (m *metricSet) export(r *Router) {
	m.set.NewGauge("sluice_draining", func() float64 { return number(r.draining.Load()) })
}

// number is a condition as a metric shows it.
func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// writeMetrics writes all metrics in Prometheus' text format.
func (r *Router) writeMetrics(w io.Writer) {
	r.metrics.set.WritePrometheus(w)
	metrics.WriteCounterUint64(w, "sluice_connections_refused_total", r.watcher.Refused())
	for _, p := range r.snap.Load().pools {
		pool := fmt.Sprintf("{pool=%q}", p.up.Name())
		metrics.WriteCounterUint64(w, "sluice_retries_total"+pool, p.up.Retries())
		metrics.WriteCounterUint64(w, "sluice_retry_budget_exhausted_total"+pool, p.up.Exhausted())
		metrics.WriteGaugeUint64(w, "sluice_workers_usable"+pool, uint64(p.up.Usable()))
		metrics.WriteGaugeUint64(w, "sluice_queue_length"+pool, uint64(p.up.Queued()))
		metrics.WriteCounterUint64(w, "sluice_queue_full_total"+pool, p.up.Full())
		metrics.WriteCounterUint64(w, "sluice_queue_timeouts_total"+pool, p.up.Late())
		if p.aborts {
			sent, failed, dropped := p.up.Aborts()
			metrics.WriteCounterUint64(w, "sluice_aborts_sent_total"+pool, sent)
			metrics.WriteCounterUint64(w, "sluice_aborts_failed_total"+pool, failed)
			metrics.WriteCounterUint64(w, "sluice_aborts_dropped_total"+pool, dropped)
		}
		for _, wk := range p.up.Workers() {
			open, idle := wk.Connections()
			labels := fmt.Sprintf("{pool=%q,worker=%q}", p.up.Name(), wk.URL())
			metrics.WriteGaugeUint64(w, "sluice_worker_requests_in_flight"+labels, uint64(max(wk.Load(), 0)))
			metrics.WriteGaugeUint64(w, "sluice_worker_connections"+labels, uint64(open))
			metrics.WriteGaugeUint64(w, "sluice_worker_connections_idle"+labels, uint64(idle))
			metrics.WriteGaugeUint64(w, "sluice_worker_connections_h2c"+labels, uint64(wk.Streams()))
			metrics.WriteCounterUint64(w, "sluice_worker_picks_total"+labels, wk.Picks())
			metrics.WriteCounterUint64(w, "sluice_worker_failures_total"+labels, wk.Failures())
			metrics.WriteGaugeUint64(w, "sluice_worker_healthy"+labels, uint64(number(wk.Healthy())))
			metrics.WriteGaugeUint64(w, "sluice_worker_breaker_open"+labels, uint64(number(p.up.Breaker(wk) != upstream.BreakerClosed)))
			metrics.WriteCounterUint64(w, "sluice_worker_breaker_changes_total"+labels, wk.BreakerTrips())
		}
	}
	metrics.WriteProcessMetrics(w)
}

// series are the metrics of one surface of one pool.
type series struct {
	set      *metrics.Set
	labels   string
	requests *metrics.Counter
	duration *metrics.PrometheusHistogram
	ttft     *metrics.PrometheusHistogram // nil where there are no tokens
	// Made at their first use: a pool answers with few of the codes there are.
	codes   [600]atomic.Pointer[metrics.Counter]
	streams [len(streamOutcomes)]atomic.Pointer[metrics.Counter]
}

var streamOutcomes = [...]outcome{
	outcomeOK, outcomeClientGone, outcomeUpstreamError,
	outcomeUpstreamBroken, outcomeUpstreamTimeout, outcomeCut,
}

// series returns the metrics of a surface of a pool, the same ones whenever
// it is asked for the same.
func (m *metricSet) series(s probe.Surface, pool string) *series {
	labels := fmt.Sprintf("surface=%q,pool=%q", s, pool)
	sr := &series{
		set:      m.set,
		labels:   labels,
		requests: m.set.GetOrCreateCounter("sluice_requests_total{" + labels + "}"),
		duration: m.set.GetOrCreatePrometheusHistogramExt("sluice_request_duration_seconds{"+labels+"}", durationBuckets),
	}
	if s.Generative() && pool != noPool {
		sr.ttft = m.set.GetOrCreatePrometheusHistogramExt("sluice_time_to_first_token_seconds{"+labels+"}", ttftBuckets)
	}
	return sr
}

// queueWait returns the histogram of the times that requests waited in a pool's
// queue.
func (m *metricSet) queueWait(pool string) *metrics.PrometheusHistogram {
	return m.set.GetOrCreatePrometheusHistogramExt(fmt.Sprintf("sluice_queue_wait_seconds{pool=%q}", pool), ttftBuckets)
}

// response returns the counter of answers with the given status.
func (s *series) response(status int) *metrics.Counter {
	if status < 0 || status >= len(s.codes) {
		status = 0
	}
	p := &s.codes[status]
	c := p.Load()
	if c == nil {
		c = s.set.GetOrCreateCounter(fmt.Sprintf("sluice_responses_total{%s,code=\"%d\"}", s.labels, status))
		p.Store(c)
	}
	return c
}

// stream returns the counter of streams that ended with o.
func (s *series) stream(o outcome) *metrics.Counter {
	for i, name := range streamOutcomes {
		if name != o {
			continue
		}
		p := &s.streams[i]
		c := p.Load()
		if c == nil {
			c = s.set.GetOrCreateCounter(fmt.Sprintf("sluice_streams_total{%s,outcome=%q}", s.labels, o))
			p.Store(c)
		}
		return c
	}
	panic("BUG: unknown stream outcome " + string(o))
}
