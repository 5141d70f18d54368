package gone_test

import (
	"fmt"
	"net"

	"sluice/upstream/gone"
)

// task is work for a client that can be given up.
type task chan struct{}

// Cancel implements gone.Canceler.
func (t task) Cancel() { close(t) }

// A request arms its connection with what is to be cancelled and disarms it
// when the work is done.
func ExampleWatcher() {
	w, err := gone.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	ln := w.Listen(inner)
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	accepted, err := ln.Accept()
	if err != nil {
		fmt.Println(err)
		return
	}

	conn, generation := gone.Of(accepted), make(task)
	conn.Arm(generation)
	fmt.Println("client leaves:", client.Close())
	<-generation // the worker is silent, nothing has been written
	conn.Disarm()
	fmt.Println("gone:", conn.Gone())

	fmt.Println(conn.Close(), ln.Close(), w.Close())
	// Output:
	// client leaves: <nil>
	// gone: true
	// <nil> <nil> <nil>
}
