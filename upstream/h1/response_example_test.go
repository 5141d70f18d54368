package h1_test

import (
	"fmt"

	"sluice/upstream/h1"
)

// A driver reads into a buffer, gives the head what it wants and the rest to
// the body, until the answer is done or the connection ends.
func ExampleResponse() {
	reads := []string{"HTTP/1.1 200 OK\r\nContent-Type: text/ev", "ent-stream\r\nTransfer-Encoding: chunked\r\n\r\n8\r\ndata", ": 1\n\r\n0\r\n\r\n"}

	var r h1.Response
	r.Reset([]byte("POST"))
	headDone := false
	for _, read := range reads {
		p := []byte(read)
		if !headDone {
			n, done, err := r.FeedHead(p)
			if err != nil {
				fmt.Println("cannot read the head:", err)
				return
			}
			if headDone = done; !done {
				continue
			}
			fmt.Printf("%d %s: %s\n", r.Status, r.Fields[0].Name, r.Fields[0].Value)
			p = p[n:]
		}
		payload, n, done, err := r.FeedBody(p)
		if err != nil {
			fmt.Println("cannot read the body:", err)
			return
		}
		fmt.Printf("%q done=%v excess=%d\n", payload, done, len(p)-n)
	}
	fmt.Println("reusable:", r.Reusable())
	// Output:
	// 200 Content-Type: text/event-stream
	// "data" done=false excess=0
	// ": 1\n" done=true excess=0
	// reusable: true
}

func ExampleAppendRequest() {
	head := h1.AppendRequest(nil, []byte("POST"), []byte("/generate"), []byte("10.0.0.11:30000"), nil, 2)
	fmt.Printf("%q\n", head)
	// Output:
	// "POST /generate HTTP/1.1\r\nHost: 10.0.0.11:30000\r\nContent-Length: 2\r\n\r\n"
}
