package router

import (
	"bytes"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/policy"
	"sluice/probe"
	"sluice/router/record"
	"sluice/upstream"
)

// maxTold is how much of an answer that is no stream is kept to read its usage
// at its end.
const maxTold = 4 << 20

// ledger is what a request remembers for its rows. It is empty where nothing is
// recorded.
type ledger struct {
	// intent is what the client asked of sampling, before anything was edited,
	// and sampling the same over the extra_body of the pool.
	intent, sampling []byte
	tried            time.Time // when the attempt began
	told             []byte    // of an answer that is no stream and passes in pieces
	reportedModel    []byte    // what the answer says it is of
	usage            probe.Usage
}

func (l *ledger) recycled() ledger {
	if cap(l.told) > maxHeld {
		l.told = nil
	}
	return ledger{intent: l.intent[:0], sampling: l.sampling[:0], told: l.told[:0], reportedModel: l.reportedModel[:0]}
}

// noteIntent keeps what the client asked of sampling.
func (q *request) noteIntent() {
	if q.json() && (q.router.records != nil || q.route.cache != nil) {
		q.intent = policy.AppendIntent(q.intent[:0], q.body, &q.scan, q.endpoint.surface)
	}
}

// noteSampling keeps what the pool makes of it.
func (q *request) noteSampling() {
	if q.json() && q.router.records != nil {
		q.sampling = policy.AppendSampling(q.sampling[:0], q.body, &q.scan, q.endpoint.surface, q.dest.extra)
	}
}

// tell keeps what a row needs of an answer that passes in pieces.
func (q *request) tell(p []byte) {
	if q.router.records != nil && q.endpoint.surface.Generative() && !q.sse && len(q.told)+len(p) <= maxTold {
		q.told = append(q.told, p...)
	}
}

// readUsage reads the usage of an answer that is no stream: body, or nil for one
// that was told.
func (q *request) readUsage(body []byte) {
	if q.router.records == nil || !q.endpoint.surface.Generative() {
		return
	}
	if body == nil {
		body = q.told
	}
	q.usage, _ = probe.ReadUsage(body, q.endpoint.surface)
	q.readModel(body)
}

// readModel reads the model that an answer names, body or the first events of a
// stream. Within a string the quotes of the key would be escaped, so that the
// first one found is the key of an object.
func (q *request) readModel(p []byte) {
	if q.router.records == nil || len(q.reportedModel) > 0 {
		return
	}
	const key = `"model"`
	i := bytes.Index(p, []byte(key))
	if i < 0 {
		return
	}
	p = bytes.TrimLeft(p[i+len(key):], " :\t\r\n")
	if len(p) == 0 || p[0] != '"' {
		return
	}
	for end := 1; end < len(p) && end < 6*maxModelName; end++ {
		switch p[end] {
		case '\\':
			end++
		case '"':
			q.reportedModel = probe.AppendUnquoted(q.reportedModel[:0], p[:end+1])
			return
		}
	}
}

// record writes the rows of a request that ends: that of its last attempt, and
// that of its failure where the answer is the router's own.
func (q *request) record(status int, code errorCode) {
	if q.router.records == nil || q.endpoint == nil || q.endpoint.kind > kindPass {
		return
	}
	if q.worker != nil && !q.tried.IsZero() {
		if q.sse {
			q.events.End()
			q.usage = q.events.Usage
		}
		q.recordAttempt(status, code)
	}
	if code == "" {
		return
	}
	row := q.row(record.TerminalFailure, status, code, q.start)
	row.Sampling = append(row.Sampling[:0], q.intent...)
	q.router.records.Add(row)
}

// recordAttempt writes the row of one try at q.worker.
func (q *request) recordAttempt(status int, code errorCode) {
	if q.router.records == nil {
		return
	}
	row := q.row(record.Attempt, status, code, q.tried)
	row.Attempt = q.tries
	row.Pool, row.Provider = q.dest.name, q.dest.engine.String()
	row.Worker = q.worker.URL()
	row.Sampling = append(row.Sampling[:0], q.sampling...)
	if q.firstToken > 0 {
		row.TTFT = q.firstToken - q.tried.Sub(q.start)
	}
	row.Stream = q.streamed && q.sse
	if q.usage.Seen {
		row.PromptTokens, row.CachedPromptTokens, row.CompletionTokens = q.usage.PromptTokens, q.usage.CachedPromptTokens, q.usage.CompletionTokens
	}
	row.FinishReason = q.usage.Finish
	row.ModelReported.Set(q.reportedModel)
	q.router.records.Add(row)
}

// recordHit writes the row of an answer from the cache.
func (q *request) recordHit(streamed bool) {
	if q.router.records == nil {
		return
	}
	row := q.row(record.CacheHit, q.status, "", q.start)
	row.Stream = streamed
	row.Sampling = append(row.Sampling[:0], q.intent...)
	q.router.records.Add(row)
}

// row returns a row with what all kinds have.
func (q *request) row(kind record.Kind, status int, code errorCode, since time.Time) *record.Row {
	row := q.router.records.Get()
	row.CreatedAt = since
	row.Duration = time.Since(since)
	row.RequestID.Set(q.id)
	row.Kind = kind
	row.Surface = q.endpoint.surface.String()
	row.Status, row.ErrorCode = status, string(code)
	row.Tenant.Set(q.who.tenant)
	if q.route != nil {
		row.Decision = q.route.name
	}
	switch {
	case q.target != nil && q.target.model != nil:
		row.Model.Set(q.target.model.name)
	default:
		row.Model.Set(q.model)
	}
	return row
}

// attemptFault returns the status and the code of an attempt that brought no
// answer.
func attemptFault(e *upstream.Error) (status int, code errorCode) {
	switch {
	case e.Fault == upstream.FaultCanceled:
		return statusClientGone, ""
	case e.Fault.Timeout():
		return fasthttp.StatusGatewayTimeout, codeTimeout
	case e.Fault == upstream.FaultIncomplete:
		return fasthttp.StatusBadGateway, codeBodyIncomplete
	}
	return fasthttp.StatusBadGateway, codeUnreachable
}
