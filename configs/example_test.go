package configs_test

import (
	"errors"
	"fmt"

	"sluice/configs"
)

func ExampleLoad() {
	c, err := configs.Load(configs.Options{
		Files: []string{"example.yaml"},
		Env:   []string{"SLUICE_POOLS__LLAMA__BALANCE=random"},
		Flags: []configs.Override{{Flag: "--listen", Path: "server.listen", Value: ":30000"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range []string{"server.listen", "server.drain", "pools[0].balance", "pools[1].timeouts.total"} {
		fmt.Println(path, "is from", c.Origin(path))
	}
	fmt.Println(c.Server.Listen, c.Server.Drain, c.Pools[0].Balance, c.Pools[1].Timeouts.Total)
	// Output:
	// server.listen is from --listen
	// server.drain is from example.yaml:43:10
	// pools[0].balance is from SLUICE_POOLS__LLAMA__BALANCE
	// pools[1].timeouts.total is from default
	// :30000 30s random 1h0m0s
}

func ExampleFaults() {
	_, err := configs.Load(configs.Options{
		Env: []string{"SLUICE_SERVER__DRAIN=30", "SLUICE_LOG__LEVLE=info"},
	})
	var faults configs.Faults
	if errors.As(err, &faults) {
		for _, f := range faults {
			fmt.Println(f)
		}
	}
	// Output:
	// SLUICE_LOG__LEVLE: unknown variable: "levle" is no key of log; did you mean SLUICE_LOG__LEVEL?
	// SLUICE_SERVER__DRAIN: server.drain: must be a duration, got 30: add a unit, such as 30s
}

func ExampleParseContractFlags() {
	overrides, err := configs.ParseContractFlags(`{"temperature":1,"top_p":{"min":0.9,"max":1}}`, "observe")
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := configs.Load(configs.Options{Flags: overrides})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Contract.OnConflict, c.Contract.Params)

	_, err = configs.ParseContractFlags("", "observe")
	fmt.Println(err)
	// Output:
	// observe map[temperature:1 top_p:map[max:1 min:0.9]]
	// --sampling-param-conflict: needs --override-sampling-params beside it
}

func ExampleBytes() {
	b, err := configs.ParseBytes("32MiB")
	fmt.Println(int64(b), b, err)
	// Output: 33554432 32MiB <nil>
}
