package record

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver
)

// sqliteRows is how many rows one statement inserts: enough to share its cost,
// few enough for a batch that is not full.
const sqliteRows = 16

// sqliteStore writes to a file. It has the one connection of its database.
type sqliteStore struct {
	path string
	info os.FileInfo // of the file that is open
	db   *sql.DB
	conn *sql.Conn
	many *sql.Stmt // inserts sqliteRows rows
	one  *sql.Stmt
	args []any
}

// checkSQLite returns why dsn is none for SQLite, "" if it is one. Parameters are
// not taken: the store depends on those that it sets itself.
func checkSQLite(dsn string) string {
	switch {
	case dsn == "":
		return "the path of a file is missing"
	case strings.HasPrefix(dsn, ":"), strings.HasPrefix(dsn, "file:"), strings.Contains(dsn, "://"):
		return "want the path of a file"
	}
	return ""
}

// sqliteName returns the name that the driver opens path by. A percent sign, a
// question mark and the like are a part of the path.
func sqliteName(path string, params ...string) string {
	return "file:" + url.PathEscape(path) + "?" + strings.Join(params, "&")
}

// openSQLite opens the file and creates it where it is missing, readable by
// its user and group.
func openSQLite(ctx context.Context, path string) (store, error) {
	// SQLite does not say why it cannot open a file.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	// With a write-ahead log, readers do not stop the writer and a commit is
	// safe without a sync: a power failure may take the last ones with it.
	db, err := sql.Open("sqlite", sqliteName(path, "_busy_timeout=5000", "_pragma=journal_mode(WAL)", "_pragma=synchronous(NORMAL)"))
	if err != nil {
		return nil, err
	}
	s := &sqliteStore{path: path, info: info, db: db}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *sqliteStore) prepare(ctx context.Context) error {
	dial, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var err error
	if s.conn, err = s.db.Conn(dial); err != nil {
		return err
	}
	ctx, cancel = context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	if err := s.migrate(ctx); err != nil {
		return fmt.Errorf("cannot migrate: %w", err)
	}
	row := ", (" + strings.Repeat("?, ", len(columns)-1) + "?)"
	insert := "INSERT INTO " + table + " (" + columnNames() + ") VALUES "
	if s.one, err = s.conn.PrepareContext(ctx, insert+row[2:]); err != nil {
		return err
	}
	s.many, err = s.conn.PrepareContext(ctx, insert+strings.Repeat(row, sqliteRows)[2:])
	return err
}

// migrate makes the table whole. It looks again under the lock of the file,
// since another process may be at it.
func (s *sqliteStore) migrate(ctx context.Context) error {
	have, err := sqliteShape(ctx, s.conn)
	if err != nil || len(sqliteDialect.migration(have)) == 0 {
		return err
	}
	if err := s.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if have, err = sqliteShape(ctx, s.conn); err != nil {
		return err
	}
	for _, statement := range sqliteDialect.migration(have) {
		if err := s.exec(ctx, statement); err != nil {
			return err
		}
	}
	return s.exec(ctx, "COMMIT")
}

// sqliteShape looks at what there is.
func sqliteShape(ctx context.Context, conn *sql.Conn) (shape, error) {
	var s shape
	rows, err := conn.QueryContext(ctx, "SELECT name FROM pragma_table_info(?)", table)
	if err != nil {
		return s, err
	}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return s, errors.Join(err, rows.Close())
		}
		s.columns = append(s.columns, name)
	}
	if err := rows.Err(); err != nil {
		return s, err
	}
	err = conn.QueryRowContext(ctx, "SELECT count(*) > 0 FROM pragma_index_list(?) WHERE name = ?", table, index).Scan(&s.indexed)
	return s, err
}

func (s *sqliteStore) exec(ctx context.Context, statement string) error {
	_, err := s.conn.ExecContext(ctx, statement)
	return err
}

var errMoved = errors.New("the file was moved or deleted")

func (s *sqliteStore) write(ctx context.Context, rows []*Row) error {
	// SQLite goes on to write to a file that has lost its name.
	info, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	if !os.SameFile(info, s.info) {
		return errMoved
	}
	if err := s.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for ; len(rows) >= sqliteRows; rows = rows[sqliteRows:] {
		if err := s.insert(ctx, s.many, rows[:sqliteRows]); err != nil {
			return err
		}
	}
	for i := range rows {
		if err := s.insert(ctx, s.one, rows[i:i+1]); err != nil {
			return err
		}
	}
	// A commit that is interrupted may be one all the same.
	return s.exec(context.WithoutCancel(ctx), "COMMIT")
}

func (s *sqliteStore) insert(ctx context.Context, statement *sql.Stmt, rows []*Row) error {
	a := s.args[:0]
	for _, w := range rows {
		a = append(a,
			w.CreatedAt.UnixMicro(), orNull(w.RequestID), w.Kind.String(), intOrNull(w.Attempt, 0), orNull(w.Surface),
			orNull(w.Decision), orNull(w.Tenant), orNull(w.Pool), orNull(w.Worker), orNull(w.Provider),
			orNull(w.Model), orNull(w.ModelReported), intOrNull(w.Status, 0), orNull(w.ErrorCode),
			intOrNull(w.PromptTokens, Unknown), intOrNull(w.CachedPromptTokens, Unknown), intOrNull(w.CompletionTokens, Unknown),
			nil, milliseconds(w.Duration), w.Stream, orNull(w.FinishReason), orNull(w.Sampling))
		if w.TTFT != 0 {
			a[len(a)-5] = milliseconds(w.TTFT)
		}
	}
	s.args = a
	_, err := statement.ExecContext(ctx, a...)
	clear(a)
	return err
}

// orNull returns s as a string, or nil where it is empty.
func orNull[T string | []byte | Text](s T) any {
	if len(s) == 0 {
		return nil
	}
	return string(s)
}

// intOrNull returns n, or nil where it is null.
func intOrNull[T int | int64](n, null T) any {
	if n == null {
		return nil
	}
	return int64(n)
}

func (s *sqliteStore) prune(ctx context.Context, t time.Time, limit int) (int64, error) {
	res, err := s.conn.ExecContext(ctx, "DELETE FROM "+table+" WHERE rowid IN (SELECT rowid FROM "+table+" WHERE created_at < ? LIMIT ?)", t.UnixMicro(), limit)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// close rolls back what is not committed. The statements and the connection go
// with the database.
func (s *sqliteStore) close() error {
	var err error
	for _, st := range []*sql.Stmt{s.one, s.many} {
		if st != nil {
			err = errors.Join(err, st.Close())
		}
	}
	if s.conn != nil {
		err = errors.Join(err, s.conn.Close())
	}
	return errors.Join(err, s.db.Close())
}
