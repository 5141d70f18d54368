//go:build !race

package router

import (
	"testing"
	"time"

	"sluice/configs"
)

// A rollout costs a request no allocation, on either side.
func TestRollout_AllocatesNothing(t *testing.T) {
	ro := newRollout(&configs.NamedRollout{Rollout: &configs.Rollout{Share: 0.5, AbortOn: configs.AbortOn{Rejected: 1, Errors: 1}}})
	in := &intake{body: []byte(`{"model":"m"}`)}
	now := time.Now()
	if n := testing.AllocsPerRun(1000, func() {
		g := ruling{hash: uint64(now.UnixNano()) * 0x9e3779b97f4a7c15, hashed: true}
		enforced := g.sides.params.decide(ro, &g, in)
		ro.count(now, enforced, enforced)
		ro.fail(now)
		now = now.Add(time.Second)
	}); n != 0 {
		t.Errorf("unexpected allocations: %v", n)
	}
	if ro.state.enforced.Load() == 0 || ro.state.observed.Load() == 0 {
		t.Error("one of the sides was not taken")
	}
}
