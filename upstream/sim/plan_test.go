package sim

import (
	"net/http"
	"testing"
	"time"
)

// TestJitter draws the waits of one request: they lie in the band, differ, and
// come again with the same seed and number.
func TestJitter(t *testing.T) {
	draw := func(seed, n uint64) (list []time.Duration) {
		t.Helper()
		p, err := newPlan(&Options{Jitter: 0.5, Seed: seed}, n, http.Header{})
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			d := p.jittered(time.Second)
			if d < time.Second/2 || d > 3*time.Second/2 {
				t.Fatalf("unexpected wait; got %s; want 0.5s to 1.5s", d)
			}
			list = append(list, d)
		}
		return list
	}
	first := draw(1, 1)
	if first[0] == first[1] {
		t.Errorf("two waits are the same: %s", first[0])
	}
	wantEqual(t, "wait drawn again", draw(1, 1)[99], first[99])
	if draw(2, 1)[0] == first[0] || draw(1, 2)[0] == first[0] {
		t.Error("another seed or request has the same first wait")
	}
	p := &plan{}
	wantEqual(t, "wait without jitter", p.jittered(time.Second), time.Second)
}
