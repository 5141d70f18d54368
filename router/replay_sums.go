package router

import (
	"sluice/policy"
	"sluice/probe"
)

// effect is what becomes of a request, or of a member of it. A request may have
// several; it is refused, local or untouched alone.
type effect uint8

const (
	effectRejected  effect = iota // refused by a rule or for what it is
	effectClamped                 // a limit was lowered
	effectReplaced                // a value was replaced by the contract's
	effectDefaulted               // an output limit was added
	effectBlocked                 // a member was removed by its name
	effectStripped                // an unknown member was removed
	effectInjected                // a pin of the contract was added
	effectOther                   // an alias, force, extra_body or thinking changed it
	effectUntouched               // it is sent as it came
	effectLocal                   // the router answers it itself
	numEffects
)

var effectNames = [numEffects]string{
	"rejected", "clamped", "replaced", "defaulted", "blocked", "stripped", "injected", "other", "untouched", "local",
}

// replayCount is how often something happened, and the number of the first line.
type replayCount struct{ n, line uint64 }

func (c *replayCount) add(line uint64) { c.merge(replayCount{1, line}) }

// merge adds the count of another worker. The lowest line is the first one,
// whoever came to it first.
func (c *replayCount) merge(o replayCount) {
	if o.n == 0 {
		return
	}
	if c.n == 0 || o.line < c.line {
		c.line = o.line
	}
	c.n += o.n
}

// effectSums count effects: once a request, and for each parameter.
type effectSums struct {
	requests [numEffects]replayCount
	params   [numEffects][probe.NumFields]replayCount
	blocked  []replayCount // by the index in Params.BlockedParams
	auto     replayCount   // of the limits that the context window gives
	touched  bool          // the present request has an effect
}

func (s *effectSums) add(e effect, line uint64) {
	s.requests[e].add(line)
	s.touched = true
}

func (s *effectSums) addFields(e effect, fields probe.FieldSet, line uint64) {
	if fields == 0 {
		return
	}
	s.add(e, line)
	s.addParams(e, fields, line)
}

func (s *effectSums) addParams(e effect, fields probe.FieldSet, line uint64) {
	for f := probe.FieldNone + 1; fields>>f != 0; f++ {
		if fields.Has(f) {
			s.params[e][f].add(line)
		}
	}
}

// addVerdict counts what request_params did, or would have done.
func (s *effectSums) addVerdict(v *policy.ParamsVerdict, line uint64) {
	s.addFields(effectClamped, v.Capped, line)
	s.addParams(effectDefaulted, v.Defaulted, line)
	if v.WantsLimit {
		s.auto.add(line)
	}
	if v.Defaulted != 0 || v.WantsLimit {
		s.add(effectDefaulted, line)
	}
	if v.Blocked != 0 {
		s.add(effectBlocked, line)
		for i := range s.blocked {
			if v.HasBlocked(i) {
				s.blocked[i].add(line)
			}
		}
	}
	if v.Stripped > 0 {
		s.add(effectStripped, line)
	}
}

func (s *effectSums) merge(o *effectSums) {
	for e := range s.requests {
		s.requests[e].merge(o.requests[e])
		for f := range s.params[e] {
			s.params[e][f].merge(o.params[e][f])
		}
	}
	for i := range s.blocked {
		s.blocked[i].merge(o.blocked[i])
	}
	s.auto.merge(o.auto)
}

// routeSums are those of the requests that one decision takes.
type routeSums struct {
	name     string
	blocked  []string // the names by effectSums.blocked
	requests replayCount
	done     effectSums
	observed effectSums // of rules that observe: what enforcing them would do
	refusals []refusalCount
}

// refusalCount counts the requests that are told the same.
type refusalCount struct {
	code  errorCode
	param string
	replayCount
}

func (s *routeSums) refuse(r *refusal, n replayCount) {
	for i := range s.refusals {
		c := &s.refusals[i]
		if c.code == r.code && c.param == r.param {
			c.merge(n)
			return
		}
	}
	s.refusals = append(s.refusals, refusalCount{r.code, r.param, n})
}

// replaySums are the sums of one configuration.
type replaySums struct {
	// routes are by route.index; the last one is of the requests that are answered
	// before a decision is looked for.
	routes []routeSums
}

// BeforeRouting is what a report has for the name of a decision for requests that are
// answered before one is looked for. No decision can have it.
const BeforeRouting = "(before routing)"

func newReplaySums(r *Rules) *replaySums {
	s := &replaySums{}
	for _, rt := range append([]*route{r.plain}, r.routes...) {
		blocked := rt.params.BlockedParams()
		s.routes = append(s.routes, routeSums{
			name: rt.name, blocked: blocked,
			done:     effectSums{blocked: make([]replayCount, len(blocked))},
			observed: effectSums{blocked: make([]replayCount, len(blocked))},
		})
	}
	s.routes = append(s.routes, routeSums{name: BeforeRouting})
	return s
}

// add counts one request.
func (s *replaySums) add(d *replayed, line uint64) {
	rs := &s.routes[len(s.routes)-1]
	if d.ruled {
		rs = &s.routes[d.ruling.route.index]
	}
	rs.requests.add(line)
	rs.done.touched = false
	if d.ruled {
		rs.judged(d.ruling, line)
	}
	switch {
	case d.local:
		rs.done.add(effectLocal, line)
	case d.refused != nil:
		rs.done.add(effectRejected, line)
		rs.refuse(d.refused, replayCount{1, line})
	case untouched(d):
		rs.done.add(effectUntouched, line)
	case !rs.done.touched:
		rs.done.add(effectOther, line)
	}
}

// untouched reports whether the very bytes that came are sent.
func untouched(d *replayed) bool {
	s := d.ruling.segments
	return len(s) == 1 && len(s[0]) == len(d.in.body)
}

// judged counts what request_params and the contract said.
func (rs *routeSums) judged(g *ruling, line uint64) {
	switch p := &g.params; {
	case p.Refused:
		rs.done.addParams(effectRejected, p.Violated, line)
	case g.observesParams():
		rs.observed.addFields(effectRejected, p.Violated, line)
		rs.observed.addVerdict(p, line)
	default:
		rs.done.addVerdict(p, line)
	}
	c := &g.contract
	if c.Refused {
		rs.done.addParams(effectRejected, c.Violated, line)
		return
	}
	rs.observed.addFields(effectRejected, c.Violated, line)
	rs.done.addFields(effectInjected, c.Injected, line)
	rs.done.addFields(effectReplaced, c.Replaced, line)
}

func (rs *routeSums) merge(o *routeSums) {
	rs.requests.merge(o.requests)
	rs.done.merge(&o.done)
	rs.observed.merge(&o.observed)
	for _, c := range o.refusals {
		rs.refuse(&refusal{code: c.code, param: c.param}, c.replayCount)
	}
}
