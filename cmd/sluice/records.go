package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"sluice/configs"
	"sluice/router/record"
)

const recordsUsage = `sluice records prints what routers have recorded: the last rows, or sums of them.

usage: sluice records --config FILE | --dsn FILE-OR-URL [flags]

  sluice records --config sluice.yaml
  sluice records --dsn sluice.db --since 1h --by decision,model
  sluice records --store postgres --dsn postgres://reader@db/sluice --by tenant --json

It reads the table sluice_records and changes nothing; routers may write meanwhile.
What a DSN of PostgreSQL leaves out, a password above all, comes from the PG*
variables and ~/.pgpass as for psql.

Without --by, the columns are those of the table: created_at, request_id, kind
(attempt, cache_hit or terminal_failure), attempt, surface, decision, tenant, pool,
worker, provider, model, model_reported, status, error_code, prompt_tokens,
cached_prompt_tokens, completion_tokens, ttft_ms, duration_ms, stream, finish_reason,
sampling. As text, only the narrow ones are printed.

With --by, each group has its number of requests, how many of them had an error (a
status of 400 or above or an error_code, also of an attempt that another one made
good), of attempts, cache hits and tokens, and the mean and the 95th percentile of
the time to the first token. --by all is the sum of everything; the columns are
  %s

Other questions are asked in SQL, for example in SQLite and in PostgreSQL:
  SELECT * FROM sluice_records WHERE request_id = '...' ORDER BY created_at, attempt;
  SELECT date(created_at/1e6, 'unixepoch') AS day, tenant, sum(completion_tokens)
    FROM sluice_records GROUP BY day, tenant;
  SELECT tenant, sampling::json ->> 'temperature' AS temperature, count(*)
    FROM sluice_records WHERE kind = 'attempt' GROUP BY tenant, temperature;

Exit codes: 0 printed, 1 the records cannot be read, 2 wrong flags.

flags:
`

// recordsConfig is what the flags of records say.
type recordsConfig struct {
	files      []string
	store, dsn string
	filter     record.Filter
	by         []string
	sum        bool // by was given
	json       bool
}

// narrow are the columns that a line of text has.
var narrow = []string{
	"created_at", "request_id", "kind", "attempt", "decision", "tenant", "pool", "worker", "model", "status",
	"error_code", "prompt_tokens", "cached_prompt_tokens", "completion_tokens", "ttft_ms", "duration_ms",
}

// parseRecords reads the flags of records. It has told of an error already.
func parseRecords(p *process) (recordsConfig, error) {
	var c recordsConfig
	fs := flag.NewFlagSet("sluice records", flag.ContinueOnError)
	fs.SetOutput(p.stderr)
	fs.Usage = func() {
		fmt.Fprintf(p.stderr, recordsUsage, strings.Join(record.GroupColumns(), ","))
		fs.PrintDefaults()
	}
	fs.Func("config", "configuration `file` that names the database, repeatable", func(s string) error {
		c.files = append(c.files, s)
		return nil
	})
	fs.StringVar(&c.store, "store", record.SQLite, "`kind` of the database: sqlite or postgres")
	fs.StringVar(&c.dsn, "dsn", "", "`path` of the file, or URL of the database (records.dsn of the configuration)")
	fs.Func("since", "leave out what is older than this `time`, such as 90m, 1h or 7d (default: nothing)", func(s string) error {
		d, err := parseAge(s)
		c.filter.Since = time.Now().Add(-d)
		return err
	})
	fs.IntVar(&c.filter.Limit, "limit", 20, "print the last `number` of rows, or the largest groups")
	fs.Func("by", "`columns` to sum by, with commas, or all", func(s string) error {
		c.sum, c.by = true, nil
		if s != "all" {
			c.by = strings.Split(s, ",")
		}
		return checkColumns(c.by)
	})
	fs.BoolVar(&c.json, "json", false, "print one JSON object a line, with all columns")
	if err := fs.Parse(p.args); err != nil {
		return c, err
	}
	err := c.configured(p.env)
	if err == nil {
		err = c.check(fs.Args())
	}
	if err != nil {
		fmt.Fprintf(p.stderr, "sluice records: %v\n", err)
	}
	return c, err
}

