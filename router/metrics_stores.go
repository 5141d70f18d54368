package router

import (
	"fmt"
	"io"

	"github.com/VictoriaMetrics/metrics"

	"sluice/router/cache"
)

// writeStores writes the metrics of the cache and of the records, if there are
// any.
func (r *Router) writeStores(w io.Writer) {
	if r.cache != nil {
		s := r.cache.Stats()
		counter := func(name string, n uint64) { metrics.WriteCounterUint64(w, "sluice_cache_"+name+"_total", n) }
		counter("hits", s.Hits.Load())
		counter("misses", s.Misses.Load())
		counter("bypasses", s.Bypass.Load())
		counter("coalesced", s.Coalesced.Load())
		counter("stores", s.Stores.Load())
		counter("too_large", s.TooLarge.Load())
		counter("evictions", s.Evictions.Load())
		counter("expired", s.Expired.Load())
		metrics.WriteGaugeUint64(w, "sluice_cache_bytes", uint64(max(s.Bytes.Load(), 0)))
		metrics.WriteGaugeUint64(w, "sluice_cache_entries", uint64(max(s.Entries.Load(), 0)))
		for kind := range cache.NumErrors {
			metrics.WriteCounterUint64(w, fmt.Sprintf("sluice_cache_errors_total{kind=%q}", kind), s.Errors[kind].Load())
		}
	}
	if r.records != nil {
		s := r.records.Stats()
		metrics.WriteCounterUint64(w, "sluice_records_written_total", s.Written)
		metrics.WriteCounterUint64(w, `sluice_records_dropped_total{reason="queue_full"}`, s.DroppedQueueFull)
		metrics.WriteCounterUint64(w, `sluice_records_dropped_total{reason="store_error"}`, s.DroppedStoreError)
		metrics.WriteCounterUint64(w, `sluice_records_dropped_total{reason="closed"}`, s.DroppedClosed)
		metrics.WriteCounterUint64(w, "sluice_records_pruned_total", s.Pruned)
		metrics.WriteGaugeUint64(w, "sluice_records_queue_length", uint64(s.Queued))
		metrics.WriteGaugeUint64(w, "sluice_records_up", uint64(number(s.Up)))
	}
}
