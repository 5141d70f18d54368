//go:build !race

package upstream

import (
	"strings"
	"testing"

	"sluice/upstream/h1"
)

func TestAllocations(t *testing.T) {
	f := func(name string, want float64, run func()) {
		t.Helper()
		run() // the buffers grow once
		if n := testing.AllocsPerRun(200, run); n > want {
			t.Errorf("%s: unexpected allocations; got %v; want at most %v", name, n, want)
		}
	}
	const small = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
	f("buffered exchange", 0, warm(t, post("{}"), small))
	f("body of two buffers", 0, warm(t, post(strings.Repeat("x", 100), strings.Repeat("x", 2*bufSize)), small))
	f("streamed answer", 0, warm(t, post("{}"), chunkedHead+strings.Repeat("5\r\nhello\r\n", 9000)+"0\r\n\r\n"))
	// The goroutine that writes takes one.
	f("large body", 1, warm(t, post(strings.Repeat("x", 4*inlineBody)), small))
	edits := FieldEdits{Set: fieldsOf("authorization: Bearer k"), Remove: [][]byte{[]byte("x-internal")}}
	fields := make([]h1.Field, 0, 8)
	client := fieldsOf("Accept: */*", "Authorization: Bearer client", "X-Internal: 1")
	f("field edits", 0, func() { fields = edits.Apply(append(fields[:0], client...)) })
	for _, balance := range Balances {
		p := newFleet(t, balance, 2*exactWorkers)
		f(balance, 0, func() { p.Pick().Release() })
		text := make([]byte, 8<<10)
		var k Key
		f(balance+" with a key", 0, func() {
			text[len(text)/2]++ // half is known, half is not
			k.Session, k.Blocks = 0, p.Affinity().AppendBlocks(k.Blocks[:0], 1, text, false)
			choose(t, p, &k)
			k.Session = SessionKey(text)
			choose(t, p, &k)
		})
	}
}
