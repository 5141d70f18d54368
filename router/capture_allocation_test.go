//go:build !race

package router

import (
	"testing"

	"github.com/valyala/fasthttp"

	"sluice/configs"
)

// A request that is captured costs the data path no allocation, once buffers have
// grown; nor does its redaction.
func TestCapture_AllocatesNothing(t *testing.T) {
	c := &capture{cfg: configs.Capture{Sample: 1}, fields: []string{"content-type", "x-tier"}, redact: newRedactor(&configs.Config{}), queue: make(chan *captured, 1)}
	c.free.New = func() any { return &captured{} }
	q := &request{snap: &snapshot{capture: c}, ctx: &fasthttp.RequestCtx{}}
	q.ctx.Request.Header.Set("x-tier", "free")
	q.path, q.body, q.hasBody = []byte("/generate"), []byte(`{"model":"m","text":"Hi","sampling_params":{"top_k":"5"}}`), true
	if n := testing.AllocsPerRun(1000, func() {
		q.hashed = false
		q.capture()
		x := <-c.queue
		c.redact.redact(x.line[x.bodyAt:])
		c.release(x)
	}); n != 0 {
		t.Errorf("unexpected allocations: %v", n)
	}
	if c.queued.Load() != 0 || c.dropped.Load() != 0 {
		t.Errorf("unexpected counts: %d bytes queued, %d dropped", c.queued.Load(), c.dropped.Load())
	}
}
