//go:build soak

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sluice/configs"
	"sluice/upstream/sim"
)

var soakTime = flag.Duration("soak", 30*time.Minute, "how long TestSoak lasts")

// soakReloads is how many reloads a soak spreads over its time.
const soakReloads = 1000

// TestSoak runs the built command for a long time under mixed surfaces and sizes,
// clients that leave, workers that change their moods and one that dies, and 1,000
// reloads, each tenth of a faulty file. At the end every request is accounted for,
// and memory, goroutines and files have not grown. It needs the build tag soak; see make soak.
func TestSoak(t *testing.T) {
	engines := startEngines(t, 6)
	mortal := freeAddr(t)
	cfg := chaosConfig(engines)
	cfg.Pools[0].Workers = append(cfg.Pools[0].Workers, configs.Worker{URL: "http://" + mortal})
	cfg.Server.Listen, cfg.Server.AdminListen = "127.0.0.1:0", "127.0.0.1:0"
	s := startSluice(t, cfg)
	idle, live := s.sample(), s.live()

	ctx, stop := context.WithTimeout(context.Background(), *soakTime)
	defer stop()
	var all sync.WaitGroup
	all.Go(func() { disturb(ctx, engines) })
	all.Go(func() { dieAndReturn(ctx, t, mortal) })
	all.Go(func() { s.reloadOften(ctx, *soakTime/soakReloads) })
	c := chaos{next: mixedRequest}
	for i := range 32 {
		all.Go(func() { c.client(ctx, t, uint64(i), "http://"+s.data) })
	}
	samples := s.watch(ctx, max(*soakTime/100, time.Second))
	all.Wait()
	for _, e := range engines {
		e.Update(func(o *sim.Options) { o.Fail = sim.Failure{} })
		e.SetHealth(200)
	}

	s.checkAccounts(&c)
	checkIdle(t, "http://"+s.admin)
	checkGrowth(t, "resident memory", samples, func(s soakSample) float64 { return s.memory }, 32<<20)
	checkGrowth(t, "goroutines", samples, func(s soakSample) float64 { return s.goroutines }, 64)
	checkGrowth(t, "open files", samples, func(s soakSample) float64 { return s.files }, 64)
	// What is left are idle connections to workers, which their limit bounds.
	bound := float64(len(cfg.Pools[0].Workers) * cfg.Pools[0].Limits.MaxInflightPerWorker)
	s.settles("goroutines", idle.goroutines+bound, func(s soakSample) float64 { return s.goroutines })
	s.settles("open files", idle.files+bound, func(s soakSample) float64 { return s.files })
	end, left := s.sample(), s.live()
	if left > live+16<<20 {
		t.Errorf("%.1f MiB of the heap are in use at the end, %.1f at the start", left/(1<<20), live/(1<<20))
	}
	t.Logf("heap in use, idle: %.1f MiB before, %.1f MiB after", live/(1<<20), left/(1<<20))
	t.Logf("idle before: %v", idle)
	t.Logf("under load:  %v … %v", samples[len(samples)/2], samples[len(samples)-1])
	t.Logf("idle after:  %v", end)
	t.Logf("%d requests: %d whole, %d refused or failed with an answer, %d broken off with an error, %d clients left; %d reloads, of which %d good and %d faulty ones were asked for by POST",
		c.sent.Load(), c.whole.Load(), c.failed.Load(), c.broken.Load(), c.left.Load(),
		sumMetric(t, s.admin, "sluice_config_reloads_total"), s.good.Load(), s.bad.Load())
	if c.whole.Load() == 0 || c.left.Load() == 0 || s.good.Load() == 0 || s.bad.Load() == 0 {
		t.Error("the test exercised nothing")
	}
	s.terminate()
	closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, e := range engines {
		if err := e.Close(closing); err != nil {
			t.Errorf("cannot close an engine: %v", err)
		}
	}
}

// mixedRequest is a request to one of the surfaces, from 100 bytes to 1 MiB, some
// of them such as the router refuses.
func mixedRequest(r *rand.Rand) (path, body string) {
	filler := strings.Repeat("lorem ips ", int(math.Exp2(r.Float64()*13.5))) // half of them below 1 KiB
	stream := r.IntN(2) == 0
	switch n := r.IntN(20); {
	case n < 8:
		return "/v1/chat/completions", fmt.Sprintf(`{"model":"m","stream":%v,"messages":[{"role":"user","content":%q}]}`, stream, filler)
	case n < 10:
		return "/v1/completions", fmt.Sprintf(`{"model":"m","stream":%v,"prompt":%q}`, stream, filler)
	case n < 12:
		return "/v1/responses", fmt.Sprintf(`{"model":"m","stream":%v,"input":%q}`, stream, filler)
	case n < 14:
		return "/v1/messages", fmt.Sprintf(`{"model":"m","stream":%v,"max_tokens":9,"messages":[{"role":"user","content":%q}]}`, stream, filler)
	case n < 16:
		return "/generate", fmt.Sprintf(`{"text":%q,"stream":%v,"sampling_params":{"max_new_tokens":9}}`, filler, stream)
	case n < 17:
		return "/v1/embeddings", fmt.Sprintf(`{"model":"m","input":%q}`, filler)
	case n < 18:
		return "/v1/chat/completions", `{"model":"m","temperature":0.5,"messages":[]}`
	case n < 19:
		return "/v1/chat/completions", `{"model":"m","messages":[`
	}
	return "/v1/nothing", `{}`
}

