package sim_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"sluice/upstream/sim"
)

// An engine in a test: it answers on a port of its own and shows what it got.
func ExampleEngine() {
	e := sim.New(sim.Options{Text: "hello"})
	url, err := e.Start("127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close(context.Background())

	resp, err := http.Post(url+"/v1/chat/completions", "application/json",
		strings.NewReader(`{"messages":[{"role":"user","content":"hi"}],"stream":true}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, strings.Count(string(body), "data: "), err)

	seen := e.Requests()[0]
	fmt.Println(seen.Method, seen.Target, string(seen.Body))
	// Output:
	// 200 4 <nil>
	// POST /v1/chat/completions {"messages":[{"role":"user","content":"hi"}],"stream":true}
}
