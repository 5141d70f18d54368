package configs

import "testing"

func TestFaultsRolloutAndCapture(t *testing.T) {
	cases := []faultCase{
		{`sampling_contract: {params: {n: 1}, rollout: {share: 5%, abort_on: {rejected: 2%, errors: 0.01}, over: 5m, min_requests: 10}}`, ""},
		{`sampling_contract: {on_conflict: replace, params: {n: 1}, rollout: {share: 1}}`, ""},
		{`sampling_contract: {params: {n: 1}, rollout: {share: 5}}`, `a.yaml:6:54: sampling_contract.rollout.share: must be a share such as 5% or 0.05, at most 100%, got 5`},
		{`sampling_contract: {params: {n: 1}, rollout: {share: 101%}}`, `a.yaml:6:54: sampling_contract.rollout.share: must be a share such as 5% or 0.05, at most 100%, got "101%"`},
		{`sampling_contract: {params: {n: 1}, rollout: {share: "5"}}`, `a.yaml:6:54: sampling_contract.rollout.share: must be a share such as 5% or 0.05, at most 100%, got "5"`},
		{`sampling_contract: {params: {n: 1}, rollout: {}}`, `a.yaml:6:46: sampling_contract.rollout.share: must be set, above 0`},
		{`sampling_contract: {params: {n: 1}, rollout: {share: 1, over: 9s}}`, `a.yaml:6:63: sampling_contract.rollout.over: must be from 10s to 24h, got 9s`},
		{`sampling_contract: {params: {n: 1}, rollout: {share: 1, min_requests: -1}}`, `a.yaml:6:71: sampling_contract.rollout.min_requests: must be from 1 to 1000000, got -1`},
		{`sampling_contract: {on_conflict: allow, params: {n: 1}, rollout: {share: 1}}`, `a.yaml:6:66: sampling_contract.rollout: needs on_conflict reject or replace, got "allow"`},
		{`sampling_contract: {on_conflict: observe, params: {n: 1}, rollout: {share: 1}}`, `a.yaml:6:68: sampling_contract.rollout: needs on_conflict reject or replace, got "observe"`},
		{
			"sampling_contract: {params: {n: 1}}\nrouting: {decisions: [{name: x, sampling_contract: {narrow: true, params: {top_k: 1}, rollout: {share: 1}}}]}",
			"a.yaml:7:96: routing.decisions[0].sampling_contract.rollout: " + narrowRollout,
		},
		{
			"sampling_contract: {params: {n: 1}}\nrouting: {decisions: [{name: x, sampling_contract: {narrow: true, params: {top_k: 1}}, rollout: {share: 1}}]}",
			"a.yaml:7:97: routing.decisions[0].rollout: the sampling_contract " + narrowRollout,
		},
		{`routing: {decisions: [{name: x, rollout: {share: 1}}]}`, `a.yaml:6:42: routing.decisions[0].rollout: needs a sampling_contract or a plugin request_params`},
		{
			`routing: {decisions: [{name: x, rollout: {share: 1}, sampling_contract: {params: {n: 1}, rollout: {share: 1}}}]}`,
			`a.yaml:6:42: routing.decisions[0].rollout: must not be given beside sampling_contract.rollout`,
		},
		{
			`routing: {decisions: [{name: x, rollout: {share: 1}, plugins: [{type: request_params, configuration: {max_n: 1, on_violation: observe}}]}]}`,
			`a.yaml:6:42: routing.decisions[0].rollout: has nothing to enforce: the plugin request_params observes`,
		},
		{`routing: {decisions: [{name: x, rollout: {share: 50%}, plugins: [{type: request_params, configuration: {max_n: 1}}]}]}`, ""},
		{`capture: {file: f, sample: 100%, max_bytes: 4KiB, redact: false}`, ""},
		{`capture: {file: f, sample: 0%, max_bytes: 1}`, "a.yaml:6:28: capture.sample: must be above 0; leave out file to write nothing\na.yaml:6:43: capture.max_bytes: must be at least 4KiB, got 1"},
	}
	for i := range cases {
		cases[i].text = poolPair + cases[i].text
	}
	testFaults(t, "a.yaml", cases)
}

// The most specific rollout holds, and one that narrows a contract has that of it.
func TestRolloutOf(t *testing.T) {
	inDir(t, "a.yaml", `
sampling_contract: {params: {n: 1}, rollout: {share: 5%}}
pools:
  - {name: a, models: [m, n, o], workers: [{url: "http://10.0.0.1:80"}], sampling_contract: {narrow: true, params: {top_k: 1}}, model_contracts: {n: {params: {n: 2}}, o: {params: {n: 2}, rollout: {share: 6%}}}}
  - {name: b, workers: [{url: "http://10.0.0.2:80"}]}
routing:
  decisions:
    - {name: x, sampling_contract: {params: {n: 2}, rollout: {share: 7%}}}
    - {name: y, sampling_contract: {params: {n: 2}}, rollout: {share: 8%}}
    - {name: z, plugins: [{type: request_params, configuration: {max_n: 1}}], rollout: {share: 9%}}
`)
	c := mustLoad(t, Options{Files: []string{"a.yaml"}})
	f := func(d, p int, model, want string) {
		t.Helper()
		var of *Decision
		if d >= 0 {
			of = &c.Routing.Decisions[d]
		}
		got := ""
		if r := c.RolloutOf(of, &c.Pools[p], model); r != nil {
			got = r.Name + " " + r.Share.String()
		}
		if got != want {
			t.Errorf("unexpected rollout of decision %d, pool %d and model %s; got %q; want %q", d, p, model, got, want)
		}
	}
	f(-1, 1, "", "sampling_contract 5%")
	f(-1, 0, "m", "sampling_contract 5%")
	f(-1, 0, "n", "")
	f(-1, 0, "o", "pools.a.model_contracts.o 6%")
	f(0, 0, "o", "decisions.x.sampling_contract 7%")
	f(1, 0, "o", "decisions.y 8%")
	f(2, 1, "", "sampling_contract 5%")
	if r := c.Routing.Decisions[2].NamedRollout(); r.Name != "decisions.z" || r.Window().String() != "5m0s" || r.Least() != 100 {
		t.Errorf("unexpected rollout of a decision: %+v", r)
	}
}
