package router

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/configs"
	"sluice/policy"
)

const rolledOut = `
sampling_contract: {params: {temperature: 1}, rollout: {share: %s, abort_on: {rejected: 10%%, errors: 20%%}, min_requests: 20}}
pools:
  - {name: sim, workers: [{url: "ENGINE0"}], breaker: {failures: 0}, retry: {attempts: 1}}
routing:
  decisions:
    - name: capped
      rules: {type: header, name: x-tier, exact: free}
      rollout: {share: 50%%}
      plugins: [{type: request_params, configuration: {max_tokens_limit: 5, blocked_params: [user]}}]
`

func (s *stand) wantMetrics(want ...string) {
	s.t.Helper()
	for _, w := range want {
		name, value, _ := strings.Cut(w, " ")
		eventually(s.t, w, func() bool { return s.metric(name) == value })
	}
}

// A session stays on its side, the rule is enforced there and observed elsewhere,
// and both are counted.
func TestRollout_Share(t *testing.T) {
	s, _ := startPools(t, 1, fmt.Sprintf(rolledOut, "30%"))
	in := 0
	for i := range 40 {
		session := fmt.Sprint("session ", i)
		want := 200
		if policy.InShare(policy.RequestHash([]byte(session), nil), 0.3) {
			want = 400
			in++
		}
		if in > 15 {
			break // not to abort it
		}
		for _, body := range []string{`{"model":"m","messages":[],"temperature":0}`, `{"model":"m","messages":[],"temperature":2}`} {
			if got := s.chat(body, "x-session-id: "+session); got.status != want {
				t.Fatalf("unexpected status of %s; got %d; want %d", session, got.status, want)
			}
		}
		if in*2 > 15 {
			break
		}
	}
	n := in * 2
	if in == 0 {
		t.Fatal("no session is in the share")
	}
	s.wantMetrics(fmt.Sprintf(`sluice_rollout_enforced_total{rollout="sampling_contract"} %d`, n),
		fmt.Sprintf(`sluice_rollout_rejected_total{rollout="sampling_contract"} %d`, n),
		fmt.Sprintf(`sluice_contract_rejected_total{param="temperature"} %d`, n),
		`sluice_contract_observed_total{param="temperature"} `+s.metric(`sluice_rollout_observed_total{rollout="sampling_contract"}`),
		`sluice_rollout_aborted{rollout="sampling_contract"} 0`)
	if s.metric(`sluice_rollout_observed_total{rollout="sampling_contract"}`) == "0" {
		t.Error("all sessions are in the share")
	}
}

// Past a bound the rule only observes, says so once, and stays so after a reload of
// the same rollout; a changed one starts anew.
func TestRollout_AbortsOnRejections(t *testing.T) {
	s, _ := startPools(t, 1, fmt.Sprintf(rolledOut, "100%"))
	bad := func() int { return s.chat(`{"model":"m","messages":[],"temperature":0}`).status }
	for i := range 20 {
		if got := bad(); got != 400 {
			t.Fatalf("unexpected status of request %d: %d", i, got)
		}
	}
	for range 3 {
		if got := bad(); got != 200 {
			t.Fatalf("unexpected status after the abort: %d", got)
		}
	}
	s.wantMetrics(`sluice_rollout_aborted{rollout="sampling_contract"} 1`, `sluice_rollout_enforced_total{rollout="sampling_contract"} 20`,
		`sluice_rollout_observed_total{rollout="sampling_contract"} 3`)
	if n := strings.Count(s.log.String(), "rollout aborted"); n != 1 {
		t.Errorf("unexpected lines about the abort: %d\n%s", n, s.log)
	}
	x := s.router.snap.Load().rules.Explain(Question{Target: "/v1/chat/completions", Body: []byte(`{"model":"m","temperature":0}`)})
	if len(x.Rollouts) != 1 || !strings.Contains(x.Rollouts[0].Side, "aborted") || len(x.Observed) != 1 || x.Refusal != nil {
		t.Errorf("unexpected explanation: %+v", x)
	}
	cfg := *s.router.snap.Load().cfg
	reload := func() {
		t.Helper()
		if _, err := s.router.Reload(&cfg); err != nil {
			t.Fatal(err)
		}
	}
	reload()
	if got := bad(); got != 200 {
		t.Errorf("a reload of the same rollout has begun anew: %d", got)
	}
	changed := *cfg.Contract
	rollout := *changed.Rollout
	rollout.Share = 0.999999999
	changed.Rollout, cfg.Contract = &rollout, &changed
	reload()
	if got := bad(); got != 400 {
		t.Errorf("a changed rollout has not begun anew: %d", got)
	}
	s.wantMetrics(`sluice_rollout_aborted{rollout="sampling_contract"} 0`, `sluice_rollout_enforced_total{rollout="sampling_contract"} 1`)
}

