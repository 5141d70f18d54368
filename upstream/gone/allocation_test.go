//go:build !race

package gone

import "testing"

type nothing struct{}

func (*nothing) Cancel() {}

func TestAllocations(t *testing.T) {
	f := func(name string, run func()) {
		t.Helper()
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Fatalf("%s: unexpected allocations; got %v; want 0", name, n)
		}
	}
	server, client := newTestbed(t, newNotifier).pair()
	canceler := new(nothing)
	f("Arm and Disarm", func() {
		server.Arm(canceler)
		server.Disarm()
	})
	head := []byte(request)
	f("guard", func() {
		var g headGuard
		g.feed(head)
	})
	p := make([]byte, 4096)
	f("Read", func() {
		if _, err := client.Write(head); err != nil {
			t.Fatalf("cannot write: %v", err)
		}
		if _, err := server.Read(p); err != nil {
			t.Fatalf("cannot read: %v", err)
		}
		server.guard.begin()
		server.NextHead()
	})
}
