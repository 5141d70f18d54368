package record

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// fact is what of a row Sums looks at.
type fact struct {
	id             string
	kind           Kind
	model, pool    string
	status         int
	code           string
	prompt, cached int64
	completion     int64
	ttft           time.Duration
}

// facts are rows of 40 requests over two models and three pools, some of which
// were tried twice.
func facts() []fact {
	var list []fact
	for i := range 40 {
		f := fact{
			id: fmt.Sprint(i), model: []string{"a", "b"}[i%2], pool: []string{"x", "y", ""}[i%3],
			status: 200, prompt: int64(100 + i), cached: int64(i), completion: int64(2 * i), ttft: time.Duration((i*7)%40+1) * time.Millisecond,
		}
		switch {
		case i%10 == 3:
			f.status, f.code, f.ttft, f.prompt, f.cached, f.completion = 502, "upstream_unreachable", 0, Unknown, Unknown, Unknown
			list = append(list, f)
			f.status, f.code, f.ttft, f.prompt, f.cached, f.completion = 200, "", 5*time.Millisecond, 10, Unknown, 20
		case i%10 == 4:
			f.kind = CacheHit
		case i%10 == 5:
			f.kind, f.status, f.code, f.ttft, f.pool = TerminalFailure, 503, "overloaded", 0, ""
		case i%10 == 6: // a stream that broke
			f.code = "upstream_body_incomplete"
		}
		list = append(list, f)
	}
	return list
}

func record(r *Recorder, at time.Time, list []fact) {
	for _, f := range list {
		w := r.Get()
		w.CreatedAt = at
		w.RequestID.SetString(f.id)
		w.Kind, w.Pool, w.Status, w.ErrorCode = f.kind, f.pool, f.status, f.code
		w.Model.SetString(f.model)
		w.PromptTokens, w.CachedPromptTokens, w.CompletionTokens = f.prompt, f.cached, f.completion
		w.TTFT = f.ttft
		r.Add(w)
	}
}

// sum is Sums, the slow and obvious way.
func sum(list []fact, key func(fact) []any) [][]any {
	groups := map[string][]fact{}
	for _, f := range list {
		k := fmt.Sprint(key(f)...)
		groups[k] = append(groups[k], f)
	}
	var rows [][]any
	for _, g := range groups {
		requests, failed := map[string]bool{}, map[string]bool{}
		var attempts, hits, prompt, cached, completion int64
		var ttfts []float64
		for _, f := range g {
			requests[f.id] = true
			if f.status >= 400 || f.code != "" {
				failed[f.id] = true
			}
			switch f.kind {
			case Attempt:
				attempts++
			case CacheHit:
				hits++
			}
			prompt += max(f.prompt, 0)
			cached += max(f.cached, 0)
			completion += max(f.completion, 0)
			if f.ttft > 0 {
				ttfts = append(ttfts, milliseconds(f.ttft))
			}
		}
		row := append(key(g[0]), int64(len(requests)), int64(len(failed)), attempts, hits, prompt, cached, completion, nil, nil)
		if n := len(ttfts); n > 0 {
			slices.Sort(ttfts)
			total := 0.0
			for _, x := range ttfts {
				total += x
			}
			row[len(row)-2] = total / float64(n)
			row[len(row)-1] = ttfts[int(math.Ceil(0.95*float64(n)))-1]
		}
		rows = append(rows, row)
	}
	return rows
}

