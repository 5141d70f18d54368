package policy

import (
	"slices"
	"strings"
	"testing"

	"sluice/probe"
)

func TestKeyTable(t *testing.T) {
	keys := strings.Fields(openaiChat + " " + vllmChat + " a b ab ba aa")
	table := newKeyTable(keys)
	for i, key := range keys {
		if got := table.find([]byte(key)); keys[got] != key || got > i {
			t.Fatalf("unexpected value of %q; got %d; want %d", key, got, i)
		}
		for _, other := range []string{key + "x", key[:len(key)-1], strings.ToUpper(key), "", strings.Repeat(key, 40)} {
			if !slices.Contains(keys, other) && table.find([]byte(other)) >= 0 {
				t.Fatalf("%q is found and is no key", other)
			}
		}
	}
	var empty keyTable
	if empty.find(nil) >= 0 || empty.find([]byte("a")) >= 0 {
		t.Fatal("the empty table holds a key")
	}
}

// TestKeyTableSpreads bounds the slots that a look-up of a known key touches.
func TestKeyTableSpreads(t *testing.T) {
	for s := range knownOf {
		for e := range numEngines {
			run, longest := 0, 0
			for _, slot := range slices.Concat(knownOf[s][e].keys.slots, knownOf[s][e].keys.slots) {
				if run++; slot.value == 0 {
					run = 0
				}
				longest = max(longest, run)
			}
			if longest > 12 {
				t.Errorf("%s for %s has %d taken slots in a row", probe.Surface(s), e, longest)
			}
		}
	}
}

func TestKnownKeysAreWrittenOnce(t *testing.T) {
	f := func(texts ...string) {
		t.Helper()
		words := strings.Fields(strings.Join(texts, " "))
		seen := map[string]bool{}
		for _, w := range words {
			if seen[w] {
				t.Errorf("%q is written twice", w)
			}
			seen[w] = true
			if len(w) > maxKey || strings.Trim(w, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
				t.Errorf("%q is no key", w)
			}
		}
	}
	f(openaiChat, vllmChat)
	f(openaiChat, sglangChat)
	f(openaiCompletions, vllmCompletions)
	f(openaiCompletions, sglangCompletions)
	f(openaiResponses, vllmResponses)
	f(openaiResponses, sglangResponses)
	f(anthropicMessages, vllmMessages)
	f(anthropicMessages, sglangMessages)
	f(sglangGenerate, sglangSampling)
}

// TestKnownKeysHoldWhatIsGoverned: what the router itself injects and governs is
// known where it is injected.
func TestKnownKeysHoldWhatIsGoverned(t *testing.T) {
	for s := probe.SurfaceChat; s <= probe.SurfaceMessages; s++ {
		for e := range numEngines {
			for _, f := range []probe.Field{outputField[s], probe.FieldModel, probe.FieldStream, probe.FieldTemperature, probe.FieldTopP} {
				if !knownOf[s][e].fields.Has(f) {
					t.Errorf("%s for %s does not know %s", s, e, f)
				}
			}
			if knownOf[s][e].keys.find([]byte(thinkingKey)) < 0 {
				t.Errorf("%s for %s does not know %s", s, e, thinkingKey)
			}
		}
	}
}

func TestParseEngine(t *testing.T) {
	for e := range numEngines {
		if got, err := ParseEngine(e.String()); err != nil || got != e {
			t.Fatalf("unexpected engine of %q: %v, %v", e, got, err)
		}
	}
	if got, err := ParseEngine(""); err != nil || got != EngineOpenAI {
		t.Fatalf("unexpected engine of nothing: %v, %v", got, err)
	}
	const want = `unknown engine "vlm" (did you mean "vllm"?); expected openai, vllm, sglang`
	if _, err := ParseEngine("vlm"); err == nil || err.Error() != want {
		t.Fatalf("unexpected error; got %v; want %s", err, want)
	}
	if numEngines.String() != "unknown" {
		t.Fatal("an engine that does not exist has a name")
	}
}
