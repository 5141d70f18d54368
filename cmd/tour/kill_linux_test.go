package main

import (
	"net"
	"testing"
	"time"
)

// TestKilledTourTakesItsChildrenAlong: only Linux ends children by itself.
func TestKilledTourTakesItsChildrenAlong(t *testing.T) {
	t.Parallel()
	addrs, cmd, _ := serveTour(t)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	end := time.Now().Add(10 * time.Second)
	for _, addr := range addrs {
		for {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				break
			}
			_ = c.Close()
			if time.Now().After(end) {
				t.Fatalf("%s still accepts connections", addr)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}