// dieAndReturn keeps an engine at addr that dies with all its connections.
func dieAndReturn(ctx context.Context, t *testing.T, addr string) {
	for ctx.Err() == nil {
		e := sim.New(sim.Options{Words: 8, Pace: time.Millisecond})
		if _, err := e.Start(addr); err != nil {
			t.Errorf("an engine does not return: %v", err)
			return
		}
		time.Sleep(time.Duration(200+rand.IntN(400)) * time.Millisecond)
		closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		if err := e.Close(closing); err != nil {
			t.Errorf("cannot close an engine: %v", err)
		}
		cancel()
		time.Sleep(200 * time.Millisecond)
	}
}

// freeAddr returns an address that nobody listened at just now.
func freeAddr(t *testing.T) string {
	t.Helper()
	l := listen(t)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// sluice is the built command, serving.
type sluice struct {
	t           *testing.T
	cmd         *exec.Cmd
	config      string // the file
	data, admin string
	log         soakLog
	good, bad   atomic.Int64 // reloads by POST
}

// soakLog counts the requests in the log, and keeps the lines of other things.
type soakLog struct {
	mu       sync.Mutex
	requests int64
	part     []byte // of a line
	rest     bytes.Buffer
}

func (l *soakLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.part = append(l.part, p...)
	whole := l.part[:bytes.LastIndexByte(l.part, '\n')+1]
	defer func() { l.part = append(l.part[:0], l.part[len(whole):]...) }()
	for line := range bytes.Lines(whole) {
		if bytes.Contains(line, []byte(`"msg":"request"`)) {
			l.requests++
		} else if l.rest.Len() < 1<<20 {
			l.rest.Write(line)
		}
	}
	return len(p), nil
}

func (l *soakLog) state() (requests int64, rest string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests, l.rest.String()
}

// startSluice builds the command and starts it with cfg in a file.
func startSluice(t *testing.T, cfg *configs.Config) *sluice {
	t.Helper()
	dir := t.TempDir()
	s := &sluice{t: t, config: filepath.Join(dir, "sluice.yaml")}
	bin := filepath.Join(dir, "sluice")
	if out, err := exec.Command("go", "build", "-o", bin, "../cmd/sluice").CombinedOutput(); err != nil {
		t.Fatalf("cannot build the command: %v\n%s", err, out)
	}
	var text bytes.Buffer
	if err := cfg.Print(&text, "yaml", false); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.config, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command(bin, "serve", "--config", s.config)
	s.cmd.Stderr = &s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill() }) // which has ended by then, if all went well
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		_, rest := s.log.state()
		for line := range strings.Lines(rest) {
			var entry struct{ Msg, Listen, Admin string }
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "serving" {
				s.data, s.admin = entry.Listen, entry.Admin
				return s
			}
		}
	}
	_, rest := s.log.state()
	t.Fatalf("the router does not serve: %s", rest)
	return nil
}

// terminate stops the command as an operator does.
func (s *sluice) terminate() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		_, rest := s.log.state()
		s.t.Errorf("unexpected end: %v: %s", err, rest[max(0, len(rest)-2000):])
	}
}

// reloadOften changes the file each time and has it read in one of three ways.
// Each tenth file is faulty.
func (s *sluice) reloadOften(ctx context.Context, every time.Duration) {
	base, err := os.ReadFile(s.config)
	if err != nil {
		s.t.Error(err)
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			s.reload(base) // a good one is the last
			return
		case <-tick.C:
		}
		text := bytes.Replace(base, []byte("max_queue: 32"), fmt.Appendf(nil, "max_queue: %d", 32+i%7), 1)
		if i%10 == 9 {
			text = append(bytes.Clone(text), "oops: 1\n"...)
		}
		switch i % 3 {
		case 0:
			s.reload(text)
		case 1:
			s.write(text) // and it is noticed
		case 2:
			s.write(text)
			if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
				s.t.Error(err)
			}
		}
	}
}

// write puts a file in the place of the old one.
func (s *sluice) write(text []byte) {
	if err := os.WriteFile(s.config+".new", text, 0o600); err != nil {
		s.t.Error(err)
	}
	if err := os.Rename(s.config+".new", s.config); err != nil {
		s.t.Error(err)
	}
}

