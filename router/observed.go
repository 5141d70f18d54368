package router

import (
	"context"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"sluice/policy"
	"sluice/probe"
)

// pace lets one line a second through for each parameter of a rule that observes.
// Safe for concurrent use.
type pace struct{ next [probe.NumFields]atomic.Int64 }

func (p *pace) allow(f probe.Field, now time.Time) bool {
	at, next := now.UnixNano(), &p.next[f]
	before := next.Load()
	return at >= before && next.CompareAndSwap(before, at+int64(time.Second))
}

// noteObserved logs what enforcing the rules that observe would have done: the
// parameter and the class of its value, never the value, at most once a second for
// each rule and parameter. All are counted, see metricSet.
func (q *request) noteObserved() {
	if c := &q.contract; c.Violated != 0 && !c.Refused {
		q.observeContract(c)
	}
	if q.observesParams() {
		q.observeParams(&q.params)
	}
}

func (q *request) observeContract(v *policy.Verdict) {
	held := q.route.termsFor(q.target)
	if !held.said.allow(v.First.Field, q.start) {
		return
	}
	q.logObserved(held.from, held.would(), v.First.Field.String(), classOf(&v.First))
}

// would returns what a contract that observes would do. One that observes for good
// tells what reject would do.
func (t *terms) would() string {
	if t.rollout != nil && t.contract.String() == "replace" {
		return "replace"
	}
	return "refuse"
}

// classOf says what kind of value breaks a contract.
func classOf(n *policy.Violation) string {
	switch {
	case n.Field == probe.FieldSamplingParams:
		return "no object or list of objects"
	case n.State != probe.Number:
		return "not a number"
	case math.IsNaN(n.Num):
		return "NaN"
	case n.Num < n.Min:
		return "below"
	}
	return "above"
}

// observeParams logs the first thing that request_params would have done.
func (q *request) observeParams(v *policy.ParamsVerdict) {
	would, field, class := "", probe.FieldNone, ""
	switch {
	case v.Violated != 0:
		would, field, class = "refuse", v.First.Field, "no whole number >= 1"
	case v.Capped != 0:
		would, field, class = "clamp", firstOf(v.Capped), "above"
	case v.Blocked != 0:
		would = "block"
	case v.Defaulted != 0:
		would, field, class = "default", firstOf(v.Defaulted), "absent"
	case v.Stripped > 0:
		would = "strip"
	}
	if would == "" || !q.route.said.allow(field, q.start) {
		return
	}
	param := field.String()
	for i, name := range q.judge.BlockedParams() {
		if would == "block" && v.HasBlocked(i) {
			param = name
			break
		}
	}
	q.logObserved("decisions."+q.route.name, would, param, class)
}

func firstOf(s probe.FieldSet) probe.Field {
	for f := range probe.NumFields {
		if s.Has(f) {
			return f
		}
	}
	return probe.FieldNone
}

func (q *request) logObserved(rule, would, param, class string) {
	q.router.log.LogAttrs(context.Background(), slog.LevelInfo, "observed: enforcing the rule would change this request",
		slog.String("request_id", string(q.id)), slog.String("rule", rule), slog.String("would", would),
		slog.String("param", param), slog.String("value", class))
}