// text returns rows in a form that can be compared, in any order.
func text(rows [][]any) string {
	var list []string
	for _, row := range rows {
		var cells []string
		for _, v := range row {
			if x, ok := v.(float64); ok {
				v = math.Round(x*1e6) / 1e6
			}
			cells = append(cells, fmt.Sprintf("%T:%v", v, v))
		}
		list = append(list, strings.Join(cells, " "))
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func TestReader_Sums(t *testing.T) {
	eachStore(t, func(t *testing.T, db *testDB) {
		r := db.open(t, Options{})
		list := facts()
		now := time.Now()
		record(r, now, list)
		old := slices.Clone(list)
		for i := range old {
			old[i].id += " old"
		}
		record(r, now.Add(-2*time.Hour), old)
		closeRecorder(t, r)
		reader := db.reader(t)
		f := func(by string, list []fact, since time.Time, key func(fact) []any) {
			t.Helper()
			var columns []string
			if by != "" {
				columns = strings.Split(by, ",")
			}
			got, err := reader.Sums(t.Context(), columns, Filter{Since: since, Limit: 100})
			if err != nil {
				t.Fatal(err)
			}
			if want := text(sum(list, key)); text(got.Rows) != want {
				t.Errorf("unexpected sums by %q; got\n%s\nwant\n%s", by, text(got.Rows), want)
			}
			if len(got.Columns) != len(columns)+len(sums) || !slices.Equal(got.Columns[:len(columns)], columns) {
				t.Errorf("unexpected columns %q", got.Columns)
			}
		}
		hour := now.Add(-time.Hour)
		f("", list, hour, func(fact) []any { return nil })
		f("", append(old, list...), time.Time{}, func(fact) []any { return nil })
		f("model", list, hour, func(f fact) []any { return []any{f.model} })
		f("pool,model", list, hour, func(f fact) []any { return []any{orNil(f.pool), f.model} })
		f("status,kind", list, hour, func(f fact) []any { return []any{int64(f.status), f.kind.String()} })
		f("error_code", append(old, list...), hour.Add(-2*time.Hour), func(f fact) []any { return []any{orNil(f.code)} })
		f("stream,decision", list, hour, func(f fact) []any { return []any{false, nil} })

		got, err := reader.Sums(t.Context(), []string{"pool"}, Filter{Limit: 1})
		if err != nil || len(got.Rows) != 1 || got.Rows[0][1] != int64(30) {
			t.Errorf("unexpected first row %v, %v; want the one with the most requests", got.Rows, err)
		}
	})
}

func TestReader_Last(t *testing.T) {
	eachStore(t, func(t *testing.T, db *testDB) {
		r := db.open(t, Options{})
		now := time.Now()
		for i := range 10 {
			record(r, now.Add(time.Duration(i-10)*time.Minute), []fact{{id: fmt.Sprint(i)}})
		}
		closeRecorder(t, r)
		reader := db.reader(t)
		f := func(filter Filter, want ...string) {
			t.Helper()
			got, err := reader.Last(t.Context(), filter)
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, row := range got.Rows {
				ids = append(ids, row[1].(string))
			}
			if !slices.Equal(ids, want) {
				t.Errorf("unexpected rows %q; want %q", ids, want)
			}
		}
		f(Filter{Limit: 3}, "7", "8", "9")
		f(Filter{Limit: 100, Since: now.Add(-150 * time.Second)}, "8", "9")
		f(Filter{Limit: 1, Since: now.Add(-150 * time.Second)}, "9")
		f(Filter{Limit: 1, Since: now})
	})
}

// An older table is read as it is, with NULL for what it lacks.
func TestReader_OldTable(t *testing.T) {
	eachStore(t, func(t *testing.T, db *testDB) {
		db.exec(t, db.shapes()["half"]...)
		reader := db.reader(t)
		got, err := reader.Last(t.Context(), Filter{Limit: 10})
		if err != nil || len(got.Rows) != 1 || got.Rows[0][1] != "old" || len(got.Columns) != len(columns) {
			t.Errorf("unexpected rows %v, %v", got, err)
		}
		got, err = reader.Sums(t.Context(), []string{"finish_reason", "stream", "status"}, Filter{Limit: 10})
		if want := "<nil>:<nil> <nil>:<nil> <nil>:<nil> int64:1 int64:0 int64:0 int64:0 int64:0 int64:0 int64:0 <nil>:<nil> <nil>:<nil>"; err != nil || text(got.Rows) != want {
			t.Errorf("unexpected sums %v, %v", text(got.Rows), err)
		}
		if s := db.shape(t); len(s.columns) != len(columns)/2 {
			t.Errorf("reading has changed the table: %v", s)
		}
	})
}

func TestReader_Errors(t *testing.T) {
	eachStore(t, func(t *testing.T, db *testDB) {
		db.exec(t, "CREATE TABLE other (a INTEGER)")
		if _, err := OpenReader(t.Context(), db.store, db.dsn); !errors.Is(err, ErrNoTable) {
			t.Errorf("unexpected error %v; want %v", err, ErrNoTable)
		}
		db.exec(t, db.shapes()["current"]...)
		reader := db.reader(t)
		for _, by := range [][]string{{"sampling"}, {""}, {"model; DROP TABLE other"}, {"model", "model"}} {
			if _, err := reader.Sums(t.Context(), by, Filter{Limit: 1}); err == nil || !strings.Contains(err.Error(), "cannot group by") {
				t.Errorf("unexpected error of %q: %v", by, err)
			}
		}
	})
	missing := filepath.Join(t.TempDir(), "x.db")
	for _, o := range []Options{{Store: SQLite, DSN: missing}, {Store: SQLite}, {Store: Postgres}, {Store: Off}} {
		if _, err := OpenReader(t.Context(), o.Store, o.DSN); err == nil {
			t.Errorf("no error of %+v", o)
		}
	}
	if list, err := filepath.Glob(missing + "*"); err != nil || len(list) > 0 {
		t.Errorf("reading has made files: %v, %v", list, err)
	}
}
