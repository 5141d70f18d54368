package cache

import (
	"crypto/sha256"
	"strconv"
	"testing"
	"time"

	"sluice/upstream/h1"
)

// patience bounds every wait for something that must happen.
const patience = 10 * time.Second

var testFields = []h1.Field{
	{Name: []byte("date"), Value: []byte("Tue, 01 Dec 2026 00:00:00 GMT")},
	{Name: []byte("content-type"), Value: []byte("application/json")},
	{Name: []byte("Set-Cookie"), Value: []byte("a=b")},
	{Name: []byte("x-ratelimit-remaining"), Value: []byte("7")},
}

func testKey(i int) Key { return sha256.Sum256([]byte(strconv.Itoa(i))) }

// testEntry returns an entry that is not streamed.
func testEntry(body string) *Entry {
	var c Capture
	c.Begin(200, testFields, Shape{MaxEntry: len(body)})
	c.Write([]byte(body))
	return c.entry(time.Now())
}

// eventually waits until ok.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}
