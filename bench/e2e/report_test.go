//go:build linux

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func TestReport(t *testing.T) {
	r := report{
		machine: []string{"machine: m"},
		missing: []string{"haproxy is not installed: skipped"},
		targets: []*target{{name: nameDirect}, {name: nameNginx, program: nginx(t.TempDir())}, {name: "sluice"}},
		took:    3 * time.Second,
		outcomes: []outcome{
			{scenario{Name: "p", Title: "Posts", Kind: kindPost}, map[string]measurement{
				nameDirect: {figRate: 1000},
				nameNginx:  {figRate: 500, figCPU: 20, figWhole: 5},
				"sluice":   {figRate: 250, figCPU: 30, figWhole: 7, figWhole + 1: 8, figWhole + 2: 9},
			}},
			{scenario{Name: "s", Title: "Streams", Kind: kindStream, Want: want{Pace: 1}}, map[string]measurement{
				nameDirect: {figFirstByte: 100, figGap: 10},
				nameNginx:  {},
				"sluice":   {figFirstByte: 140, figGap: 12, figCPU: 1},
			}},
			{scenario{Name: "h", Title: "Open", Kind: kindHold}, map[string]measurement{
				nameNginx: {figCPU: 2, figOpening: 100, figMemory: 2048},
				"sluice":  {figCPU: 1, figOpening: 50, figMemory: 1024},
			}},
		},
	}
	var w bytes.Buffer
	plots := map[string][]byte{}
	r.render(&w, plots)
	for _, want := range []string{
		"- machine: m\n", "- haproxy is not installed: skipped\n", "took 3s",
		"| sluice | 250 | 30.00 | 1.50 | 0.25 | 7 / 8 / 9 |\n",
		"| sluice | 0 | 1.00 | – | 40 / 0 / 0 | 2 / 0 / 0 |\n",
		"| sluice | 0 | 1.00 | 0.50 | 50 | 0.50 | 1.0 |\n",
		"nginx: `nginx -p nginx -c nginx.conf -e error.log`", "server ENGINE;",
	} {
		if !strings.Contains(w.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, w.String())
		}
	}
	if len(plots) != 3 {
		t.Errorf("unexpected number of plots %d", len(plots))
	}
}

// TestChart: what is drawn is well-formed, and the longest bar fills its place.
func TestChart(t *testing.T) {
	c := chart{title: "a < b & c", unit: "µs", bars: []bar{{"<one>", 1}, {"two", 4}}}
	p := c.svg()
	d := xml.NewDecoder(bytes.NewReader(p))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("malformed: %v\n%s", err, p)
		}
	}
	for _, want := range []string{`width="450.0"`, `width="112.5"`, "a &lt; b &amp; c", ">4.00<"} {
		if !bytes.Contains(p, []byte(want)) {
			t.Errorf("the plot lacks %q:\n%s", want, p)
		}
	}
	empty := chart{}
	if !bytes.Contains(empty.svg(), []byte("</svg>")) {
		t.Error("a chart without bars is not drawn")
	}
}
