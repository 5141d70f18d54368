package router

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
	"unsafe"
)

// accessLog writes one record a request. It never sees a body, and of the
// header only the request id.
type accessLog struct {
	handler slog.Handler
	lines   sync.Pool
}

// accessLine is the memory of one record. The attributes are passed as one
// group without a name, which slog writes inline: a record with more than five
// attributes of its own allocates. Times are whole microseconds, since slog
// allocates for each float, too.
type accessLine struct{ attrs [24]slog.Attr }

func newAccessLog(h slog.Handler) *accessLog {
	l := &accessLog{handler: h}
	l.lines.New = func() any { return new(accessLine) }
	return l
}

// account counts the request that ends and writes its line.
func (q *request) account(status int, code errorCode) {
	d := time.Since(q.start)
	q.endRollouts(status, code, q.start.Add(d))
	s := q.series
	if q.pool == nil {
		s.requests.Inc()
	}
	s.response(status).Inc()
	s.duration.Update(d.Seconds())
	if q.streamed {
		s.stream(q.outcome).Inc()
	}
	if q.firstToken > 0 && s.ttft != nil {
		s.ttft.Update(q.firstToken.Seconds())
	}
	q.noteFailure(status, code)
	if q.router.access != nil && q.logged(status, d) {
		q.router.access.write(q, status, code, d)
	}
}

// logged reports whether the request gets a line: each one that failed, was
// refused or was slow, and of the others a share.
func (q *request) logged(status int, d time.Duration) bool {
	c := &q.snap.cfg.Log
	switch {
	case !c.Access:
		return false
	case q.slow(d), q.outcome != outcomeOK, q.fault != nil, status >= 400, c.Sample >= 1:
		return true
	}
	return rand.Float64() < c.Sample
}

func (q *request) slow(d time.Duration) bool {
	limit := q.snap.cfg.Log.Slow
	return limit > 0 && d >= limit
}

func (l *accessLog) write(q *request, status int, code errorCode, d time.Duration) {
	line := l.lines.Get().(*accessLine)
	a := append(line.attrs[:0],
		slog.String("request_id", view(q.id)),
		slog.String("method", view(q.ctx.Method())),
		slog.String("path", view(q.path)),
		slog.Int("status", status),
		slog.String("outcome", string(q.outcome)),
		slog.Int64("duration_us", d.Microseconds()),
		slog.Int("bytes_in", q.bytesIn),
		slog.Int64("bytes_out", q.bytesOut),
	)
	if q.endpoint != nil {
		a = append(a, slog.String("surface", q.endpoint.surface.String()))
	}
	if q.pool != nil {
		a = append(a, slog.String("pool", q.pool.up.Name()), slog.Bool("stream", q.streamed))
	}
	if q.target != nil && q.target.model != nil {
		a = append(a, slog.String("model", view(q.target.model.name)))
	}
	if q.route != nil && q.route.name != "" {
		a = append(a, slog.String("decision", q.route.name))
	}
	if q.worker != nil {
		a = append(a, slog.String("worker", q.worker.URL()), slog.Int("tries", q.tries))
	}
	if q.queued > 0 {
		a = append(a, slog.Int64("queue_us", q.queued.Microseconds()))
	}
	if code != "" {
		a = append(a, slog.String("error_code", string(code)))
	}
	if q.firstByte > 0 {
		a = append(a, slog.Int64("first_byte_us", q.firstByte.Microseconds()))
	}
	if q.firstToken > 0 {
		a = append(a, slog.Int64("ttft_us", q.firstToken.Microseconds()))
	}
	level := slog.LevelInfo
	if q.slow(d) {
		a = append(a, slog.Bool("slow", true))
	}
	if q.fault != nil {
		a = append(a, slog.String("error", q.fault.Error()))
		level = slog.LevelWarn
	}
	r := slog.NewRecord(q.start, level, "request", 0)
	r.AddAttrs(slog.Attr{Value: slog.GroupValue(a...)})
	// A log that cannot be written must not stop traffic.
	_ = l.handler.Handle(context.Background(), r)
	clear(line.attrs[:])
	l.lines.Put(line)
}

// view returns b as a string without a copy. A handler writes a record out
// before Handle returns and keeps nothing of it.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
