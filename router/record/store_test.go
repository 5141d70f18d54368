package record

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// testDB is an empty database of either kind.
type testDB struct {
	store, dsn string
	d          dialect
	// exec runs statements as another user of the database would.
	exec func(t testing.TB, statements ...string)
}

func sqliteDB(t testing.TB) *testDB {
	path := filepath.Join(t.TempDir(), "a b?c%20#d.db")
	return &testDB{SQLite, path, sqliteDialect, func(t testing.TB, statements ...string) {
		t.Helper()
		db, err := sql.Open("sqlite", sqliteName(path, "_busy_timeout=5000"))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, s := range statements {
			if _, err := db.Exec(s); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
	}}
}

func postgresDB(t testing.TB) *testDB {
	c := postgres(t)
	name := c.schema(t)
	return &testDB{Postgres, c.dsn(name), postgresDialect, func(t testing.TB, statements ...string) {
		t.Helper()
		c.exec(t, name, statements...)
	}}
}

// eachStore runs a test on both kinds of database.
func eachStore(t *testing.T, f func(t *testing.T, db *testDB)) {
	t.Run(SQLite, func(t *testing.T) { f(t, sqliteDB(t)) })
	t.Run(Postgres, func(t *testing.T) { f(t, postgresDB(t)) })
}

func (db *testDB) open(t testing.TB, o Options) *Recorder {
	t.Helper()
	o.Store, o.DSN = db.store, db.dsn
	r, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // where the test has failed before it did so
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = r.Close(ctx)
	})
	return r
}

// last returns the newest rows.
func (db *testDB) last(t testing.TB, n int) [][]any {
	t.Helper()
	r := db.reader(t)
	table, err := r.Last(t.Context(), Filter{Limit: n})
	if err != nil {
		t.Fatal(err)
	}
	return table.Rows
}

