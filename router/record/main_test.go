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
