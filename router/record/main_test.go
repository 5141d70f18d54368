package record

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := stopPostgres(); err != nil {
			fmt.Fprintln(os.Stderr, "cannot stop PostgreSQL:", err)
			code = 1
		}
		os.Exit(code)
	}))
}

// testLog gathers what is logged.
type testLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *testLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *testLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *testLog) count(text string) int { return strings.Count(l.String(), text) }

func (l *testLog) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(l, nil)) }

// eventually waits for what another process or goroutine is about to do.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("did not happen: %s", what)
}

// add records a row with the given id.
func add(r *Recorder, id string) {
	w := r.Get()
	w.RequestID.SetString(id)
	r.Add(w)
}

func closeRecorder(t testing.TB, r *Recorder) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		t.Errorf("unexpected error of Close: %v", err)
	}
}

// fillRow fills a row as the router does.
func fillRow(w *Row) {
	w.RequestID.Set(sampleID)
	w.Attempt = 1
	w.Surface, w.Decision, w.Pool, w.Worker, w.Provider = "chat", "free-tier", "llama", "http://10.0.0.11:30000", "sglang"
	w.Tenant.Set(sampleTenant)
	w.Model.Set(sampleModel)
	w.ModelReported.Set(sampleModel)
	w.Status = 200
	w.PromptTokens, w.CachedPromptTokens, w.CompletionTokens = 1234, 1024, 321
	w.TTFT, w.Duration = 123456*time.Microsecond, 4567890*time.Microsecond
	w.Stream, w.FinishReason = true, "stop"
	w.Sampling = append(w.Sampling, sampleSampling...)
}

var (
	sampleID       = []byte("req-0123456789abcdef0123456789abcdef")
	sampleTenant   = []byte("acme")
	sampleModel    = []byte("meta-llama/Llama-3.1-70B-Instruct")
	sampleSampling = []byte(`{"max_tokens":500,"seed":12345,"temperature":1,"top_p":0.95}`)
)

// nowhere takes rows and forgets them.
type nowhere struct{}

func (nowhere) open(context.Context) (store, error)                  { return nowhere{}, nil }
func (nowhere) write(context.Context, []*Row) error                  { return nil }
func (nowhere) prune(context.Context, time.Time, int) (int64, error) { return 0, nil }
func (nowhere) close() error                                         { return nil }
