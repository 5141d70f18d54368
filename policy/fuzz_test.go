package policy

import (
	"testing"

	"sluice/probe"
)

// FuzzJudge compares Judge and the splice with the slow twin that decodes.
func FuzzJudge(f *testing.F) {
	for _, s := range []string{
		`{}`,
		`{ }`,
		"\n\t {\"a\":1}",
		`{"a":"}"}`,
		"{\"a\":1} \n",
		`{"temperature":1,"temperature":0.5}`,
		`{"temperature":9,"temper\u0061ture":1}`,
		`{"model":"x","temperature":1e400,"stream":true}`,
		`{"temperature" : null , "top_p":"0.95","n":true}`,
		`{"sampling_params":[{"temperature":2},{"top_p":5,"top_p":1}]}`,
		`{"sampling_params":null,"text":"a"}`,
		`{"sampling_params":[{},null]}`,
		`{"text":"a"}`,
	} {
		for i := range testContracts {
			f.Add(s, byte(i), byte(i), i%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, body string, mode, params byte, generate bool) {
		surface := probe.SurfaceChat
		if generate {
			surface = probe.SurfaceGenerate
		}
		checkJudge(t, testModes[int(mode)%len(testModes)], testContracts[int(params)%len(testContracts)], surface, body)
	})
}
