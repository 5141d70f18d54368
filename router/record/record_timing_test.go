package record

import (
	"syscall"
	"testing"
	"time"
)

func BenchmarkAdd(b *testing.B) {
	b.Run("serial", func(b *testing.B) {
		r, err := start(Options{}, nowhere{}.open)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			w := r.Get()
			fillRow(w)
			r.Add(w)
		}
		closeRecorder(b, r)
	})
	b.Run("parallel", func(b *testing.B) {
		r, err := start(Options{}, nowhere{}.open)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				w := r.Get()
				fillRow(w)
				r.Add(w)
			}
		})
		closeRecorder(b, r)
	})
}

// BenchmarkStore measures what the writer does: one operation is a batch of the
// default size. cpu-ns/row is of this process; a server's comes on top.
func BenchmarkStore(b *testing.B) {
	for _, name := range []string{SQLite, Postgres} {
		b.Run(name, func(b *testing.B) {
			db := sqliteDB
			if name == Postgres {
				db = postgresDB
			}
			d := db(b)
			o := Options{Store: d.store, DSN: d.dsn}
			open, err := o.opener()
			if err != nil {
				b.Fatal(err)
			}
			s, err := open(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			rows := make([]*Row, DefaultBatch)
			for i := range rows {
				rows[i] = new(Row)
				fillRow(rows[i])
			}
			b.ReportAllocs()
			n, cpu := 0, cpuTime(b)
			for b.Loop() {
				now := time.Now()
				for _, w := range rows {
					w.CreatedAt = now
				}
				if err := s.write(b.Context(), rows); err != nil {
					b.Fatal(err)
				}
				n += len(rows)
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(cpuTime(b)-cpu)/float64(n), "cpu-ns/row")
			if err := s.close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// cpuTime returns what this process has used.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
