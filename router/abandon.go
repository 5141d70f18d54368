package router

import "sluice/probe"

// abortPath is where SGLang takes {"rid": …} and stops the request with that id,
// so that it need not find out by itself that nobody reads the answer.
const abortPath = "/abort_request"

// Bounds of a rid, in bytes as it was written. SGLang stops every request whose
// id begins with the one it is given, so that a short one, and above all an
// empty one, would stop those of others; what it makes up itself has 32.
const (
	minRID = 8
	maxRID = 256
)

// abortTarget returns the path that an engine takes aborts at, or "".
func abortTarget(engine string) string {
	if engine == "sglang" {
		return abortPath
	}
	return ""
}

// noteRID keeps the id by which the worker will know the request, while the
// body is there. A list of ids, one for each prompt of a batch, is left alone:
// the batch ends with its connection.
func (q *request) noteRID() {
	q.rid = q.rid[:0]
	if !q.pool.aborts || q.form || len(q.body) == 0 || !q.endpoint.surface.Generative() {
		return
	}
	m := q.scan.Last(probe.FieldRID)
	if m == nil || m.Kind != probe.KindString {
		return
	}
	if n := m.Val.Len() - len(`""`); minRID <= n && n <= maxRID {
		q.rid = append(q.rid, m.Val.Of(q.body)...)
	}
}

// abandon has the worker stop the request, if its client left before the worker
// had answered it.
func (q *request) abandon() {
	if q.outcome != outcomeClientGone || len(q.rid) == 0 || q.exchange.Complete() {
		return
	}
	body := make([]byte, 0, len(`{"rid":}`)+len(q.rid))
	body = append(body, `{"rid":`...)
	body = append(body, q.rid...)
	q.pool.up.Abort(q.worker, append(body, '}'))
}
