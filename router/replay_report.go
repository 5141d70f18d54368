package router

import (
	"cmp"
	"slices"

	"sluice/probe"
)

// ReplayReport is what became of the requests of a replay.
type ReplayReport struct {
	// Lines are those that are not empty, Malformed those of them that are no
	// request; Faults are the first of these. Bytes are those of the bodies.
	Lines     uint64        `json:"lines"`
	Malformed uint64        `json:"malformed"`
	Faults    []ReplayFault `json:"faults,omitempty"`
	Bytes     uint64        `json:"bytes"`
	// Requests are the lines that are requests; the others take no part in what
	// follows.
	Requests uint64 `json:"requests"`
	// Totals and Decisions are of the configuration, Before are the totals of the
	// one it is compared with.
	Totals    ReplayTotals     `json:"totals"`
	Decisions []ReplayDecision `json:"decisions"`
	Before    *ReplayTotals    `json:"before,omitempty"`
	// Changed are the requests that fare otherwise under the two, and Changes in
	// which ways, the most frequent first.
	Changed *ReplayEffect  `json:"changed,omitempty"`
	Changes []ReplayChange `json:"changes,omitempty"`
}

// ReplayFault is a line that is no request.
type ReplayFault struct {
	At      string `json:"at"`
	Problem string `json:"problem"`
}

// ReplayTotals are requests by what becomes of them. A request may have several
// of the effects; of none is left out.
type ReplayTotals struct {
	Effects []ReplayEffect `json:"effects"`
	// Observed are the effects that rules which only observe would have.
	Observed []ReplayEffect `json:"observed,omitempty"`
}

// Of returns how many requests have the named effect, or would have it.
func (t *ReplayTotals) Of(effect string, observed bool) uint64 {
	list := t.Effects
	if observed {
		list = t.Observed
	}
	for _, e := range list {
		if e.Effect == effect {
			return e.Count
		}
	}
	return 0
}

// ReplayEffect is how many requests have an effect, and the first of them.
type ReplayEffect struct {
	// Effect is rejected, clamped, replaced, defaulted, blocked, stripped,
	// injected, other (an alias, force, extra_body or thinking alone), untouched
	// or local (the router answers itself).
	Effect string `json:"effect"`
	// Param is the member that has it, and Code the error that the client gets;
	// both are empty in a total.
	Param string `json:"param,omitempty"`
	Code  string `json:"code,omitempty"`
	Count uint64 `json:"count"`
	// At is file:line of the first one.
	At string `json:"at"`
}

// ReplayDecision are the requests that one decision takes, the empty name stands
// for those that none takes.
type ReplayDecision struct {
	Name     string `json:"name"`
	Requests uint64 `json:"requests"`
	ReplayTotals
	// Params are the effects by parameter: every violated one counts, as in the
	// metrics. Refusals are what the clients are told, by code and parameter.
	Params         []ReplayEffect `json:"params,omitempty"`
	ObservedParams []ReplayEffect `json:"observed_params,omitempty"`
	Refusals       []ReplayEffect `json:"refusals,omitempty"`
}

// ReplayChange is one way in which requests fare otherwise.
type ReplayChange struct {
	// What is outcome, decision, pool, body or, past a thousand kinds, other.
	What  string `json:"what"`
	Param string `json:"param,omitempty"` // of the body
	From  string `json:"from,omitempty"`
	To    string `json:"to,omitempty"`
	Count uint64 `json:"count"`
	At    string `json:"at"`
}

// Effects are the names of effects, in the order of reports.
func Effects() []string { return slices.Clone(effectNames[:]) }

