//go:build linux

package main

import (
	"math"
	"testing"
	"time"
)

func TestHistogram_Buckets(t *testing.T) {
	for _, n := range []uint64{0, 1, 31, 32, 33, 63, 64, 1000, 123456789, math.MaxInt64} {
		got := middle(bucket(n))
		if math.Abs(got-float64(n)) > float64(n)/64 {
			t.Errorf("bucket of %d stands for %v", n, got)
		}
	}
	last := -1
	for n := range uint64(1 << 12) {
		if i := bucket(n); i < last || i > last+1 {
			t.Fatalf("bucket of %d is %d after %d", n, i, last)
		} else {
			last = i
		}
	}
}

func TestHistogram_Quantile(t *testing.T) {
	var a, b histogram
	for i := range 1000 {
		h := &a
		if i%2 == 0 {
			h = &b
		}
		h.add(time.Duration(i+1) * time.Microsecond)
	}
	a.add(-time.Second)
	a.merge(&b)
	f := func(q float64, want time.Duration) {
		t.Helper()
		if got := a.quantile(q); got < want-want/32 || got > want+want/32 {
			t.Errorf("unexpected quantile %v; got %v; want %v", q, got, want)
		}
	}
	f(0, 0)
	f(.5, 500*time.Microsecond)
	f(.99, 990*time.Microsecond)
	f(1, 1000*time.Microsecond)
	if got := new(histogram).quantile(.5); got != 0 {
		t.Errorf("unexpected quantile of nothing %v", got)
	}
}

func TestMedian(t *testing.T) {
	f := func(want float64, list ...float64) {
		t.Helper()
		if got := median(list); got != want {
			t.Errorf("unexpected median of %v; got %v; want %v", list, got, want)
		}
	}
	f(0)
	f(3, 3)
	f(2, 3, 1)
	f(3, 9, 1, 3)
	f(2.5, 9, 1, 3, 2)
}

func TestMedians(t *testing.T) {
	got := medians([]measurement{{figRate: 1, figMemory: 30}, {figRate: 2, figMemory: 20}, {figRate: 3, figMemory: 10}})
	if want := (measurement{figRate: 2, figMemory: 20}); got != want {
		t.Fatalf("unexpected medians; got %v; want %v", got, want)
	}
}
