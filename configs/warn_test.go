package configs

import (
	"strings"
	"testing"
)

func TestWarnings(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		inDir(t, "a.yaml", text)
		c := mustLoad(t, Options{Files: []string{"a.yaml"}})
		var got []string
		for _, w := range c.Warnings() {
			got = append(got, w.Path+": "+w.Msg)
			if w.Origin.Name != "a.yaml" || w.Origin.Line == 0 {
				t.Errorf("unexpected origin of a warning; got %v", w)
			}
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("unexpected warnings of\n%s\n got %s\nwant %s", text, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	const pool = `pools: [{name: a, models: [m], aliases: {al: m}, workers: [{url: "http://10.0.0.1:80"}]}]` + "\n"
	decisions := func(list ...string) string { return pool + "routing: {decisions: [" + strings.Join(list, ", ") + "]}" }
	params := func(conf string) string {
		return decisions("{name: x, plugins: [{type: request_params, configuration: {" + conf + "}}]}")
	}
	const at = "routing.decisions[0].plugins[0].configuration."

	f(pool)
	f(`pools: [{name: a, workers: [{url: "http://10.0.0.1:80"}]}]`,
		"pools[0].models: the pool a lists no models, so it serves every model that no other pool lists")
	f(`pools: [{name: a, models: [m], workers: [{url: "http://10.0.0.1:80"}], extra_body: {dimensions: 5, top_k: 1}}]`,
		"pools[0].extra_body: dimensions: extra_body has no effect on embeddings and the other surfaces that generate nothing; "+
			"set such members, as dimensions, with force in a decision for {type: surface, name: embeddings}")

	f(params("max_tokens_limit: 5"), at+"max_tokens_limit: a request that gives no output limit is not capped: set default_max_tokens, too")
	f(params("max_tokens_limit: 5, default_max_tokens: 5"))
	f(params("default_max_tokens: 6, max_tokens_limit: 5"), at+"default_max_tokens: the default, 6, is above the limit and will be lowered to it: 5")
	f(params("known_params: [a]"), at+"known_params: has no effect without strip_unknown")
	f("sampling_contract: {params: {n: {min: 2, max: 3}}}\n"+params("max_n: 1"),
		"routing.decisions[0].plugins[0].configuration.max_n: sampling_contract wants n to be at least 2: no request can meet both")
	f("cache: {store: \"off\"}\n"+decisions("{name: x, plugins: [{type: response_cache}]}"),
		"routing.decisions[0].plugins[0].configuration: nothing is stored: cache.store is off")

	model := func(name string) string { return "{type: model, name: " + name + "}" }
	and := func(rules ...string) string {
		return "{operator: AND, conditions: [" + strings.Join(rules, ", ") + "]}"
	}
	or := func(rules ...string) string { return "{operator: OR, conditions: [" + strings.Join(rules, ", ") + "]}" }
	pair := func(first, second string) string {
		return decisions("{name: x, priority: 2, rules: "+first+"}", "{name: y, priority: 1, rules: "+second+"}")
	}
	const stream = "{type: stream, value: true}"
	never := func(text string, want bool) {
		t.Helper()
		inDir(t, "a.yaml", text)
		warnings := mustLoad(t, Options{Files: []string{"a.yaml"}}).Warnings()
		got := len(warnings) == 1 && strings.Contains(warnings[0].Msg, "the decision y can never win: x comes before it")
		if got != want {
			t.Errorf("unexpected warnings of\n%s\n got %v; want the one of y: %v", text, warnings, want)
		}
	}
	never(decisions("{name: x, priority: 1}", "{name: y, rules: "+stream+"}"), true)
	never(decisions("{name: x, rules: "+stream+"}", "{name: y}"), false)
	never(pair(model("m"), model("m")), true)
	never(pair(model("m"), and(model("m"), stream)), true)
	never(pair(and(model("m"), stream), model("m")), false)
	never(pair(and(stream, model("m")), and(model("m"), stream, "{type: surface, name: chat}")), true)
	never(pair(or(model("m"), stream), model("m")), true)
	never(pair(or(model("m"), stream), or(stream, model("m"))), true)
	never(pair(model("m"), or(model("m"), stream)), false)

	f(decisions("{name: x, rules: " + model("al") + "}"))
	f(decisions("{name: x, pool: a, rules: " + model("other") + "}"))
	f(decisions("{name: x, rules: "+model("all")+"}"),
		`routing.decisions[0].rules.name: no pool serves the model "all"; did you mean al?`)
}
