package router

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"sluice/configs"
	"sluice/policy"
)

// rollout enforces a rule on a share of the requests and has it observe the others,
// until too much goes wrong; then it observes all of them. It refers to a state
// that a reload passes on to the rollout of the same name and text.
type rollout struct {
	*configs.NamedRollout
	state *rolloutState
}

func newRollout(n *configs.NamedRollout) *rollout { return &rollout{n, &rolloutState{}} }

// enforces reports whether the rule is enforced on a request of the hash.
func (ro *rollout) enforces(hash uint64) bool {
	return !ro.state.aborted.Load() && policy.InShare(hash, float64(ro.Share))
}

// rolloutState is what a rollout has seen. Safe for concurrent use, without locks.
type rolloutState struct {
	aborted                              atomic.Bool
	enforced, observed, rejected, failed atomic.Uint64
	buckets                              [rolloutBuckets]rolloutBucket
}

// rolloutBuckets are the parts of the time that bounds look back: by up to one of
// them the time is shorter.
const rolloutBuckets = 16

// rolloutBucket counts the requests of one part of the time, a tick. Of those that
// are counted at the very moment at which a bucket is taken for a new tick, some
// may be lost.
type rolloutBucket struct {
	tick                       atomic.Int64
	enforced, rejected, failed atomic.Uint32
}

// bucket returns the one of the present tick.
func (ro *rollout) bucket(now time.Time) *rolloutBucket {
	tick := ro.tick(now)
	b := &ro.state.buckets[tick%rolloutBuckets]
	if old := b.tick.Load(); old < tick && b.tick.CompareAndSwap(old, tick) {
		b.enforced.Store(0)
		b.rejected.Store(0)
		b.failed.Store(0)
	}
	return b
}

func (ro *rollout) tick(now time.Time) int64 {
	return now.UnixNano() / int64(ro.Window()/rolloutBuckets)
}

// count notes one request that was ruled on, and whether the rule has refused it.
// It reports whether that has aborted the rollout.
func (ro *rollout) count(now time.Time, enforced, rejected bool) (aborted bool) {
	s := ro.state
	if !enforced {
		s.observed.Add(1)
		return false
	}
	s.enforced.Add(1)
	b := ro.bucket(now)
	b.enforced.Add(1)
	if !rejected {
		return false
	}
	s.rejected.Add(1)
	b.rejected.Add(1)
	return ro.check(now)
}

// fail notes that a request which the rule was enforced on has failed at a worker.
func (ro *rollout) fail(now time.Time) (aborted bool) {
	ro.state.failed.Add(1)
	ro.bucket(now).failed.Add(1)
	return ro.check(now)
}

// check aborts the rollout if a bound is passed, and reports whether this call did.
func (ro *rollout) check(now time.Time) bool {
	enforced, rejected, failed := ro.recent(now)
	if enforced < uint64(ro.Least()) {
		return false
	}
	passed := func(n uint64, bound configs.Share) bool {
		return bound > 0 && float64(n) > float64(bound)*float64(enforced)
	}
	if !passed(rejected, ro.AbortOn.Rejected) && !passed(failed, ro.AbortOn.Errors) {
		return false
	}
	return ro.state.aborted.CompareAndSwap(false, true)
}

// recent returns the counts of the time that bounds look back.
func (ro *rollout) recent(now time.Time) (enforced, rejected, failed uint64) {
	tick := ro.tick(now)
	for i := range ro.state.buckets {
		b := &ro.state.buckets[i]
		if age := tick - b.tick.Load(); age < 0 || age >= rolloutBuckets {
			continue
		}
		enforced += uint64(b.enforced.Load())
		rejected += uint64(b.rejected.Load())
		failed += uint64(b.failed.Load())
	}
	return enforced, rejected, failed
}

// side is what a rollout has decided for one request.
type side struct {
	rollout  *rollout // nil: none, the rule holds
	enforced bool
}

// sides has the rollouts of the two rules decide, each once a request, even where
// several pools are tried.
type sides struct{ params, contract side }

// decide returns whether a rule under ro is enforced on the request.
func (s *side) decide(ro *rollout, g *ruling, in *intake) bool {
	if ro == nil {
		*s = side{}
		return true
	}
	if s.rollout != ro {
		*s = side{ro, ro.enforces(g.requestHash(in))}
	}
	return s.enforced
}

// mark returns what tells bodies that were edited on other sides apart, for keys of
// the cache; nothing where there are no rollouts.
func (s *sides) mark() []byte { return sideMarks[3*s.params.index()+s.contract.index()] }

