package router

import (
	"math/rand/v2"

	"github.com/valyala/fasthttp"

	"sluice/configs"
	"sluice/policy"
	"sluice/probe"
)

// ruling is what the rules make of one request: the decision that takes it, the
// pool it goes to, and the edits of its body. It is made in steps, decide,
// choose and edit, each of which may refuse the request; edit is run again for
// each pool that the request is sent to.
type ruling struct {
	who   asker
	facts policy.Facts
	route *route
	// asked is the model that the engine is asked for: the decision's, or the client's.
	asked  []byte
	dest   *destination
	target *target

	plan     policy.Plan
	judge    *policy.Params // that params is from, nil: none
	params   policy.ParamsVerdict
	contract policy.Verdict
	segments [][]byte // of the body that is sent
	// unthought is what the client asked of the model's thinking and what the
	// pool has no way to do.
	unthought policy.ThinkingAsk

	// hideUsage says that the usage of the stream was asked for by the router and
	// not by the client.
	hideUsage bool
	needUsage bool // see Rules.usage

	// sides are those of the rollouts of request_params and of the contract, counted
	// the ones that were counted.
	sides, counted sides
	hash           uint64 // of the session or body. Valid iff hashed.
	hashed         bool

	// steady has requests shared among pools by their hash where chance would do
	// it: for replay.
	steady bool
	// edited, if there is one, is called with the name of each rule that has
	// had its say on the plan: for explain.
	edited func(rule string)
}

// recycled returns an empty ruling with the memory of g.
func (g *ruling) recycled() ruling {
	clear(g.segments[:cap(g.segments)])
	return ruling{plan: g.plan, segments: g.segments[:0]}
}

// asker is who asks, for the rules: what of a request is not in its body.
type asker struct {
	header  policy.Header
	tenant  []byte
	session []byte
	think   []byte // of the header x-sluice-thinking
}

// headerThinking is how a client asks a model to think, or not to: on or off.
const headerThinking = "x-sluice-thinking"

// asker returns what the rules may ask of a request beside its body. It refers to
// the memory of h.
func (r *Rules) asker(h *fasthttp.RequestHeader) asker {
	who := asker{header: h, session: session(h), think: h.Peek(headerThinking)}
	if r.tenantHeader != "" {
		who.tenant = h.Peek(r.tenantHeader)
	}
	return who
}

// decide finds the decision that takes the request.
func (g *ruling) decide(r *Rules, in *intake, who asker) {
	g.who, g.needUsage = who, r.usage
	g.facts = policy.Facts{
		Surface: in.endpoint.surface,
		Path:    in.path,
		Model:   in.model,
		Tenant:  who.tenant,
		Stream:  in.stream,
		Src:     in.body,
		Header:  who.header,
	}
	if in.json() {
		g.facts.Body = &in.scan
	}
	g.route = r.plain
	if i := r.matcher.Match(&g.facts); i >= 0 {
		g.route = r.routes[i]
	}
	g.asked = in.model
	if g.route.rewrite != nil {
		g.asked = g.route.rewrite.name
	}
}

// choose finds the pool that the request goes to.
func (g *ruling) choose(r *Rules, in *intake) *refusal {
	rt := g.route
	switch {
	case rt.shares != nil && (rt.sticky || g.steady):
		g.to(rt.destinations[rt.shares.Pick(g.requestHash(in))])
	case rt.shares != nil:
		g.to(rt.destinations[rt.shares.Pick(rand.Uint64())])
	case len(rt.destinations) == 1:
		g.to(rt.destinations[0])
	case len(g.asked) == 0 && r.anyModel == nil:
		return badRequest("invalid request: \"model\" is required", "model")
	case len(g.asked) == 0:
		g.to(r.anyModel)
	case r.models[string(g.asked)] != nil:
		g.to(r.models[string(g.asked)])
	case r.catchAll != nil:
		g.to(r.catchAll)
	default:
		return &refusal{fasthttp.StatusNotFound, codeModelNotFound, "the model is not served here", "model"}
	}
	return nil
}

// to makes d the pool that the request goes to.
func (g *ruling) to(d *destination) {
	g.dest, g.target = d, d.target(g.asked)
}

// edit settles the body that is sent to g.dest, in segments: the client's bytes
// and what takes the place of some of them.
func (g *ruling) edit(in *intake) *refusal {
	g.segments = g.segments[:0]
	if !in.json() {
		g.editForm(in)
		return nil
	}
	g.plan.Reset(&in.scan)
	ask, refused := g.thinkingAsk(in)
	if refused != nil {
		return refused
	}
	if refused := g.govern(in); refused != nil {
		return refused
	}
	surface := in.endpoint.surface
	g.route.force.Apply(in.body, &in.scan, surface, &g.plan)
	g.done("force")
	g.rename(in)
	g.done("model")
	g.dest.extra.Apply(in.body, &in.scan, surface, &g.plan)
	g.done("extra_body")
	written := g.dest.thinking.Layer(ask).Apply(in.body, &in.scan, surface, &g.plan)
	g.done("thinking")
	g.unthought = policy.ThinkingUnasked
	if written == 0 && surface.Generative() {
		g.unthought = ask
	}
	g.includeUsage(in)
	g.done("usage")
	g.splice(in)
	return nil
}