func TestRollout_AbortsOnErrors(t *testing.T) {
	s, _ := startPools(t, 1, fmt.Sprintf(rolledOut, "100%"))
	for range 16 {
		if got := s.chat(`{"model":"m","messages":[]}`); got.status != 200 {
			t.Fatalf("unexpected status %d", got.status)
		}
	}
	for range 5 {
		if got := s.chat(`{"model":"m","messages":[]}`, "x-sim-fail: status=500"); got.status != 500 {
			t.Fatalf("unexpected status %d", got.status)
		}
	}
	s.wantMetrics(`sluice_rollout_errors_total{rollout="sampling_contract"} 5`, `sluice_rollout_aborted{rollout="sampling_contract"} 1`)
	if got := s.chat(`{"model":"m","messages":[],"temperature":0}`); got.status != 200 {
		t.Errorf("unexpected status after the abort: %d", got.status)
	}
}

// request_params are under the rollout of their decision.
func TestRollout_Params(t *testing.T) {
	s, fleet := startPools(t, 1, fmt.Sprintf(rolledOut, "1%"))
	for i, session := range []string{sessionIn(t, 0.5, true), sessionIn(t, 0.5, false)} {
		body := `{"model":"m","messages":[],"max_tokens":50,"user":"u"}`
		if got := s.chat(body, "x-tier: free", "x-session-id: "+session); got.status != 200 {
			t.Fatalf("unexpected status %d", got.status)
		}
		want := []string{`{"model":"m","messages":[],"max_tokens":5}`, body}[i]
		if got := string(fleet[0].Requests()[i].Body); got != want {
			t.Errorf("unexpected body; got %s; want %s", got, want)
		}
	}
	s.wantMetrics(`sluice_rollout_enforced_total{rollout="decisions.capped"} 1`, `sluice_rollout_observed_total{rollout="decisions.capped"} 1`,
		`sluice_params_capped_total{decision="capped",param="max_tokens"} 1`, `sluice_params_would_be_capped_total{decision="capped",param="max_tokens"} 1`,
		`sluice_params_blocked_total{decision="capped",param="user"} 1`, `sluice_params_would_be_blocked_total{decision="capped",param="user"} 1`)
}

// What was answered to one side is not the cached answer of the other, whose body
// is edited otherwise.
func TestRollout_SidesDoNotShareAnswers(t *testing.T) {
	s, fleet := startPools(t, 1, `
pools: [{name: sim, workers: [{url: "ENGINE0"}]}]
routing:
  decisions:
    - name: capped
      rollout: {share: 50%}
      plugins: [{type: request_params, configuration: {max_tokens_limit: 5}}, {type: response_cache, configuration: {ttl: 1h}}]
`)
	for _, want := range []string{"miss", "hit"} {
		for _, in := range []bool{true, false} {
			got := s.chat(`{"model":"m","messages":[],"max_tokens":50}`, "x-session-id: "+sessionIn(t, 0.5, in))
			if got.status != 200 || got.header.Get(headerCache) != want {
				t.Errorf("unexpected answer: %d, cache %q; want %q", got.status, got.header.Get(headerCache), want)
			}
		}
	}
	if n := len(fleet[0].Requests()); n != 2 {
		t.Errorf("unexpected requests at the engine: %d", n)
	}
}

