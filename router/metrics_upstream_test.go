package router

import (
	"strings"
	"testing"
	"time"

	"sluice/configs"
	"sluice/upstream"
)

// What the pool counts of its workers is exported, and so is what the router
// itself needs for a request.
func TestUpstreamMetrics(t *testing.T) {
	s := startStand(t, func(c *configs.Config) { c.Pools[0].Retry.Attempts = 2; c.Pools[0].Retry.Budget = 1 })
	s.chat(chatBody)
	s.chat(chatBody, "x-sim-status: 503")
	s.chat(chatBody, "x-sim-status: 404")
	s.send("GET", "/health", "") // is none of a worker's
	worker := `pool="sim",worker="` + s.router.snap.Load().pools[0].up.Workers()[0].URL() + `"`
	for metric, want := range map[string]string{
		`sluice_exchanges_total{pool="sim",class="ok"}`:                     "1",
		`sluice_exchanges_total{pool="sim",class="busy"}`:                   "1",
		`sluice_exchanges_total{pool="sim",class="client_error"}`:           "1",
		`sluice_exchanges_total{pool="sim",class="canceled"}`:               "0",
		`sluice_exchanges_resent_total{pool="sim"}`:                         "0",
		`sluice_worker_exchanges_total{` + worker + `,class="ok"}`:          "1",
		`sluice_worker_exchanges_total{` + worker + `,class="busy"}`:        "1",
		`sluice_worker_exchanges_total{` + worker + `,class="timeout"}`:     "",
		`sluice_worker_state{` + worker + `,state="up"}`:                    "1",
		`sluice_worker_state{` + worker + `,state="down"}`:                  "0",
		`sluice_worker_state{` + worker + `,state="draining"}`:              "0",
		`sluice_workers_joined_total{pool="sim"}`:                           "1",
		`sluice_workers_left_total{pool="sim"}`:                             "0",
		`sluice_retries_by_reason_total{pool="sim",reason="status_503"}`:    "0", // there is no other worker
		`sluice_upstream_first_byte_seconds_count{pool="sim"}`:              "3",
		`sluice_upstream_first_byte_seconds_bucket{pool="sim",le="+Inf"}`:   "3",
		`sluice_upstream_first_byte_seconds_bucket{pool="sim",le="65.536"}`: "3",
		`sluice_upstream_connect_seconds_bucket{pool="sim",le="65.536"}`:    "1",
		`sluice_policy_duration_seconds_count`:                              "3",
		`sluice_router_overhead_seconds_count`:                              "3",
		`sluice_policy_duration_seconds_bucket{le="+Inf"}`:                  "3",
		`sluice_tls_certificate_expiry_timestamp_seconds{listener="data"}`:  "",
	} {
		if got := s.metric(metric); got != want {
			t.Errorf("unexpected %s: %q; want %q", metric, got, want)
		}
	}
}

// A bucket of Prometheus' holds those below it, the last one all.
func TestWriteTimes(t *testing.T) {
	times := upstream.Times{Sum: 3 * time.Second}
	times.Buckets[0], times.Buckets[1], times.Buckets[len(times.Buckets)-1] = 1, 2, 4
	var b strings.Builder
	writeTimes(&b, "m", "p", &times)
	for _, want := range []string{
		"m_bucket{pool=\"p\",le=\"0.0005\"} 1\n", "m_bucket{pool=\"p\",le=\"0.001\"} 3\n", "m_bucket{pool=\"p\",le=\"65.536\"} 3\n",
		"m_bucket{pool=\"p\",le=\"+Inf\"} 7\n", "m_sum{pool=\"p\"} 3\n", "m_count{pool=\"p\"} 7\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}

// A source that does not answer is counted.
func TestDiscoveryFailures(t *testing.T) {
	s := startStand(t, func(c *configs.Config) { c.Pools[0].Discover.File = t.TempDir() + "/none" })
	eventually(t, "a failure of discovery", func() bool {
		for line := range strings.Lines(s.ask("GET", "/metrics", "").body) {
			if strings.HasPrefix(line, `sluice_discovery_failures_total{pool="sim",source="`) && !strings.HasSuffix(line, " 0\n") {
				return true
			}
		}
		return false
	})
}

// A time falls into the first bucket whose bound it does not pass.
func TestSpent(t *testing.T) {
	var s spent
	for _, d := range []time.Duration{0, 5 * time.Microsecond, 6 * time.Microsecond, time.Second, 2 * time.Second} {
		s.observe(d)
	}
	var b strings.Builder
	s.write(&b, "m")
	for _, want := range []string{
		"m_bucket{le=\"5e-06\"} 2\n", "m_bucket{le=\"1e-05\"} 3\n", "m_bucket{le=\"0.1\"} 3\n", "m_bucket{le=\"1\"} 4\n",
		"m_bucket{le=\"+Inf\"} 5\n", "m_sum 3.000011\n", "m_count 5\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}
