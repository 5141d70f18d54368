package h2c_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"sluice/upstream/h1"
	"sluice/upstream/h2c"
	"sluice/upstream/sim"
)

// One exchange with an engine, on a connection that could carry many.
func ExampleConn() {
	engine := sim.New(sim.Options{Text: "hello"})
	url, err := engine.Start("127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close(context.Background())

	nc, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, err := h2c.Probe(nc, h2c.Config{}, time.Now().Add(2*time.Second))
	if err != nil {
		fmt.Println(err) // it is an HTTP/1.1 server, most likely
		return
	}
	defer conn.Close()

	stream, ok := conn.Reserve()
	if !ok {
		fmt.Println("the connection is full")
		return
	}
	defer stream.Close()
	stream.SetDeadline(time.Now().Add(10 * time.Second))
	body := []byte(`{"prompt":"hi"}`)
	err = stream.Do(&h2c.Request{
		Method: []byte("POST"), Scheme: []byte("http"), Authority: []byte("engine"), Path: []byte("/v1/completions"),
		Fields: []h1.Field{{Name: []byte("content-type"), Value: []byte("application/json")}},
		Body:   [][]byte{body}, Length: int64(len(body)),
	})
	var n int
	for err == nil {
		var piece []byte
		piece, err = stream.Next()
		n += len(piece)
	}
	fmt.Println(stream.Status(), n > 0, err == io.EOF)
	// Output: 200 true true
}
