package record

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Table is an answer of a Reader. A value is nil, a string, an int64, a float64,
// a bool or a time.Time.
type Table struct {
	Columns []string
	Rows    [][]any
}

// Filter bounds what a Reader looks at.
type Filter struct {
	// Since leaves out older rows, unless it is zero.
	Since time.Time
	// Limit is the most rows that are returned.
	Limit int
}

var groupColumns = []string{
	"kind", "surface", "decision", "tenant", "pool", "worker", "provider", "model",
	"model_reported", "status", "error_code", "stream", "finish_reason",
}

// GroupColumns returns the columns that Reader.Sums can group by.
func GroupColumns() []string { return slices.Clone(groupColumns) }

// ErrNoTable says that nothing was ever recorded in a database.
var ErrNoTable = errors.New("there are no records: table " + table + " is missing")

// Reader reads what Recorders have written, also while they write. It changes
// nothing, and takes a table that an older router left as it is. It is not safe
// for concurrent use.
type Reader struct {
	sqlite   *sql.DB
	postgres *pgx.Conn
	password string
	d        dialect
	have     []string // columns
}

// OpenReader opens the database that Options of the same store and DSN name. The
// Reader must be closed.
func OpenReader(ctx context.Context, store, dsn string) (*Reader, error) {
	r := new(Reader)
	var err error
	switch store {
	case SQLite:
		err = r.openSQLite(ctx, dsn)
	case Postgres:
		err = r.openPostgres(ctx, dsn)
	default:
		err = fmt.Errorf("unknown store %q: want %s or %s", store, SQLite, Postgres)
	}
	if err == nil && len(r.have) == 0 {
		err = ErrNoTable
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *Reader) openSQLite(ctx context.Context, path string) error {
	if fault := checkSQLite(path); fault != "" {
		return errors.New("cannot read records from SQLite: " + fault)
	}
	if _, err := os.Stat(path); err != nil {
		return err
	}
	r.d = sqliteDialect
	var err error
	if r.sqlite, err = sql.Open("sqlite", sqliteName(path, "mode=ro", "_busy_timeout=5000")); err != nil {
		return err
	}
	conn, err := r.sqlite.Conn(ctx)
	if err != nil {
		return err
	}
	s, err := sqliteShape(ctx, conn)
	r.have = s.columns
	return errors.Join(err, conn.Close())
}

func (r *Reader) openPostgres(ctx context.Context, dsn string) error {
	r.d = postgresDialect
	c, err := parsePostgres(dsn)
	if err != nil {
		return fmt.Errorf("cannot read records from PostgreSQL: %w", err)
	}
	r.password = c.Password
	if r.postgres, err = dialPostgres(ctx, c); err != nil {
		return err
	}
	s, err := postgresShape(ctx, r.postgres)
	r.have = s.columns
	return plain(err, r.password)
}

// Close ends the Reader.
func (r *Reader) Close() error {
	if r.postgres != nil {
		closePostgres(r.postgres)
	}
	if r.sqlite != nil {
		return r.sqlite.Close()
	}
	return nil
}

// Last returns the newest rows that f allows, the newest last. The columns are
// those of the package comment.
func (r *Reader) Last(ctx context.Context, f Filter) (Table, error) {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	where, args := r.where(f)
	query := fmt.Sprintf("SELECT %s FROM %s%s ORDER BY created_at DESC, %s DESC LIMIT %d", r.selectList(names), table, where, r.d.place, f.Limit)
	rows, err := r.query(ctx, names, query, args)
	slices.Reverse(rows)
	return Table{names, rows}, err
}

// sums are the columns of Sums behind those that it groups by. A p95 is the
// value below which 19 of 20 are, by nearest rank.
var sums = []struct{ name, expr string }{
	{"requests", "count(DISTINCT request_id)"},
	{"errors", "count(DISTINCT CASE WHEN status >= 400 OR error_code IS NOT NULL THEN request_id END)"},
	{"attempts", "count(CASE WHEN kind = 'attempt' THEN 1 END)"},
	{"cache_hits", "count(CASE WHEN kind = 'cache_hit' THEN 1 END)"},
	{"prompt_tokens", "CAST(coalesce(sum(prompt_tokens), 0) AS bigint)"},
	{"cached_prompt_tokens", "CAST(coalesce(sum(cached_prompt_tokens), 0) AS bigint)"},
	{"completion_tokens", "CAST(coalesce(sum(completion_tokens), 0) AS bigint)"},
	{"ttft_mean_ms", "avg(ttft_ms)"},
	{"ttft_p95_ms", "min(CASE WHEN place * 20 >= places * 19 THEN ttft_ms END)"},
}

// Sums returns one row for each group of what f allows, the one with the most
// requests first: by, which must be of GroupColumns and may be empty, then
//
//	requests              different request_id
//	errors                those of them with a row that has an error_code or a status of 400 or above,
//	                      also where another attempt saved the request
//	attempts, cache_hits  rows of that kind
//	prompt_tokens, cached_prompt_tokens, completion_tokens
//	ttft_mean_ms, ttft_p95_ms
func (r *Reader) Sums(ctx context.Context, by []string, f Filter) (Table, error) {
	for i, name := range by {
		if !slices.Contains(groupColumns, name) {
			return Table{}, fmt.Errorf("cannot group by %q: want some of %s", name, strings.Join(groupColumns, ", "))
		}
		if slices.Contains(by[:i], name) {
			return Table{}, fmt.Errorf("cannot group by %s twice", name)
		}
	}
	names := slices.Clone(by)
	exprs := slices.Clone(by)
	for _, s := range sums {
		names = append(names, s.name)
		exprs = append(exprs, s.expr)
	}
	partition, group, order := "", "", "requests DESC"
	if len(by) > 0 {
		list := strings.Join(by, ", ")
		partition, group, order = "PARTITION BY "+list+" ", " GROUP BY "+list, order+", "+list
	}
	needed := slices.Clone(by)
	for _, name := range []string{"request_id", "status", "error_code", "kind", "prompt_tokens", "cached_prompt_tokens", "completion_tokens", "ttft_ms"} {
		if !slices.Contains(needed, name) {
			needed = append(needed, name)
		}
	}
	where, args := r.where(f)
	query := fmt.Sprintf(`WITH chosen AS (SELECT %s FROM %s%s), placed AS (
	SELECT *, row_number() OVER (%sORDER BY ttft_ms NULLS LAST) AS place, count(ttft_ms) OVER (%s) AS places FROM chosen
) SELECT %s FROM placed%s ORDER BY %s LIMIT %d`,
		r.selectList(needed), table, where, partition, partition, aliased(exprs, names), group, order, f.Limit)
	rows, err := r.query(ctx, names, query, args)
	return Table{names, rows}, err
}

func aliased(exprs, names []string) string {
	list := make([]string, len(exprs))
	for i := range exprs {
		list[i] = exprs[i] + " AS " + names[i]
	}
	return strings.Join(list, ", ")
}

// selectList returns the columns of names: one that the table lacks is NULL.
func (r *Reader) selectList(names []string) string {
	list := slices.Clone(names)
	for _, c := range columns {
		if i := slices.Index(list, c.name); i >= 0 && !slices.Contains(r.have, c.name) {
			list[i] = "CAST(NULL AS " + r.d.columnType(c) + ") AS " + c.name
		}
	}
	return strings.Join(list, ", ")
}

func (r *Reader) where(f Filter) (string, []any) {
	if f.Since.IsZero() {
		return "", nil
	}
	where := " WHERE created_at >= " + r.d.arg + "1"
	if r.sqlite != nil {
		return where, []any{f.Since.UnixMicro()}
	}
	return where, []any{f.Since}
}

// query returns the rows with values as Table has them.
func (r *Reader) query(ctx context.Context, names []string, query string, args []any) ([][]any, error) {
	list, err := r.collect(ctx, len(names), query, args)
	if err != nil {
		return nil, fmt.Errorf("cannot read records: %w", plain(err, r.password))
	}
	for _, row := range list {
		for i := range row {
			row[i] = value(names[i], row[i])
		}
	}
	return list, nil
}

func (r *Reader) collect(ctx context.Context, n int, query string, args []any) ([][]any, error) {
	if r.postgres != nil {
		rows, err := r.postgres.Query(ctx, query, args...)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
	}
	rows, err := r.sqlite.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	var list [][]any
	for rows.Next() {
		row := make([]any, n)
		into := make([]any, n)
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		list = append(list, row)
	}
	return list, rows.Err()
}

// value returns what a driver made of a column as Table has it.
func value(name string, v any) any {
	switch v := v.(type) {
	case int32:
		return int64(v)
	case int64:
		switch name {
		case "created_at":
			return time.UnixMicro(v).UTC()
		case "stream":
			return v != 0
		}
	case time.Time:
		return v.UTC()
	}
	return v
}