// includeUsage has the engine tell the usage of a stream whose client did not ask
// for it. Members beside include_usage stay. A stream_options that a policy has
// removed is left out: somebody knows that the engine does not take it.
func (g *ruling) includeUsage(in *intake) {
	g.hideUsage = false
	if !g.needUsage || !in.stream || in.endpoint.surface != probe.SurfaceChat && in.endpoint.surface != probe.SurfaceCompletions {
		return
	}
	if m := in.scan.Last(probe.FieldStream); g.plan.Removed(m) {
		return
	}
	m := in.scan.Last(probe.FieldStreamOptions)
	switch {
	case m == nil:
		g.plan.Inject(policy.Top, usageOptions)
	case g.plan.Removed(m), g.plan.Replacement(m) != nil:
		return
	case m.Kind == probe.KindNull:
		g.plan.Replace(m, usageOptions)
	case m.Kind == probe.KindObject:
		i, own := in.streamOptions(m)
		if own != nil && own.Kind == probe.KindTrue {
			return
		}
		if own != nil {
			g.plan.Replace(own, includeUsage)
		} else {
			g.plan.Inject(i, includeUsage)
		}
	default:
		return // the engine says what is wrong with it
	}
	g.hideUsage = true
}

// The members that have an engine tell the usage of a stream.
var (
	usageOptions = mustLiteral("stream_options", `{"include_usage":true}`)
	includeUsage = mustLiteral("include_usage", "true")
)

func mustLiteral(key, value string) *policy.Literal {
	lit, err := policy.NewLiteral(key, []byte(value))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return lit
}

// thinkingAsk returns whether the client wants the model to think. Its header
// wins over the member enable_thinking, which is for the router alone where the
// pool has a profile.
func (g *ruling) thinkingAsk(in *intake) (policy.ThinkingAsk, *refusal) {
	ask, ok := policy.ParseThinking(g.who.think)
	if !ok {
		return ask, badRequest("invalid request: "+headerThinking+" must be on or off", "")
	}
	if g.dest.thinking == nil {
		return ask, nil
	}
	own, ok := policy.TakeThinking(in.body, &in.scan, in.endpoint.surface, &g.plan)
	g.done("thinking")
	if !ok {
		return ask, badRequest("invalid request: \"enable_thinking\" must be true or false", "enable_thinking")
	}
	if ask == policy.ThinkingUnasked {
		ask = own
	}
	return ask, nil
}

// splice makes the segments of the body as the plan wants it.
func (g *ruling) splice(in *intake) {
	g.segments = g.segments[:0]
	if g.plan.Empty() {
		g.segments = append(g.segments, in.body)
		return
	}
	g.segments = g.plan.AppendSegments(g.segments, in.body)
}

// observesParams reports whether request_params counts what it would do and does
// nothing.
func (g *ruling) observesParams() bool { return g.judge.Observes() }

// done tells explain that a rule has had its say.
func (g *ruling) done(rule string) {
	if g.edited != nil {
		g.edited(rule)
	}
}

// govern holds the request against the plugin request_params and against the
// sampling contract.
func (g *ruling) govern(in *intake) *refusal {
	if !in.endpoint.surface.Generative() {
		return nil
	}
	if g.judge = g.route.params; g.judge != nil {
		if !g.sides.params.decide(g.route.rollout, g, in) {
			g.judge = g.route.watching
		}
		g.params = g.judge.Judge(in.body, &in.scan, in.endpoint.surface, g.dest.engine, &g.plan)
		g.done(configs.RequestParams)
		if g.params.Refused {
			return &refusal{fasthttp.StatusBadRequest, codeParamsViolation, string(g.params.AppendMessage(nil)), g.params.Param()}
		}
	}
	held := g.route.termsFor(g.target)
	contract := held.contract
	if !g.sides.contract.decide(held.rollout, g, in) {
		contract = held.watching
	}
	g.contract = contract.Judge(&in.scan, in.endpoint.surface, &g.plan)
	g.done("sampling_contract")
	if g.contract.Refused {
		return &refusal{fasthttp.StatusBadRequest, codeContractViolation, string(g.contract.AppendMessage(nil)), g.contract.First.Field.String()}
	}
	return nil
}

// renamed returns what the engine is asked for in the place of what the client
// wrote, or nil where the two are the same.
func (g *ruling) renamed(in *intake) *modelName {
	m := g.target.model
	if m == nil {
		m = g.route.rewrite
	}
	if m == nil || string(m.name) == string(in.model) {
		return nil
	}
	return m
}

// rename puts the model's own name in the place of an alias, and the decision's
// model in the place of the client's.
func (g *ruling) rename(in *intake) {
	name := g.renamed(in)
	if name == nil {
		return
	}
	if m := in.scan.Last(probe.FieldModel); m != nil {
		g.plan.Replace(m, name.literal)
	} else {
		g.plan.Inject(policy.Top, name.literal)
	}
}

// editForm is rename for a multipart body, where a model that is missing is not
// added, and for no body at all.
func (g *ruling) editForm(in *intake) {
	name := g.renamed(in)
	if !in.form || name == nil || in.formModel.Len() == 0 {
		g.segments = append(g.segments, in.body)
		return
	}
	g.segments = append(g.segments, in.body[:in.formModel.Start], name.name, in.body[in.formModel.End:])
}

// warning returns what the answer tells the client in the header
// x-sluice-warning, or nothing.
func (g *ruling) warning() string {
	if g.unthought == policy.ThinkingUnasked {
		return ""
	}
	return "thinking=" + g.unthought.String() + " has no effect on pool \"" + g.dest.name + "\""
}