func (s *side) index() int {
	switch {
	case s.rollout == nil:
		return 0
	case s.enforced:
		return 1
	}
	return 2
}

var sideMarks = [9][]byte{nil, []byte("-e"), []byte("-o"), []byte("e-"), []byte("ee"), []byte("eo"), []byte("o-"), []byte("oe"), []byte("oo")}

// requestHash returns the hash of the session or body, computed once.
func (g *ruling) requestHash(in *intake) uint64 {
	if !g.hashed {
		g.hash, g.hashed = policy.RequestHash(g.who.session, in.body), true
	}
	return g.hash
}

// noteRollouts counts the request that was ruled on for its rollouts. Where one
// rollout is that of both rules, it is one request for it.
func (q *request) noteRollouts() {
	q.counted = q.sides
	p, c := &q.sides.params, &q.sides.contract
	if p.rollout != nil {
		both := c.rollout == p.rollout
		q.tellAbort(p.rollout, p.rollout.count(q.start, p.enforced, q.params.Refused || both && q.contract.Refused))
		if both {
			return
		}
	}
	if c.rollout != nil {
		q.tellAbort(c.rollout, c.rollout.count(q.start, c.enforced, q.contract.Refused))
	}
}

// endRollouts counts the request's end for the rollouts that were enforced on it.
func (q *request) endRollouts(status int, code errorCode, now time.Time) {
	p, c := &q.counted.params, &q.counted.contract
	if !p.enforced && !c.enforced || !q.failedUpstream(status, code) {
		return
	}
	if p.enforced {
		q.tellAbort(p.rollout, p.rollout.fail(now))
	}
	if c.enforced && c.rollout != p.rollout {
		q.tellAbort(c.rollout, c.rollout.fail(now))
	}
}

// failedUpstream reports whether a worker did not do what it was asked for, see
// configs.AbortOn.
func (q *request) failedUpstream(status int, code errorCode) bool {
	switch q.outcome {
	case outcomeUpstreamError, outcomeUpstreamBroken, outcomeUpstreamTimeout:
		return true
	case outcomeOK:
		return code == "" && (status >= 500 || status == fasthttp.StatusBadRequest || status == fasthttp.StatusUnprocessableEntity)
	}
	return false
}

// tellAbort says in the log that a rollout has ended, once.
func (q *request) tellAbort(ro *rollout, aborted bool) {
	if !aborted {
		return
	}
	enforced, rejected, failed := ro.recent(time.Now())
	q.router.log.LogAttrs(context.Background(), slog.LevelError, "rollout aborted: the rule observes all requests from now on",
		slog.String("rollout", ro.Name), slog.Uint64("enforced", enforced), slog.Uint64("rejected", rejected), slog.Uint64("errors", failed),
		slog.String("bound_rejected", ro.AbortOn.Rejected.String()), slog.String("bound_errors", ro.AbortOn.Errors.String()),
		slog.Duration("over", ro.Window()))
}

// adopt takes the states of the rollouts of old that are the same.
func (r *Rules) adopt(old *Rules) {
	for name, ro := range r.rollouts {
		if before := old.rollouts[name]; before != nil && before.Text == ro.Text {
			ro.state = before.state
		}
	}
}

// writeRollouts writes the metrics of the rollouts.
func (r *Rules) writeRollouts(w io.Writer) {
	for _, name := range slices.Sorted(maps.Keys(r.rollouts)) {
		labels, s := fmt.Sprintf("{rollout=%q}", name), r.rollouts[name].state
		metrics.WriteCounterUint64(w, "sluice_rollout_enforced_total"+labels, s.enforced.Load())
		metrics.WriteCounterUint64(w, "sluice_rollout_observed_total"+labels, s.observed.Load())
		metrics.WriteCounterUint64(w, "sluice_rollout_rejected_total"+labels, s.rejected.Load())
		metrics.WriteCounterUint64(w, "sluice_rollout_errors_total"+labels, s.failed.Load())
		metrics.WriteGaugeUint64(w, "sluice_rollout_aborted"+labels, uint64(number(s.aborted.Load())))
	}
}

// why explains the side of a request.
func (s *side) why() string {
	ro := s.rollout
	switch {
	case ro.state.aborted.Load():
		return fmt.Sprintf("observed: the rollout was aborted (bounds: rejected %s, errors %s, over %s)", ro.AbortOn.Rejected, ro.AbortOn.Errors, ro.Window())
	case s.enforced:
		return "enforced: the session or body is in the share of " + ro.Share.String()
	}
	return "observed: the session or body is not in the share of " + ro.Share.String()
}
