package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const explainedConfig = checked + `
routing:
  decisions:
    - name: free
      rules: {operator: AND, conditions: [{type: model, name: m}, {type: header, name: x-tier, exact: free}]}
      sampling_contract: {params: {temperature: 1}}
`

func TestExplain(t *testing.T) {
	inDir(t, "c.yaml", explainedConfig, "body.json", `{"model":"m","temperature":null,"x":1}`)
	got := runVerb(t, "", "explain", "--config", "c.yaml", "--header", "x-tier: free", "body.json")
	want := `decision: free
  AND: true
    model is "m": true ("m")
    header "x-tier" is "free": true ("free")
pool: a
model: "m"
contract: reject (routing.decisions[0].sampling_contract)
sampling_contract: replace temperature at byte 13, null > 1
body:
{"model":"m","temperature":1,"x":1}
`
	if got.code != exitOK || got.stdout != want || got.stderr != "" {
		t.Errorf("unexpected explanation\n got %+v\nwant %s", got, want)
	}

	got = runVerb(t, `{"model":"m"}`, "explain", "--config", "c.yaml", "--diff", "-")
	if want := "body:\n{{+\"n\":2,+}\"model\":\"m\"}\n"; got.code != exitOK || !strings.HasSuffix(got.stdout, want) {
		t.Errorf("unexpected diff; got %+v; want %s", got, want)
	}

	got = runVerb(t, `{"model":"m","n":3}`, "explain", "--config", "c.yaml", "--json", "-")
	var x struct {
		Decision string
		Pool     string
		Refusal  struct {
			Status               int
			Code, Message, Param string
		}
	}
	if err := json.Unmarshal([]byte(got.stdout), &x); err != nil {
		t.Fatalf("the explanation is not JSON: %v in %s", err, got.stdout)
	}
	if got.code != exitFailed || x.Pool != "a" || x.Decision != "" || x.Refusal.Status != 400 ||
		x.Refusal.Code != "sampling_contract_violation" || x.Refusal.Param != "n" {
		t.Errorf("unexpected refusal; got %+v", got)
	}

	if got = runVerb(t, "", "explain", "--config", "c.yaml"); got.code != exitUsage || !strings.Contains(got.stderr, "want one file") {
		t.Errorf("unexpected end without a file; got %+v", got)
	}
	if got = runVerb(t, "", "explain", "--config", "c.yaml", "none.json"); got.code != exitUsage {
		t.Errorf("unexpected end without that file; got %+v", got)
	}
}

func TestExplain_Rollout(t *testing.T) {
	inDir(t, "c.yaml", strings.Replace(explainedConfig, "sampling_contract: {params: {temperature: 1}}", "sampling_contract: {params: {temperature: 1}, rollout: {share: 50%}}", 1),
		"body.json", `{"model":"m","temperature":0}`)
	sides := map[int]string{
		exitFailed: "rollout decisions.free.sampling_contract: enforced: the session or body is in the share of 50%\n",
		exitOK: "rollout decisions.free.sampling_contract: observed: the session or body is not in the share of 50%\n" +
			"observed: sampling_contract would refuse: temperature violates",
	}
	for session := range 20 {
		got := runVerb(t, "", "explain", "--config", "c.yaml", "--header", "x-tier: free", "--header", fmt.Sprint("x-session-id: ", session), "body.json")
		if want := sides[got.code]; want != "" && !strings.Contains(got.stdout, want) {
			t.Errorf("unexpected explanation\n got %+v\nwant %s", got, want)
		}
		sides[got.code] = ""
	}
	if sides[exitOK]+sides[exitFailed] != "" {
		t.Errorf("no session is on one of the sides: %v", sides)
	}
}