// reload has a file read and looks at the answer.
func (s *sluice) reload(text []byte) {
	s.write(text)
	resp, err := http.Post("http://"+s.admin+"/-/reload", "", nil)
	if err != nil {
		s.t.Error(err)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	faulty := bytes.Contains(text, []byte("oops"))
	switch {
	case err != nil:
		s.t.Error(err)
	case resp.StatusCode == 200 && !faulty:
		s.good.Add(1)
	case resp.StatusCode == 422 && faulty:
		s.bad.Add(1)
	default:
		s.t.Errorf("unexpected answer to a reload: %d %s", resp.StatusCode, b)
	}
}

// soakSample is the size of the process at one time.
type soakSample struct{ memory, goroutines, files float64 }

func (s soakSample) String() string {
	return fmt.Sprintf("%.1f MiB resident, %.0f goroutines, %.0f files", s.memory/(1<<20), s.goroutines, s.files)
}

func (s *sluice) sample() soakSample {
	s.t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	page := s.get("/metrics")
	return soakSample{
		memory: s.number(page, "process_resident_memory_bytes"), goroutines: s.number(page, "go_goroutines"), files: float64(len(files)),
	}
}

// live returns how many bytes of the heap are in use after a collection; what is
// pooled survives the first.
func (s *sluice) live() float64 {
	s.t.Helper()
	for range 3 {
		s.get("/debug/pprof/heap?gc=1")
	}
	return s.number(s.get("/metrics"), "go_memstats_heap_alloc_bytes")
}

// get returns a page of the admin listener.
func (s *sluice) get(path string) string {
	s.t.Helper()
	resp, err := http.Get("http://" + s.admin + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		s.t.Fatalf("cannot get %s: %d, %v", path, resp.StatusCode, err)
	}
	return string(b)
}

// number returns the value of a metric without labels.
func (s *sluice) number(page, name string) float64 {
	s.t.Helper()
	_, rest, _ := strings.Cut(page, "\n"+name+" ")
	value, _, _ := strings.Cut(rest, "\n")
	v, err := strconv.ParseFloat(value, 64)
	if err != nil {
		s.t.Fatalf("cannot read %s: %v", name, err)
	}
	return v
}

// watch samples until ctx ends.
func (s *sluice) watch(ctx context.Context, every time.Duration) (samples []soakSample) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return append(samples, s.sample())
		case <-tick.C:
			samples = append(samples, s.sample())
		}
	}
}

// checkGrowth fits a line through the later half of the samples, when pools and the
// heap have their size, and holds what it gains over their time against a bound.
func checkGrowth(t *testing.T, what string, samples []soakSample, of func(soakSample) float64, bound float64) {
	t.Helper()
	var y []float64
	for _, s := range samples[len(samples)/2:] {
		y = append(y, of(s))
	}
	growth := slope(y) * float64(len(y)-1)
	t.Logf("%s: a line through %d samples grows by %.1f from %.1f", what, len(y), growth, y[0])
	if growth > bound {
		t.Errorf("%s grow by %.0f; want at most %.0f", what, growth, bound)
	}
}

// slope is that of the line with the least squares, per item of y.
func slope(y []float64) float64 {
	n := float64(len(y))
	var sx, sy, sxx, sxy float64
	for i, v := range y {
		x := float64(i)
		sx, sy, sxx, sxy = sx+x, sy+v, sxx+x*x, sxy+x*v
	}
	if d := n*sxx - sx*sx; d != 0 {
		return (n*sxy - sx*sy) / d
	}
	return 0
}

func TestSlope(t *testing.T) {
	f := func(want float64, y ...float64) {
		t.Helper()
		if got := slope(y); math.Abs(got-want) > 1e-9 {
			t.Errorf("unexpected slope of %v; got %v; want %v", y, got, want)
		}
	}
	f(0, 5)
	f(2, 1, 3, 5, 7)
	f(0, 1, -1, -1, 1)
	f(-0.5, 4, 3.5, 3)
}

// settles waits until a number of the idle process is within a bound.
func (s *sluice) settles(what string, bound float64, of func(soakSample) float64) {
	s.t.Helper()
	for end := time.Now().Add(30 * time.Second); of(s.sample()) > bound; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Errorf("%.0f %s at the end; want at most %.0f", of(s.sample()), what, bound)
			return
		}
	}
}

// checkAccounts holds what clients saw against the log and the metrics. A client
// that left may have done so before a byte was sent.
func (s *sluice) checkAccounts(c *chaos) {
	s.t.Helper()
	seen := int64(0)
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		seen, _ = s.log.state()
		if in, out := sumMetric(s.t, s.admin, "sluice_requests_total"), sumMetric(s.t, s.admin, "sluice_responses_total"); in == out && in == seen && seen >= c.answered.Load() {
			break
		}
	}
	in, out := sumMetric(s.t, s.admin, "sluice_requests_total"), sumMetric(s.t, s.admin, "sluice_responses_total")
	if in != seen || out != seen || seen < c.answered.Load() || seen > c.sent.Load() {
		s.t.Errorf("%d requests sent, %d answered, %d clients left; the router counts %d requests and %d answers, and logs %d",
			c.sent.Load(), c.answered.Load(), c.left.Load(), in, out, seen)
	}
	if _, rest := s.log.state(); strings.Contains(rest, "panic") {
		s.t.Errorf("the log tells of a panic: %s", rest[max(0, strings.Index(rest, "panic")-500):])
	}
}
