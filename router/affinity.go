package router

import (
	"github.com/valyala/fasthttp"

	"sluice/upstream"
)

// Header fields that name the session of a request, the first one first. The
// second is that of SGLang's router.
const (
	headerSession    = "x-session-id"
	headerRoutingKey = "x-smg-routing-key"
)

// The members that engines put into a prompt, in the order in which chat
// templates do. The last ones grow from turn to turn, the first ones do not.
var (
	promptHead = [...]string{"tools", "system", "instructions"}
	promptTail = [...]string{"messages", "prompt", "input", "text"}
)

// affinityKey returns what of the request the choice of its worker depends on:
// the session that its header names or, where the pool asks for it, the raw
// bytes of its conversation in blocks.
func (q *request) affinityKey() *upstream.Key {
	k := &q.key
	k.Session, k.Blocks = 0, k.Blocks[:0]
	a := q.pool.up.Affinity()
	if !a.Session {
		return k
	}
	if s := session(&q.ctx.Request.Header); len(s) > 0 {
		k.Session = upstream.SessionKey(s)
		return k
	}
	if a.Block == 0 || q.form || len(q.body) == 0 {
		return k
	}
	seed := upstream.SessionKey(q.model)
	for _, name := range promptHead {
		if m := q.member(name); m != nil {
			k.Blocks = a.AppendBlocks(k.Blocks, seed, m.Val.Of(q.body), true)
		}
	}
	for _, name := range promptTail {
		if m := q.member(name); m != nil {
			// The last byte closes a list or string that the next turn goes on.
			part := m.Val.Of(q.body)
			k.Blocks = a.AppendBlocks(k.Blocks, seed, part[:len(part)-1], false)
		}
	}
	return k
}

// session returns what names the session of a request, or nothing.
func session(h *fasthttp.RequestHeader) []byte {
	for _, name := range [...]string{headerSession, headerRoutingKey} {
		if v := h.Peek(name); len(v) > 0 {
			return v
		}
	}
	return nil
}
