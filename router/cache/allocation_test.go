//go:build !race

package cache

import (
	"testing"
	"time"

	"sluice/probe"
)

func TestAllocations(t *testing.T) {
	f := func(name string, want float64, run func()) {
		t.Helper()
		for range 10 {
			run()
		}
		if n := testing.AllocsPerRun(100, run); n != want {
			t.Errorf("%s: unexpected allocations; got %v; want %v", name, n, want)
		}
	}
	fp := Fingerprint(Source{Models: []string{"llama"}})
	name, value := []byte("anthropic-beta"), []byte("x")
	var b Builder
	for what, src := range map[string]string{
		"key of a conversation": conversation(19_000),
		"key of a schema":       schema(19_000, "\n  "),
		"key of escaped keys":   `{"\u0061":1,"\u0062":[1, 2],"\ud800":3,"user":"u"}`,
	} {
		src := []byte(src)
		var body probe.Body
		if f := probe.Scan(src, probe.SurfaceChat, 0, &body); f != probe.FaultNone {
			t.Fatal(f)
		}
		f(what, 0, func() {
			b.Reset()
			b.Part(PartPool, fp)
			b.Part(PartField, name, value)
			b.Body(probe.SurfaceChat, src, &body)
			_ = b.Sum()
		})
	}

	c := New(NewMemory(1<<20, new(Stats)), new(Stats))
	defer c.Close()
	k, missing := testKey(1), testKey(2)
	var cp Capture
	event := []byte("data: {}\n\n")
	// The node, the Entry and its bytes.
	f("a capture and its commit", 3, func() {
		cp.Begin(200, testFields, Shape{MaxEntry: 1 << 10, Streamed: true})
		cp.Write(event)
		c.Commit(&k, &cp, time.Hour)
	})
	f("a capture that is dropped", 0, func() {
		cp.Begin(200, testFields, Shape{MaxEntry: 1 << 10})
		cp.Write(event)
		cp.Drop()
	})
	fields := testFields[:0:0]
	f("a hit", 0, func() {
		e := c.Get(&k, false)
		fields = e.AppendFields(fields[:0])
		_, _ = e.Stream(true)
		_ = e.Age(time.Now())
	})
	f("a miss", 0, func() { c.Get(&missing, false) })
	var s Seat
	f("a lead", 0, func() {
		c.Join(&k, &s)
		s.Land(nil)
	})
	var lead Seat
	c.Join(&k, &lead)
	f("a wait", 0, func() {
		c.Join(&k, &s)
		s.Prepare()
		s.Cancel()
		if _, err := s.Wait(time.Hour, false); err != ErrCanceled {
			t.Fatal(err)
		}
	})
	lead.Land(nil)
	control := []byte(`no-cache, max-age="0"`)
	f("directives", 0, func() { ParseDirectives(control) })
}