// Report returns what became of the requests so far. It must not be called during
// Read.
func (p *Replay) Report() *ReplayReport {
	rep := &ReplayReport{}
	var faults []lineFault
	changes := replayChanges{kinds: map[replayChange]*replayCount{}}
	sums := make([]*replaySums, len(p.sides))
	for i := range sums {
		sums[i] = newReplaySums(p.sides[i].rules)
	}
	for _, w := range p.workers {
		rep.Malformed += w.bad
		rep.Bytes += w.bodies
		faults = append(faults, w.faults...)
		for i, s := range sums {
			for j := range s.routes {
				s.routes[j].merge(&w.sums[i].routes[j])
			}
		}
		changes.requests.merge(w.changes.requests)
		for k, n := range w.changes.kinds {
			changes.count(k, *n)
		}
	}
	slices.SortFunc(faults, func(a, b lineFault) int { return cmp.Compare(a.line, b.line) })
	for _, f := range faults[:min(len(faults), maxLineFaults)] {
		rep.Faults = append(rep.Faults, ReplayFault{p.place(f.line), f.problem})
	}
	for i := range sums[0].routes {
		rep.Requests += sums[0].routes[i].requests.n
	}
	rep.Lines = rep.Requests + rep.Malformed
	rep.Totals, rep.Decisions = p.totals(sums[0]), p.decisions(sums[0])
	if len(sums) > 1 {
		before := p.totals(sums[1])
		rep.Before = &before
		rep.Changed = &ReplayEffect{Effect: "changed", Count: changes.requests.n}
		if changes.requests.n > 0 {
			rep.Changed.At = p.place(changes.requests.line)
		}
		rep.Changes = p.changed(&changes)
	}
	return rep
}

func (p *Replay) totals(s *replaySums) ReplayTotals {
	var done, observed effectSums
	for i := range s.routes {
		for e := range done.requests {
			done.requests[e].merge(s.routes[i].done.requests[e])
			observed.requests[e].merge(s.routes[i].observed.requests[e])
		}
	}
	return p.effects(&done, &observed)
}

func (p *Replay) effects(done, observed *effectSums) ReplayTotals {
	t := ReplayTotals{Effects: []ReplayEffect{}}
	for e := range numEffects {
		p.effect(&t.Effects, e, "", "", done.requests[e])
		p.effect(&t.Observed, e, "", "", observed.requests[e])
	}
	return t
}

// effect appends a count to list, if it is not zero.
func (p *Replay) effect(list *[]ReplayEffect, e effect, param, code string, n replayCount) {
	if n.n > 0 {
		*list = append(*list, ReplayEffect{effectNames[e], param, code, n.n, p.place(n.line)})
	}
}

func (p *Replay) decisions(s *replaySums) []ReplayDecision {
	list := []ReplayDecision{}
	for i := range s.routes {
		rs := &s.routes[i]
		if rs.requests.n == 0 {
			continue
		}
		d := ReplayDecision{
			Name: rs.name, Requests: rs.requests.n, ReplayTotals: p.effects(&rs.done, &rs.observed),
			Params: p.params(&rs.done, rs.blocked), ObservedParams: p.params(&rs.observed, rs.blocked),
		}
		for _, c := range rs.refusals {
			p.effect(&d.Refusals, effectRejected, c.param, string(c.code), c.replayCount)
		}
		slices.SortFunc(d.Refusals, func(a, b ReplayEffect) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Param, b.Param))
		})
		list = append(list, d)
	}
	return list
}

func (p *Replay) params(s *effectSums, blocked []string) []ReplayEffect {
	var list []ReplayEffect
	for e := range numEffects {
		for f := range probe.NumFields {
			p.effect(&list, e, f.String(), "", s.params[e][f])
		}
		if e == effectDefaulted {
			p.effect(&list, e, "auto", "", s.auto)
		}
		if e == effectBlocked {
			for i, name := range blocked {
				p.effect(&list, e, name, "", s.blocked[i])
			}
		}
	}
	return list
}

func (p *Replay) changed(c *replayChanges) []ReplayChange {
	list := []ReplayChange{}
	for k, n := range c.kinds {
		list = append(list, ReplayChange{k.what, k.param, k.from, k.to, n.n, p.place(n.line)})
	}
	slices.SortFunc(list, func(a, b ReplayChange) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.What, b.What), cmp.Compare(a.Param, b.Param),
			cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return list
}
