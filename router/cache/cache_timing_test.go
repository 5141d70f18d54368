package cache

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/probe"
)

// conversation returns a chat body of about size bytes: turns of prose with the
// escapes that it has, and some members beside.
func conversation(size int) string {
	var s strings.Builder
	s.WriteString(`{"model":"llama","temperature":0.7,"top_p":0.9,"max_tokens":512,"seed":7,"user":"u-1","stream":true,"stream_options":{"include_usage":true},"messages":[`)
	const turn = `{"role":"user","content":"Tell me about the \"old\" harbour.\nIt was built in 1872, and the town grew around it; what remains of it today, and who looks after it? %s"}`
	for i := 0; s.Len() < size; i++ {
		if i > 0 {
			s.WriteByte(',')
		}
		fmt.Fprintf(&s, turn, strings.Repeat("Prose goes on. ", 20))
	}
	return s.String() + `]}`
}

// schema returns a body of about size bytes that is mostly structure, indented if
// wanted.
func schema(size int, space string) string {
	var s strings.Builder
	s.WriteString(`{"model":"llama","tools":[`)
	for i := 0; s.Len() < size; i++ {
		if i > 0 {
			s.WriteString("," + space)
		}
		fmt.Fprintf(&s, `{%[1]s"type":%[1]s"function",%[1]s"function":%[1]s{%[1]s"name":%[1]s"f%[2]d",%[1]s"parameters":%[1]s{"a":%[1]s[1,%[1]s2,%[1]s3.5],%[1]s"b":%[1]snull}}}`, space, i)
	}
	return s.String() + `]}`
}

var keyBodies = []struct{ name, body string }{
	{"1KiB", conversation(1 << 10)},
	{"19KB", conversation(19_000)},
	{"298KB", conversation(298_000)},
	{"schema", schema(19_000, "")},
	{"indented", schema(19_000, "\n        ")},
}

func BenchmarkKey(b *testing.B) {
	for _, c := range keyBodies {
		b.Run(c.name, func(b *testing.B) {
			src := []byte(c.body)
			var body probe.Body
			if f := probe.Scan(src, probe.SurfaceChat, 0, &body); f != probe.FaultNone {
				b.Fatal(f)
			}
			var k Builder
			fp := Fingerprint(Source{Models: []string{"llama"}})
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				k.Reset()
				k.Part(PartPool, fp)
				k.Body(probe.SurfaceChat, src, &body)
				_ = k.Sum()
			}
		})
	}
}

// BenchmarkSHA256 is what a key cannot be cheaper than.
func BenchmarkSHA256(b *testing.B) {
	for _, c := range keyBodies {
		b.Run(c.name, func(b *testing.B) {
			src := []byte(c.body)
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				_ = sha256.Sum256(src)
			}
		})
	}
}

// filled returns a store with n entries of 4 KiB and their keys.
func filled(n int) (*Memory, []Key) {
	m := NewMemory(1<<30, new(Stats))
	keys := make([]Key, n)
	for i := range keys {
		keys[i] = testKey(i)
		m.Put(&keys[i], testEntry(strings.Repeat("x", 4<<10)), time.Hour)
	}
	return m, keys
}

func BenchmarkMemory(b *testing.B) {
	m, keys := filled(10_000)
	defer m.Close()
	b.Run("hit", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if m.Get(&keys[i%len(keys)]) == nil {
				b.Fatal("a miss")
			}
		}
	})
	b.Run("miss", func(b *testing.B) {
		k := testKey(-1)
		b.ReportAllocs()
		for b.Loop() {
			if m.Get(&k) != nil {
				b.Fatal("a hit")
			}
		}
	})
	b.Run("put", func(b *testing.B) {
		e := testEntry("body")
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			m.Put(&keys[i%len(keys)], e, time.Hour)
		}
	})
	b.Run("put and evict", func(b *testing.B) {
		m := NewMemory(1<<20, new(Stats))
		defer m.Close()
		e := testEntry(strings.Repeat("x", 4<<10))
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			m.Put(&keys[i%len(keys)], e, time.Hour)
		}
	})
	b.Run("hit parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				if m.Get(&keys[i%len(keys)]) == nil {
					b.Error("a miss")
				}
			}
		})
	})
}

func BenchmarkCapture(b *testing.B) {
	c := New(NewMemory(64<<20, new(Stats)), new(Stats))
	defer c.Close()
	var cp Capture
	k := testKey(1)
	event := []byte("data: {\"choices\":[{\"delta\":{\"content\":\"word\"}}]}\n\n")
	b.SetBytes(int64(100 * len(event)))
	b.ReportAllocs()
	for b.Loop() {
		cp.Begin(200, testFields, Shape{MaxEntry: 1 << 20, Streamed: true})
		for range 100 {
			cp.Write(event)
		}
		c.Commit(&k, &cp, time.Hour)
	}
}

func BenchmarkJoin(b *testing.B) {
	c := New(NewMemory(1<<20, new(Stats)), new(Stats))
	defer c.Close()
	var s Seat
	k := testKey(1)
	b.ReportAllocs()
	for b.Loop() {
		c.Join(&k, &s)
		s.Land(nil)
	}
}

func BenchmarkDecode(b *testing.B) {
	raw := testEntry(strings.Repeat("x", 4<<10)).Encoded()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRedis(b *testing.B) {
	s := newServer(b)
	r, _ := newRedis(b, RedisOptions{Addr: s.addr()})
	k := testKey(1)
	e := testEntry(strings.Repeat("x", 4<<10))
	putAndSee(b, r, &k, e)
	b.Run("hit", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if r.Get(&k) == nil {
				b.Fatal("a miss")
			}
		}
	})
	b.Run("hit parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(16)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if r.Get(&k) == nil {
					b.Error("a miss")
				}
			}
		})
	})
	b.Run("put", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Put(&k, e, time.Hour)
		}
	})
	b.Run("hit while down", func(b *testing.B) {
		s.kill()
		for r.Get(&k) != nil || r.up.Load() {
			continue
		}
		b.ReportAllocs()
		for b.Loop() {
			r.Get(&k)
		}
	})
}