// configured takes the database from the configuration, if one is given.
func (c *recordsConfig) configured(env []string) error {
	if len(c.files) == 0 {
		return nil
	}
	if c.dsn != "" {
		return errors.New("--config and --dsn both name a database")
	}
	cfg, err := loadConfig(configs.Options{Files: c.files, Env: env})
	if err != nil {
		return fmt.Errorf("wrong configuration:\n%w", err)
	}
	if cfg.Records.Store == record.Off {
		return errors.New("the configuration records nothing: records.store is off")
	}
	c.store, c.dsn = cfg.Records.Store, cfg.Records.Database()
	return nil
}

// parseAge reads a duration that may also be a number of days.
func parseAge(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		d = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("want a time such as 90m, 1h or 7d, got %q", s)
	}
	return d, nil
}

func checkColumns(by []string) error {
	for i, name := range by {
		if !slices.Contains(record.GroupColumns(), name) {
			return fmt.Errorf("unknown column %q: want all, or some of %s", name, strings.Join(record.GroupColumns(), ", "))
		}
		if slices.Contains(by[:i], name) {
			return fmt.Errorf("column %q is there twice", name)
		}
	}
	return nil
}

func (c *recordsConfig) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case c.store != record.SQLite && c.store != record.Postgres:
		return fmt.Errorf("--store must be sqlite or postgres, got %q", c.store)
	case c.dsn == "":
		return errors.New("--config or --dsn is missing")
	case c.filter.Limit < 1:
		return fmt.Errorf("--limit must be at least 1, got %d", c.filter.Limit)
	}
	return nil
}

func runRecords(p *process) int {
	c, err := parseRecords(p)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		return exitUsage
	}
	table, err := c.read(p)
	if err == nil {
		err = c.print(p.stdout, table)
	}
	if err != nil {
		fmt.Fprintf(p.stderr, "sluice records: %v\n", err)
		return exitFailed
	}
	return exitOK
}

func (c *recordsConfig) read(p *process) (table record.Table, err error) {
	r, err := record.OpenReader(p.stop, c.store, c.dsn)
	if err != nil {
		return table, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if c.sum {
		return r.Sums(p.stop, c.by, c.filter)
	}
	return r.Last(p.stop, c.filter)
}

func (c *recordsConfig) print(w io.Writer, t record.Table) error {
	if c.json {
		return printJSON(w, t)
	}
	columns := t.Columns
	if !c.sum {
		columns = narrow
	}
	return printText(w, t, columns)
}

// printJSON writes an object a row, with its members in the order of the table.
func printJSON(w io.Writer, t record.Table) error {
	out := bufio.NewWriter(w)
	for _, row := range t.Rows {
		sep := byte('{')
		for i, name := range t.Columns {
			v, err := json.Marshal(row[i])
			if err != nil {
				return err
			}
			_ = out.WriteByte(sep) // Flush tells
			_, _ = fmt.Fprintf(out, "%q:%s", name, v)
			sep = ','
		}
		_, _ = out.WriteString("}\n")
	}
	return out.Flush()
}

func printText(w io.Writer, t record.Table, columns []string) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(out, strings.Join(columns, "\t")) // Flush tells
	for _, row := range t.Rows {
		cells := make([]string, len(columns))
		for i, name := range columns {
			cells[i] = cell(row[slices.Index(t.Columns, name)])
		}
		_, _ = fmt.Fprintln(out, strings.Join(cells, "\t"))
	}
	return out.Flush()
}

// cell returns a value as text. A client chose some of them: one that could move
// the cursor of a terminal is quoted.
func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case time.Time:
		return v.Local().Format("2006-01-02T15:04:05.000Z07:00")
	case float64:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case string:
		if strings.ContainsFunc(v, func(r rune) bool { return !unicode.IsGraphic(r) }) {
			return strconv.Quote(v)
		}
		return v
	}
	return fmt.Sprint(v)
}
