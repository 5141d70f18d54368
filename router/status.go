package router

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// statusPage is the whole status page: it asks for nothing but /status.json.
//
//go:embed status/index.html
var statusPage []byte

// statusPolicy has a browser run and show nothing but what is in statusPage, and
// no page show it within (CSP level 3).
var statusPolicy = "default-src 'none'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" +
	"; script-src '" + hashOf("script") + "'; style-src '" + hashOf("style") + "'"

// hashOf returns the source expression for the only element of its name in the
// page.
func hashOf(element string) string {
	_, rest, _ := bytes.Cut(statusPage, []byte("<"+element+">"))
	text, _, ok := bytes.Cut(rest, []byte("</"+element+">"))
	if !ok {
		panic("BUG: the status page has no " + element)
	}
	sum := sha256.Sum256(text)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

func (r *Router) serveStatusPage(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	h.SetContentType("text/html; charset=utf-8")
	h.Set(fasthttp.HeaderContentSecurityPolicy, statusPolicy)
	h.Set(fasthttp.HeaderReferrerPolicy, "no-referrer")
	ctx.SetBody(statusPage)
}

// status is what the status page shows. Counts are since the start of the process;
// the page makes rates of them.
type status struct {
	Time       time.Time    `json:"time"`
	Version    string       `json:"version"`
	Started    time.Time    `json:"started"`
	Draining   bool         `json:"draining"`
	InFlight   int          `json:"in_flight"`
	Config     configView   `json:"config"`
	Reloads    reloadCounts `json:"reloads"`
	Pools      []poolView   `json:"pools"`
	Workers    []workerView `json:"workers"`
	MoreOthers int          `json:"workers_left_out"`
	Rejections []ruleCount  `json:"rejections"`
	Errors     []failure    `json:"errors"`
}

type reloadCounts struct {
	Good uint64 `json:"success"`
	Bad  uint64 `json:"failure"`
}

// poolView is a pool as the status page shows it.
type poolView struct {
	Name     string `json:"name"`
	Usable   int    `json:"usable"`
	Workers  int    `json:"workers"`
	InFlight int64  `json:"in_flight"`
	Queued   int    `json:"queued"`
	Retries  uint64 `json:"retries"`
	// Requests are those that came to the pool, and Answers what became of
	// them by the first digit of the status.
	Requests float64            `json:"requests"`
	Answers  map[string]float64 `json:"answers"`
	// TTFT counts the first tokens up to each of Bounds, in seconds, and all of
	// them last.
	Bounds []float64 `json:"ttft_bounds"`
	TTFT   []float64 `json:"ttft"`
}

// ruleCount is how often a rule has refused or changed something.
type ruleCount struct {
	Rule     string  `json:"rule"`
	Decision string  `json:"decision,omitempty"`
	Param    string  `json:"param,omitempty"`
	Action   string  `json:"action"`
	Count    float64 `json:"count"`
}

// shownWorkers bounds the workers of the status page, of which those that are not
// well come first. /workers has all.
const shownWorkers = 200

func (r *Router) serveStatus(ctx *fasthttp.RequestCtx) {
	s := status{
		Time:       time.Now(),
		Version:    r.version,
		Started:    r.started,
		Draining:   r.draining.Load(),
		InFlight:   r.InFlight(),
		Config:     r.configView(),
		Reloads:    reloadCounts{r.reloads.good.Load(), r.reloads.bad.Load()},
		Workers:    r.workerViews(),
		Rejections: []ruleCount{},
		Errors:     r.failures.latest(),
	}
	for _, p := range r.snap.Load().pools {
		v := poolView{
			Name: p.up.Name(), Usable: p.up.Usable(), Workers: len(p.up.Workers()), Queued: p.up.Queued(), Retries: p.up.Retries(),
			Answers: map[string]float64{}, Bounds: ttftBuckets, TTFT: make([]float64, len(ttftBuckets)+1),
		}
		for _, w := range p.up.Workers() {
			v.InFlight += w.Load()
		}
		s.Pools = append(s.Pools, v)
	}
	var text bytes.Buffer
	r.metrics.set.WritePrometheus(&text)
	for line := range strings.Lines(text.String()) {
		if m, ok := parseSample(line); ok {
			s.take(&m)
		}
	}
	slices.SortStableFunc(s.Rejections, func(a, b ruleCount) int { return int(b.Count - a.Count) })
	slices.SortStableFunc(s.Workers, func(a, b workerView) int { return wellness(&a) - wellness(&b) })
	if n := len(s.Workers) - shownWorkers; n > 0 {
		s.Workers, s.MoreOthers = s.Workers[:shownWorkers], n
	}
	answerJSON(ctx, &s)
}

// wellness orders workers, those that are not well first.
func wellness(w *workerView) int {
	if w.State == "up" {
		return 1
	}
	return 0
}

// take adds a sample of the metrics to what is shown, if it is a part of that.
func (s *status) take(m *sample) {
	if rule, ok := strings.CutPrefix(m.name, "sluice_contract_"); ok && m.value > 0 {
		s.Rejections = append(s.Rejections, ruleCount{"sampling_contract", "", m.labels["param"], strings.TrimSuffix(rule, "_total"), m.value})
		return
	}
	if rule, ok := strings.CutPrefix(m.name, "sluice_params_"); ok && m.value > 0 {
		s.Rejections = append(s.Rejections, ruleCount{"request_params", m.labels["decision"], m.labels["param"], strings.TrimSuffix(rule, "_total"), m.value})
		return
	}
	i := slices.IndexFunc(s.Pools, func(p poolView) bool { return p.Name == m.labels["pool"] })
	if i < 0 {
		return
	}
	p := &s.Pools[i]
	switch m.name {
	case "sluice_requests_total":
		p.Requests += m.value
	case "sluice_responses_total":
		if code := m.labels["code"]; code != "" {
			p.Answers[code[:1]+"xx"] += m.value
		}
	case "sluice_time_to_first_token_seconds_bucket":
		at := len(p.Bounds)
		if bound, err := strconv.ParseFloat(m.labels["le"], 64); err == nil {
			if j, ok := slices.BinarySearch(p.Bounds, bound); ok {
				at = j
			}
		}
		p.TTFT[at] += m.value
	}
}

// sample is one line of the metrics.
type sample struct {
	name   string
	labels map[string]string
	value  float64
}

// parseSample reads a line of Prometheus' text format as this package writes it.
func parseSample(line string) (m sample, ok bool) {
	line = strings.TrimSpace(line)
	at := strings.LastIndexByte(line, ' ')
	if at < 0 || line[0] == '#' {
		return m, false
	}
	value, err := strconv.ParseFloat(line[at+1:], 64)
	if err != nil {
		return m, false
	}
	name, labels, _ := strings.Cut(line[:at], "{")
	m = sample{name: name, labels: map[string]string{}, value: value}
	for labels != "" && labels != "}" {
		key, rest, found := strings.Cut(labels, "=")
		quoted, err := strconv.QuotedPrefix(rest)
		if !found || err != nil {
			return m, false
		}
		text, err := strconv.Unquote(quoted)
		if err != nil {
			return m, false
		}
		m.labels[key] = text
		labels = strings.TrimPrefix(rest[len(quoted):], ",")
	}
	return m, true
}
