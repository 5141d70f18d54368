package cache_test

import (
	"fmt"
	"time"

	"sluice/probe"
	"sluice/router/cache"
	"sluice/upstream/h1"
)

// A request's way: look up, lead or wait, gather, commit, land.
func Example() {
	stats := new(cache.Stats)
	c := cache.New(cache.NewMemory(64<<20, stats), stats)
	defer c.Close()
	fingerprint := cache.Fingerprint(cache.Source{Models: []string{"llama"}})

	serve := func(src string) string {
		var body probe.Body
		if f := probe.Scan([]byte(src), probe.SurfaceChat, 0, &body); f != probe.FaultNone {
			return "not looked up"
		}
		var b cache.Builder // these three are reused in the request path
		var seat cache.Seat
		var capture cache.Capture

		b.Reset()
		b.Part(cache.PartPool, fingerprint)
		b.Part(cache.PartNamespace, []byte("tenant-a"))
		b.Body(probe.SurfaceChat, []byte(src), &body)
		key := b.Sum()

		if e := c.Get(&key, false); e != nil {
			return "hit: " + string(e.Body())
		}
		if !c.Join(&key, &seat) {
			seat.Prepare() // and Arm it at the client's connection
			if e, err := seat.Wait(time.Minute, false); err == nil {
				return "joined: " + string(e.Body())
			}
		}
		// From here on the engine answers. Land does nothing for one that waited.
		fields := []h1.Field{{Name: []byte("Content-Type"), Value: []byte("application/json")}}
		capture.Begin(200, fields, cache.Shape{MaxEntry: 1 << 20})
		capture.Write([]byte(`{"choices":[]}`))
		seat.Land(c.Commit(&key, &capture, time.Hour))
		return "miss"
	}

	fmt.Println(serve(`{"model":"llama","seed":1}`))
	fmt.Println(serve(`{"seed": 1, "model": "llama", "user": "u"}`))
	fmt.Println(serve(`{"model":"llama","seed":2}`))
	// Output:
	// miss
	// hit: {"choices":[]}
	// miss
}

func ExampleParseDirectives() {
	fmt.Printf("%+v\n", cache.ParseDirectives([]byte("max-age=60, No-Cache")))
	// Output:
	// {NoStore:false NoCache:true}
}