// reader opens a Reader for the rest of the test.
func (db *testDB) reader(t testing.TB) *Reader {
	t.Helper()
	r, err := OpenReader(t.Context(), db.store, db.dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// ids returns the request ids in the database, in the order of created_at.
func (db *testDB) ids(t testing.TB) []string {
	t.Helper()
	var list []string
	for _, row := range db.last(t, 1<<20) {
		id, _ := row[1].(string)
		list = append(list, id)
	}
	return list
}

func TestStore_RoundTrip(t *testing.T) {
	at := time.Date(2026, 2, 28, 23, 59, 59, 123456000, time.FixedZone("", 3600))
	eachStore(t, func(t *testing.T, db *testDB) {
		r := db.open(t, Options{Required: true})
		w := r.Get()
		w.CreatedAt = at
		w.RequestID.SetString("id-1")
		w.Attempt = 2
		w.Surface, w.Decision, w.Pool = "chat", `back\slash "quoted" 'it''s'`, "llama"
		w.Tenant.SetString("tab\there \\N \\. \x00\xff é\U0001f600")
		w.Worker, w.Provider = "http://10.0.0.11:30000", "sglang"
		w.Model.SetString("m")
		w.ModelReported.SetString("M")
		w.Status, w.ErrorCode = 502, "upstream_unreachable"
		w.PromptTokens, w.CachedPromptTokens, w.CompletionTokens = 1<<40, 0, 3
		w.TTFT, w.Duration = 1234567*time.Nanosecond, time.Hour
		w.Stream, w.FinishReason = true, "stop"
		w.Sampling = append(w.Sampling, `{"stop":"\\n\"","temperature":0.7}`...)
		r.Add(w)
		w = r.Get()
		w.Kind = CacheHit
		w.CreatedAt = at.Add(time.Microsecond)
		r.Add(w)
		w = r.Get()
		w.Kind = TerminalFailure
		w.Model.SetString(`\N`)
		w.CreatedAt = at.Add(time.Second)
		r.Add(w)
		closeRecorder(t, r)
		want := [][]any{
			{
				at.UTC(), "id-1", "attempt", int64(2), "chat", `back\slash "quoted" 'it''s'`, "tab\ufffdhere \\N \\. \ufffd\ufffd é\U0001f600",
				"llama", "http://10.0.0.11:30000", "sglang", "m", "M", int64(502), "upstream_unreachable", int64(1 << 40), int64(0),
				int64(3), 1.234, 3600000.0, true, "stop", `{"stop":"\\n\"","temperature":0.7}`,
			},
			{at.UTC().Add(time.Microsecond), nil, "cache_hit", nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, 0.0, false, nil, nil},
			{at.UTC().Add(time.Second), nil, "terminal_failure", nil, nil, nil, nil, nil, nil, nil, `\N`, nil, nil, nil, nil, nil, nil, nil, 0.0, false, nil, nil},
		}
		got := db.last(t, 10)
		if len(got) != len(want) {
			t.Fatalf("unexpected rows %v", got)
		}
		for i := range want {
			for j, c := range columns {
				if got[i][j] != want[i][j] {
					t.Errorf("row %d: unexpected %s; got %#v; want %#v", i, c.name, got[i][j], want[i][j])
				}
			}
		}
	})
}

// Rows are all there and in order, whatever the size of their batches.
func TestStore_Batches(t *testing.T) {
	eachStore(t, func(t *testing.T, db *testDB) {
		n := 0
		for _, batch := range []int{1, sqliteRows, 3*sqliteRows + 5, 256} {
			r := db.open(t, Options{Batch: batch})
			for range 2*batch + 3 {
				add(r, fmt.Sprint(n))
				n++
			}
			closeRecorder(t, r)
		}
		for i, id := range db.ids(t) {
			if id != fmt.Sprint(i) {
				t.Fatalf("row %d is %s", i, id)
			}
		}
		if got := len(db.ids(t)); got != n {
			t.Errorf("%d rows; want %d", got, n)
		}
	})
}

// shapes returns statements that make a database which an older router left.
func (db *testDB) shapes() map[string][]string {
	create := func(list []column) string {
		var defs []string
		for _, c := range list {
			defs = append(defs, c.name+" "+db.d.columnType(c))
		}
		return "CREATE TABLE " + table + " (" + strings.Join(defs, ", ") + ")"
	}
	old := "INSERT INTO " + table + " (request_id) VALUES ('old')"
	half := columns[:len(columns)/2]
	reversed := slices.Clone(columns[:])
	slices.Reverse(reversed)
	shapes := map[string][]string{
		"empty":         nil,
		"half":          {create(half), old},
		"half, indexed": {create(half), "CREATE INDEX " + index + " ON " + table + " (created_at)", old},
		"reversed":      {create(reversed), old},
		"no index":      {create(columns[:]), old},
		"current":       append(db.d.migration(shape{}), old),
		"newer":         append(db.d.migration(shape{}), "ALTER TABLE "+table+" ADD COLUMN cost REAL", "CREATE INDEX mine ON "+table+" (request_id)", old),
		"another table": {"CREATE TABLE other (created_at TEXT)", "CREATE INDEX other_created_at ON other (created_at)"},
	}
	for k := range 3 { // each column is missing once, but for these two
		i := 0
		some := slices.DeleteFunc(slices.Clone(columns[:]), func(c column) bool {
			i++
			return i%3 == k && c.name != "request_id" && c.name != "created_at"
		})
		shapes[fmt.Sprint("with gaps ", k)] = []string{create(some), old}
	}
	return shapes
}

func TestStore_Migrate(t *testing.T) {
	eachStore(t, func(t *testing.T, db *testDB) {
		for name, statements := range db.shapes() {
			db.exec(t, append([]string{"DROP TABLE IF EXISTS " + table}, statements...)...)
			rows := 0
			if len(statements) > 0 && strings.HasPrefix(statements[len(statements)-1], "INSERT") {
				rows = 1
			}
			for i := range 2 { // the second time finds it whole
				r := db.open(t, Options{Required: true})
				add(r, "new")
				closeRecorder(t, r)
				if s := r.Stats(); s.Written != 1 || !s.LastError.IsZero() {
					t.Errorf("%s: unexpected stats %+v", name, s)
				}
				if ids := db.ids(t); len(ids) != rows+1+i || rows == 1 && !slices.Contains(ids, "old") {
					t.Errorf("%s: unexpected rows %v", name, ids)
				}
			}
			if s := db.shape(t); len(db.d.migration(s)) != 0 {
				t.Errorf("%s: still lacks %v", name, db.d.migration(s))
			}
		}
	})
}

// shape looks at the database.
func (db *testDB) shape(t testing.TB) (s shape) {
	t.Helper()
	r := db.reader(t)
	var err error
	if r.postgres != nil {
		s, err = postgresShape(t.Context(), r.postgres)
	} else {
		var conn *sql.Conn
		if conn, err = r.sqlite.Conn(t.Context()); err == nil {
			defer conn.Close()
			s, err = sqliteShape(t.Context(), conn)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Routers that start at once all find, or make, the table.
func TestStore_OpenAtOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, db *testDB) {
		for _, name := range []string{"empty", "half"} {
			db.exec(t, append([]string{"DROP TABLE IF EXISTS " + table}, db.shapes()[name]...)...)
			var wg sync.WaitGroup
			for i := range 6 {
				wg.Go(func() {
					r, err := Open(Options{Store: db.store, DSN: db.dsn, Required: true})
					if err != nil {
						t.Errorf("%s: %v", name, err)
						return
					}
					add(r, fmt.Sprint(i))
					closeRecorder(t, r)
				})
			}
			wg.Wait()
			if s := db.shape(t); len(db.d.migration(s)) != 0 {
				t.Errorf("%s: still lacks %v", name, db.d.migration(s))
			}
			if n := len(db.ids(t)); n != 6 && name == "empty" || n != 7 && name == "half" {
				t.Errorf("%s: %d rows", name, n)
			}
		}
	})
}

func TestStore_Prune(t *testing.T) {
	eachStore(t, func(t *testing.T, db *testDB) {
		r := db.open(t, Options{})
		const old = 2*pruneBatch + 500
		for i := range old + 100 {
			w := r.Get()
			w.CreatedAt = time.Now()
			if i < old {
				w.CreatedAt = w.CreatedAt.Add(-25 * time.Hour)
			}
			r.Add(w)
		}
		closeRecorder(t, r)
		r = db.open(t, Options{Retain: 24 * time.Hour})
		eventually(t, "pruned", func() bool { return r.Stats().Pruned >= old })
		closeRecorder(t, r)
		if n := len(db.ids(t)); n != 100 || r.Stats().Pruned != old {
			t.Errorf("%d rows are left, %+v", n, r.Stats())
		}
	})
}

// A table that goes missing is made anew, and no row that was added is lost.
func TestStore_TableDropped(t *testing.T) {
	eachStore(t, func(t *testing.T, db *testDB) {
		var log testLog
		r := db.open(t, Options{Flush: 5 * time.Millisecond, Log: log.logger(), Required: true})
		add(r, "a")
		eventually(t, "a row", func() bool { return r.Stats().Written == 1 })
		db.exec(t, "DROP TABLE "+table)
		add(r, "b")
		eventually(t, "a second row", func() bool { return r.Stats().Written == 2 })
		eventually(t, "word of it", func() bool { return log.count("written again") == 1 })
		closeRecorder(t, r)
		if ids := db.ids(t); !slices.Equal(ids, []string{"b"}) {
			t.Errorf("unexpected rows %v", ids)
		}
		if log.count("records cannot be written") != 1 || !strings.Contains(log.String(), table) {
			t.Errorf("unexpected log %s", log.String())
		}
	})
}

// Close is in time although the database holds its lock.
func TestStore_CloseInTime(t *testing.T) {
	eachStore(t, func(t *testing.T, db *testDB) {
		r := db.open(t, Options{Required: true})
		unlock := db.lock(t)
		add(r, "a")
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := r.Close(ctx); err == nil {
			t.Error("a row was written to a locked table")
		}
		checkStats(t, r, Stats{DroppedClosed: 1})
		unlock()
		if ids := db.ids(t); len(ids) != 0 {
			t.Errorf("unexpected rows %v", ids)
		}
	})
}

// lock keeps others from writing to the table.
func (db *testDB) lock(t testing.TB) (unlock func()) {
	t.Helper()
	r, err := OpenReader(t.Context(), db.store, db.dsn)
	if err != nil {
		t.Fatal(err)
	}
	if r.postgres != nil {
		for _, s := range []string{"BEGIN", "LOCK TABLE " + table + " IN EXCLUSIVE MODE"} {
			if _, err := r.postgres.Exec(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		return func() { _ = r.Close() } // its end is all that matters
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := sql.Open("sqlite", sqliteName(db.dsn))
	if err != nil {
		t.Fatal(err)
	}
	f.SetMaxOpenConns(1)
	if _, err := f.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// While another holds the lock, Add does not wait: the rows that have no room are
// dropped, the others arrive.
func TestStore_Locked(t *testing.T) {
	eachStore(t, func(t *testing.T, db *testDB) {
		r := db.open(t, Options{Queue: 8, Batch: 4, Required: true})
		unlock := db.lock(t)
		for i := range 100 {
			add(r, fmt.Sprint(i))
		}
		if s := r.Stats(); s.Written != 0 || s.DroppedQueueFull < 100-12 {
			t.Errorf("unexpected stats %+v", s)
		}
		unlock()
		closeRecorder(t, r)
		s := r.Stats()
		if s.Written+s.DroppedQueueFull != 100 || s.Written < 8 || int(s.Written) != len(db.ids(t)) {
			t.Errorf("unexpected stats %+v", s)
		}
	})
}
