package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// advisoryLock is held by the router that migrates. PostgreSQL gives such
// numbers no meaning; this one reads "sluice" in ASCII.
const advisoryLock = 0x736c75696365

// postgresStore writes through one connection.
type postgresStore struct {
	conn     *pgx.Conn
	password string // never shown
	copy     string // the statement
	buf      []byte // a batch in COPY's text format
}

var errPostgresDSN = errors.New("cannot read the DSN: want postgres://user:password@host:port/database?sslmode=..., or the same as key=value pairs; it is not shown here since it may hold a password")

// parsePostgres reads a DSN. What it leaves out comes from the PG* environment
// variables and ~/.pgpass, as for libpq. The error does not show it: pgx masks
// a password as well as it can, and a DSN that cannot be read is where it
// cannot.
func parsePostgres(dsn string) (*pgx.ConnConfig, error) {
	if strings.TrimSpace(dsn) == "" {
		return nil, errors.New("the DSN is missing")
	}
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, errPostgresDSN
	}
	// No named statements: they do not go through a pooler of transactions.
	c.DefaultQueryExecMode = pgx.QueryExecModeExec
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "sluice"
	}
	return c, nil
}

// dialPostgres connects. Its errors are fit for logs.
func dialPostgres(ctx context.Context, c *pgx.ConnConfig) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, c)
	return conn, plain(err, c.Password)
}

// plainError is the text of an error. It is errUnknown where that error was.
type plainError struct {
	text    string
	unknown bool
}

func (e *plainError) Error() string { return e.text }

func (e *plainError) Is(target error) bool { return e.unknown && target == errUnknown }

// plain returns err as text alone: pgx's own errors hold the configuration, and
// with it the password, in exported fields. Should the text have it as well, it
// is taken out, unless it is so short that what it is would show by what is
// missing.
func plain(err error, password string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if len(password) > 3 {
		text = strings.ReplaceAll(text, password, "[redacted]")
	}
	return &plainError{text, errors.Is(err, errUnknown)}
}

func openPostgres(ctx context.Context, c *pgx.ConnConfig) (store, error) {
	conn, err := dialPostgres(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &postgresStore{
		conn: conn, password: c.Password,
		copy: "COPY " + table + " (" + columnNames() + ") FROM STDIN",
	}
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	if err := s.migrate(ctx); err != nil {
		err = fmt.Errorf("cannot migrate: %w", plain(err, s.password))
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// migrate makes the table whole. It looks again under a lock, since another
// router may be at it.
func (s *postgresStore) migrate(ctx context.Context) error {
	have, err := postgresShape(ctx, s.conn)
	if err != nil || len(postgresDialect.migration(have)) == 0 {
		return err
	}
	return pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(advisoryLock)); err != nil {
			return err
		}
		have, err := postgresShape(ctx, s.conn)
		if err != nil {
			return err
		}
		for _, statement := range postgresDialect.migration(have) {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}

// postgresShape looks at what there is, where the search path leads.
func postgresShape(ctx context.Context, conn *pgx.Conn) (shape, error) {
	var s shape
	rows, err := conn.Query(ctx, "SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped", table)
	if err != nil {
		return s, err
	}
	if s.columns, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		return s, err
	}
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_index WHERE indrelid = to_regclass($1) AND indexrelid = to_regclass($2))", table, index).Scan(&s.indexed)
	return s, err
}

// write copies the rows in within a transaction, so that a connection that has
// died since the last batch is found before anything can be committed.
func (s *postgresStore) write(ctx context.Context, rows []*Row) error {
	s.buf = s.buf[:0]
	for _, w := range rows {
		s.buf = appendCopy(s.buf, w)
	}
	return plain(s.commit(ctx), s.password)
}

func (s *postgresStore) commit(ctx context.Context) error {
	tx, err := s.conn.Begin(ctx)
	if err != nil {
		return err
	}
	if _, err := s.conn.PgConn().CopyFrom(ctx, bytes.NewReader(s.buf), s.copy); err != nil {
		return err
	}
	err = tx.Commit(ctx)
	var refused *pgconn.PgError
	if err == nil || errors.As(err, &refused) || errors.Is(err, pgx.ErrTxCommitRollback) || pgconn.SafeToRetry(err) {
		return err
	}
	return fmt.Errorf("%w: %w", errUnknown, err)
}

// appendCopy appends w as a line of COPY's text format, which the server reads
// as it would literals: a column that its owner has given another type stays
// usable. See https://www.postgresql.org/docs/current/sql-copy.html.
func appendCopy(b []byte, w *Row) []byte {
	b = w.CreatedAt.UTC().AppendFormat(b, "2006-01-02 15:04:05.999999+00")
	b = appendCopyText(b, w.RequestID)
	b = appendCopyText(b, w.Kind.String())
	b = appendCopyInt(b, w.Attempt, 0)
	b = appendCopyText(b, w.Surface)
	b = appendCopyText(b, w.Decision)
	b = appendCopyText(b, w.Tenant)
	b = appendCopyText(b, w.Pool)
	b = appendCopyText(b, w.Worker)
	b = appendCopyText(b, w.Provider)
	b = appendCopyText(b, w.Model)
	b = appendCopyText(b, w.ModelReported)
	b = appendCopyInt(b, w.Status, 0)
	b = appendCopyText(b, w.ErrorCode)
	b = appendCopyInt(b, w.PromptTokens, Unknown)
	b = appendCopyInt(b, w.CachedPromptTokens, Unknown)
	b = appendCopyInt(b, w.CompletionTokens, Unknown)
	if w.TTFT == 0 {
		b = append(b, copyNull...)
	} else {
		b = strconv.AppendFloat(append(b, '\t'), milliseconds(w.TTFT), 'f', -1, 64)
	}
	b = strconv.AppendFloat(append(b, '\t'), milliseconds(w.Duration), 'f', -1, 64)
	b = strconv.AppendBool(append(b, '\t'), w.Stream)
	b = appendCopyText(b, w.FinishReason)
	b = appendCopyText(b, w.Sampling)
	return append(b, '\n')
}

const copyNull = "\t" + `\N`

// appendCopyText appends s behind a tab. Row.clean has taken out what else would
// have to be escaped.
func appendCopyText[T string | []byte | Text](b []byte, s T) []byte {
	if len(s) == 0 {
		return append(b, copyNull...)
	}
	b = append(b, '\t')
	for i := range len(s) {
		if s[i] == '\\' {
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return b
}

func appendCopyInt[T int | int64](b []byte, n, null T) []byte {
	if n == null {
		return append(b, copyNull...)
	}
	return strconv.AppendInt(append(b, '\t'), int64(n), 10)
}

func (s *postgresStore) prune(ctx context.Context, t time.Time, limit int) (int64, error) {
	// Another router may be at the same rows.
	tag, err := s.conn.Exec(ctx, "DELETE FROM "+table+" WHERE ctid = ANY (ARRAY(SELECT ctid FROM "+table+" WHERE created_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED))", t, limit)
	return tag.RowsAffected(), plain(err, s.password)
}

func (s *postgresStore) close() error {
	closePostgres(s.conn)
	return nil
}

// closePostgres says goodbye and waits a moment for what pgx does on its own
// after a query that was interrupted.
func closePostgres(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // it is closed in any case
	select {
	case <-conn.PgConn().CleanupDone():
	case <-ctx.Done():
	}
}
