package router

import (
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"sluice/policy"
	"sluice/probe"
)

// Question is a request that an operator asks about. Its body is not under a
// content coding.
type Question struct {
	// Method is the method, empty for POST, and Target the request target, such
	// as /v1/chat/completions.
	Method, Target string
	// Header holds the fields as "name: value".
	Header []string
	Body   []byte
}

// Explanation is what the rules make of a request. It owns all that it holds.
type Explanation struct {
	Surface string `json:"surface"`
	// Decision is the one that takes the request, empty for none; Rules are its
	// conditions and what became of each.
	Decision string        `json:"decision"`
	Rules    []policy.Step `json:"rules,omitempty"`
	// Pool is where the request goes, Shares the pools among which chance
	// decides, and Fallback what is tried after it.
	Pool     string   `json:"pool,omitempty"`
	Shares   []string `json:"shares,omitempty"`
	Fallback []string `json:"fallback,omitempty"`
	// Model is what the client asked for, SentModel what the engine is asked
	// for.
	Model     string `json:"model"`
	SentModel string `json:"sent_model"`
	// Contract is the section of the configuration whose sampling contract
	// holds, empty for none, and OnConflict what it does.
	Contract   string `json:"contract"`
	OnConflict string `json:"on_conflict,omitempty"`
	// Edits are the changes of the body, by rule, in the order of the rules.
	Edits []ExplainedEdit `json:"edits"`
	// Rollouts are those that the rules are under.
	Rollouts []ExplainedRollout `json:"rollouts,omitempty"`
	// Observed are what rules that observe would have refused or changed.
	Observed []string `json:"observed,omitempty"`
	// Warning is the value of the header x-sluice-warning of the answer.
	Warning string `json:"warning,omitempty"`
	// Refusal is the answer that the client gets, nil for that of a worker.
	Refusal *ExplainedRefusal `json:"refusal,omitempty"`
	// Splices are the same changes as edits of bytes, in body order.
	Splices []Splice `json:"splices,omitempty"`
	// Body is the body that is sent. Nil for a refused request.
	Body []byte `json:"-"`
}

// Splice puts Text in the place of the bytes from Start to End of the client's
// body.
type Splice struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	Text  string `json:"text"`
}

// ExplainedEdit is one change of a body.
type ExplainedEdit struct {
	// Rule is request_params, sampling_contract, force, model, extra_body or
	// thinking.
	Rule string `json:"rule"`
	policy.Change
}

// ExplainedRollout is a rollout and what it decides for the request.
type ExplainedRollout struct {
	// Name is as in the metrics, Side enforced or observed, with the reason.
	Name string `json:"name"`
	Side string `json:"side"`
}

// ExplainedRefusal is an error of the router's own.
type ExplainedRefusal struct {
	Status  int    `json:"status"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Param   string `json:"param,omitempty"`
}

// Explain returns what becomes of a request. It runs the code that the data path
// runs.
func (r *Rules) Explain(ask Question) Explanation {
	x := explainer{rules: r, Explanation: Explanation{Edits: []ExplainedEdit{}}}
	if refused := x.explain(ask); refused != nil {
		x.Refusal = &ExplainedRefusal{refused.status, string(refused.code), refused.msg, refused.param}
	}
	return x.Explanation
}

type explainer struct {
	rules *Rules
	in    intake
	ruling
	Explanation
}

func (x *explainer) explain(ask Question) *refusal {
	var h fasthttp.RequestHeader
	for _, f := range ask.Header {
		name, value, _ := strings.Cut(f, ":")
		h.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	method := ask.Method
	if method == "" {
		method = fasthttp.MethodPost
	}
	if refused := x.in.locate([]byte(ask.Target), []byte(method), x.rules.passes); refused != nil {
		return refused
	}
	x.Surface = x.in.endpoint.surface.String()
	if x.in.endpoint.kind > kindPass {
		return nil // answered by the router itself
	}
	boundary, refused := x.in.accept(h.ContentType())
	if refused != nil {
		return refused
	}
	x.in.body = ask.Body
	if refused := x.in.parse(boundary, x.rules.numbers); refused != nil {
		return refused
	}
	x.Model = string(x.in.model)
	return x.rule(x.rules.asker(&h))
}

func (x *explainer) rule(who asker) *refusal {
	x.decide(x.rules, &x.in, who)
	x.Decision = x.route.name
	if x.route.index > 0 {
		x.Rules = x.rules.matcher.Trace(&x.facts, x.route.index-1)
	}
	if refused := x.choose(x.rules, &x.in); refused != nil {
		return refused
	}
	x.Pool = x.dest.name
	if x.route.shares != nil && !x.route.sticky {
		x.Shares = names(x.route.destinations)
	}
	x.Fallback = names(x.route.fallback)
	x.SentModel = string(x.asked)
	if x.target.model != nil {
		x.SentModel = string(x.target.model.name)
	}
	if held := x.route.termsFor(x.target); held.contract != nil && x.in.endpoint.surface.Generative() {
		x.Contract, x.OnConflict = held.from, held.contract.String()
	}
	var before []policy.Change
	x.edited = func(rule string) {
		after := x.plan.Changes(x.in.body)
		x.add(rule, before, after)
		before = after
	}
	refused := x.edit(&x.in)
	x.addRollouts()
	x.observe()
	x.Warning = x.warning()
	if refused != nil {
		return refused
	}
	x.Body = []byte{}
	for _, s := range x.segments {
		x.Body = append(x.Body, s...)
	}
	if x.in.json() {
		for _, e := range x.plan.Edits() {
			x.Splices = append(x.Splices, Splice{int(e.Start), int(e.End), string(e.Lit)})
		}
	}
	return nil
}

// add appends the changes that are in after and were not in before.
func (x *explainer) add(rule string, before, after []policy.Change) {
	for _, c := range after {
		known := false
		for _, b := range before {
			known = known || b == c
		}
		if !known {
			x.Edits = append(x.Edits, ExplainedEdit{rule, c})
		}
	}
}

// addRollouts tells of the rollouts that had a say.
func (x *explainer) addRollouts() {
	for _, s := range []*side{&x.sides.params, &x.sides.contract} {
		if s.rollout != nil && (len(x.Rollouts) == 0 || x.Rollouts[0].Name != s.rollout.Name) {
			x.Rollouts = append(x.Rollouts, ExplainedRollout{s.rollout.Name, s.why()})
		}
	}
}

func names(ds []*destination) []string {
	var list []string
	for _, d := range ds {
		list = append(list, d.name)
	}
	return list
}

// observe tells what rules that only observe would have done.
func (x *explainer) observe() {
	if v := &x.contract; !v.Refused && v.Violated != 0 {
		held := x.route.termsFor(x.target)
		x.Observed = append(x.Observed, "sampling_contract would "+held.would()+": "+string(v.AppendMessage(nil)))
	}
	ps, v := x.judge, &x.params
	if !ps.Observes() {
		return
	}
	add := func(what string) { x.Observed = append(x.Observed, "request_params would "+what) }
	if v.Violated != 0 {
		add("refuse: " + string(v.AppendMessage(nil)))
	}
	for i, name := range ps.BlockedParams() {
		if v.HasBlocked(i) {
			add("block " + name)
		}
	}
	for f := range probe.NumFields {
		if v.Defaulted.Has(f) {
			add("default " + f.String())
		}
		if v.Capped.Has(f) {
			add("cap " + f.String())
		}
	}
	if v.Stripped > 0 {
		add("strip unknown members: " + strconv.Itoa(v.Stripped))
	}
}
