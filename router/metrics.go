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
	set    *metrics.Set
	panics *metrics.Counter
	none   [probe.NumSurfaces]*series // requests that reached no pool
	work   work

	rejected, observed, injected, replaced [probe.NumFields]*metrics.Counter
}

func newMetricSet() *metricSet {
	m := &metricSet{set: metrics.NewSet()}
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
	m.set.NewGauge("sluice_requests_in_flight", func() float64 { return float64(r.InFlight()) })
	last := &r.reloads.last
	m.set.NewGauge("sluice_config_last_reload_successful", func() float64 { return number(last.Load().err == nil) })
	m.set.NewGauge("sluice_config_last_reload_success_timestamp_seconds", func() float64 {
		return float64(last.Load().since.UnixMilli()) / 1000
	})
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
	metrics.WriteCounterUint64(w, `sluice_config_reloads_total{result="success"}`, r.reloads.good.Load())
	metrics.WriteCounterUint64(w, `sluice_config_reloads_total{result="failure"}`, r.reloads.bad.Load())
	metrics.WriteGaugeUint64(w, fmt.Sprintf("sluice_config_info{hash=%q}", r.reloads.last.Load().hash), 1)
	r.metrics.work.write(w)
	r.secure.data.write(w)
	r.secure.admin.write(w)
	r.snap.Load().rules.writeRollouts(w)
	r.snap.Load().capture.writeMetrics(w)
	for _, p := range r.snap.Load().pools {
		p.writeUpstream(w)
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
			writeWorkerState(w, p.up.Name(), wk)
		}
	}
	r.writeStores(w)
	metrics.WriteProcessMetrics(w)
	metrics.WriteFDMetrics(w)
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

// fallbacks returns the counter of requests that came to a pool from another one.
func (m *metricSet) fallbacks(pool string) *metrics.Counter {
	return m.set.GetOrCreateCounter(fmt.Sprintf("sluice_fallbacks_total{pool=%q}", pool))
}

// unthought returns the counter of requests that were told that their ask for
// thinking has no effect.
func (m *metricSet) unthought(pool string) *metrics.Counter {
	return m.set.GetOrCreateCounter(fmt.Sprintf("sluice_thinking_without_effect_total{pool=%q}", pool))
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

// routeMetrics are those of one decision.
type routeMetrics struct {
	requests *metrics.Counter
	// of the plugin request_params; nil where the decision has none.
	blocked                    []*metrics.Counter // by the index in Params.BlockedParams
	capped, defaulted, refused [probe.NumFields]*metrics.Counter
	stripped                   *metrics.Counter
	watching                   *routeMetrics // while a rollout observes, nil: none
}

// outputParams are the limits that request_params governs.
var outputParams = []probe.Field{
	probe.FieldMaxTokens, probe.FieldMaxCompletionTokens, probe.FieldMaxOutputTokens, probe.FieldMaxNewTokens,
	probe.FieldN, probe.FieldCandidateCount, probe.FieldBestOf,
}

// route returns the metrics of a decision.
func (m *metricSet) route(rt *route) *routeMetrics {
	name := rt.name
	if name == "" {
		name = "none"
	}
	rm := &routeMetrics{requests: m.set.GetOrCreateCounter(fmt.Sprintf("sluice_decisions_total{decision=%q}", name))}
	if rt.params == nil {
		return rm
	}
	m.addParams(rm, name, rt.params)
	if rt.watching != nil {
		rm.watching = &routeMetrics{}
		m.addParams(rm.watching, name, rt.watching)
	}
	return rm
}

// addParams adds the metrics of the plugin request_params.
func (m *metricSet) addParams(rm *routeMetrics, name string, ps *policy.Params) {
	mode := ""
	if ps.Observes() {
		mode = "would_be_"
	}
	counter := func(what, param string) *metrics.Counter {
		labels := fmt.Sprintf("{decision=%q,param=%q}", name, param)
		return m.set.GetOrCreateCounter("sluice_params_" + mode + what + "_total" + labels)
	}
	for _, param := range ps.BlockedParams() {
		rm.blocked = append(rm.blocked, counter("blocked", param))
	}
	for _, f := range outputParams {
		rm.capped[f] = counter("capped", f.String())
		rm.defaulted[f] = counter("defaulted", f.String())
		rm.refused[f] = counter("refused", f.String())
	}
	rm.refused[probe.FieldSamplingParams] = counter("refused", probe.FieldSamplingParams.String())
	rm.stripped = m.set.GetOrCreateCounter(fmt.Sprintf("sluice_params_%sstripped_total{decision=%q}", mode, name))
}

// of returns the metrics for what g says: those of observing, where it observes.
func (rm *routeMetrics) of(g *ruling) *routeMetrics {
	if rm.watching != nil && g.observesParams() {
		return rm.watching
	}
	return rm
}

// params counts what request_params said of one request.
func (rm *routeMetrics) params(v *policy.ParamsVerdict) {
	if rm.stripped == nil || v.Violated|v.Capped|v.Defaulted == 0 && v.Blocked == 0 && v.Stripped == 0 {
		return
	}
	for f := range probe.NumFields {
		if v.Violated.Has(f) {
			rm.refused[f].Inc()
		}
		if v.Capped.Has(f) {
			rm.capped[f].Inc()
		}
		if v.Defaulted.Has(f) {
			rm.defaulted[f].Inc()
		}
	}
	for i, c := range rm.blocked {
		if v.HasBlocked(i) {
			c.Inc()
		}
	}
	rm.stripped.Add(v.Stripped)
}
