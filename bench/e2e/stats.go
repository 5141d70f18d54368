//go:build linux

package main

import (
	"math/bits"
	"slices"
	"time"
)

// histogram counts durations in buckets that are at most 1/32 wide, relative to
// what they hold. It goes from process to process as it is.
type histogram struct {
	Counts []uint64
	N      uint64
}

const subBits = 5 // buckets a power of two, as a power of two

func bucket(n uint64) int {
	if n < 1<<subBits {
		return int(n)
	}
	shift := bits.Len64(n) - subBits - 1
	return (shift+1)<<subBits + int(n>>shift&(1<<subBits-1))
}

// middle returns the value in the middle of bucket i.
func middle(i int) float64 {
	if i < 1<<subBits {
		return float64(i)
	}
	shift := i>>subBits - 1
	low := uint64(1<<subBits+i&(1<<subBits-1)) << shift
	return float64(low) + float64(uint64(1)<<shift)/2
}

// add counts d; one below zero counts as zero.
func (h *histogram) add(d time.Duration) {
	i := bucket(uint64(max(d, 0)))
	if i >= len(h.Counts) {
		h.Counts = append(h.Counts, make([]uint64, i+1-len(h.Counts))...)
	}
	h.Counts[i]++
	h.N++
}

// merge adds what o has counted.
func (h *histogram) merge(o *histogram) {
	if n := len(o.Counts) - len(h.Counts); n > 0 {
		h.Counts = append(h.Counts, make([]uint64, n)...)
	}
	for i, n := range o.Counts {
		h.Counts[i] += n
	}
	h.N += o.N
}

// quantile returns the duration that the share q of all is not longer than, or
// 0 where there are none.
func (h *histogram) quantile(q float64) time.Duration {
	if h.N == 0 {
		return 0
	}
	rank := uint64(q * float64(h.N-1))
	for i, n := range h.Counts {
		if rank < n {
			return time.Duration(middle(i))
		}
		rank -= n
	}
	return time.Duration(middle(len(h.Counts) - 1))
}

// The quantiles of the report.
var quantiles = [...]struct {
	q    float64
	name string
}{{.5, "p50"}, {.99, "p99"}, {.999, "p99.9"}}

// median returns the median of list, or 0 where it is empty. list is kept.
func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	n := len(list)
	return (list[(n-1)/2] + list[n/2]) / 2
}