// sessionIn returns a session that is in the share, or not, and not in that of the
// contract.
func sessionIn(t *testing.T, share float64, in bool) string {
	t.Helper()
	for i := range 1000 {
		session := fmt.Sprint(i)
		if hash := policy.RequestHash([]byte(session), nil); policy.InShare(hash, share) == in && !policy.InShare(hash, 0.01) {
			return session
		}
	}
	t.Fatal("no session found")
	return ""
}

// Bounds look back over the window alone, and need the least number of requests.
func TestRollout_Window(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	ro := newRollout(&configs.NamedRollout{Rollout: &configs.Rollout{Share: 1, Over: 16 * time.Second, MinRequests: 10, AbortOn: configs.AbortOn{Rejected: 0.5}}})
	count := func(n int, rejected bool) (aborted bool) {
		for range n {
			aborted = ro.count(now, true, rejected) || aborted
		}
		return aborted
	}
	if count(9, true) {
		t.Fatal("aborted by fewer than the least number of requests")
	}
	now = now.Add(15 * time.Second) // still in the window
	if enforced, rejected, _ := ro.recent(now); enforced != 9 || rejected != 9 {
		t.Fatalf("unexpected counts: %d, %d", enforced, rejected)
	}
	now = now.Add(time.Second) // no longer
	if count(20, false) || count(20, true) {
		t.Fatal("aborted by half of the requests, which is the bound")
	}
	ro.count(now.Add(-10*time.Second), true, false) // one that began earlier
	if enforced, rejected, _ := ro.recent(now); enforced != 41 || rejected != 20 {
		t.Errorf("unexpected counts: %d, %d", enforced, rejected)
	}
	if ro.count(now, false, true) || !count(3, true) || count(1, true) {
		t.Error("not aborted once by more than half of them")
	}
	if ro.enforces(1) {
		t.Error("an aborted rollout enforces")
	}
}

// What rules that observe would do is logged, once a second for a rule and
// parameter, and never a value of the client.
func TestObserved_Logged(t *testing.T) {
	s, _ := startPools(t, 1, `
sampling_contract: {on_conflict: observe, params: {temperature: 1, top_p: {min: 0.5, max: 1}}}
pools: [{name: sim, workers: [{url: "ENGINE0"}]}]
routing:
  decisions:
    - name: watched
      rules: {type: header, name: x-tier, exact: free}
      plugins: [{type: request_params, configuration: {max_tokens_limit: 5, blocked_params: [user], on_violation: observe}}]
`)
	s.chat(`{"model":"m","messages":[],"temperature":0.123456789}`)
	s.chat(`{"model":"m","messages":[],"temperature":"canary"}`)
	s.chat(`{"model":"m","messages":[],"temperature":1,"top_p":"canary"}`)
	s.chat(`{"model":"m","messages":[],"temperature":1,"max_tokens":777777777,"user":"canary"}`, "x-tier: free")
	s.chat(`{"model":"m","messages":[],"temperature":1,"user":"canary"}`, "x-tier: free")
	log := s.log.String()
	for _, want := range []string{
		"rule=sampling_contract would=refuse param=temperature value=below",
		`rule=sampling_contract would=refuse param=top_p value="not a number"`,
		"rule=decisions.watched would=clamp param=max_tokens value=above",
		"rule=decisions.watched would=block param=user",
	} {
		if strings.Count(log, want) != 1 {
			t.Errorf("the log does not have once: %s\n%s", want, log)
		}
	}
	if strings.Contains(log, "canary") || strings.Contains(log, "123456789") || strings.Contains(log, "777777777") {
		t.Errorf("the log has values of clients: %s", log)
	}
	var p pace
	now := time.Unix(5, 0)
	if !p.allow(1, now) || p.allow(1, now.Add(time.Second-1)) || !p.allow(2, now) || !p.allow(1, now.Add(time.Second)) {
		t.Error("unexpected pace")
	}
}
