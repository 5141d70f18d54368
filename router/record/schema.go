package record

import (
	"slices"
	"strings"
)

// table is the name of the one table.
const table = "sluice_records"

// column is one column of the table and its type in either database. The order
// of columns is the one in which stores write a row.
type column struct{ name, sqlite, postgres string }

var columns = [...]column{
	{"created_at", "INTEGER", "timestamptz"},
	{"request_id", "TEXT", "text"},
	{"kind", "TEXT", "text"},
	{"attempt", "INTEGER", "integer"},
	{"surface", "TEXT", "text"},
	{"decision", "TEXT", "text"},
	{"tenant", "TEXT", "text"},
	{"pool", "TEXT", "text"},
	{"worker", "TEXT", "text"},
	{"provider", "TEXT", "text"},
	{"model", "TEXT", "text"},
	{"model_reported", "TEXT", "text"},
	{"status", "INTEGER", "integer"},
	{"error_code", "TEXT", "text"},
	{"prompt_tokens", "INTEGER", "bigint"},
	{"cached_prompt_tokens", "INTEGER", "bigint"},
	{"completion_tokens", "INTEGER", "bigint"},
	{"ttft_ms", "REAL", "double precision"},
	{"duration_ms", "REAL", "double precision"},
	{"stream", "INTEGER", "boolean"},
	{"finish_reason", "TEXT", "text"},
	{"sampling", "TEXT", "text"},
}

// index is the name of the index on created_at.
const index = table + "_created_at"

// dialect is what differs in the SQL of the two databases.
type dialect struct {
	columnType func(column) string
	// arg stands before the number of an argument.
	arg string
	// place is the hidden column that says where a row is.
	place string
}

var (
	sqliteDialect   = dialect{func(c column) string { return c.sqlite }, "?", "rowid"}
	postgresDialect = dialect{func(c column) string { return c.postgres }, "$", "ctid"}
)

// shape is what of the table a database has.
type shape struct {
	columns []string // empty where there is no table
	indexed bool
}

// migration returns the statements that make the table whole. There are none
// for one that is, so that a user without the right to change it may write.
func (d *dialect) migration(s shape) []string {
	var list []string
	if len(s.columns) == 0 {
		defs := make([]string, len(columns))
		for i, c := range columns {
			defs[i] = c.name + " " + d.columnType(c)
		}
		list = append(list, "CREATE TABLE "+table+" ("+strings.Join(defs, ", ")+")")
	} else {
		for _, c := range columns {
			if !slices.Contains(s.columns, c.name) {
				list = append(list, "ALTER TABLE "+table+" ADD COLUMN "+c.name+" "+d.columnType(c))
			}
		}
	}
	if !s.indexed {
		list = append(list, "CREATE INDEX IF NOT EXISTS "+index+" ON "+table+" (created_at)")
	}
	return list
}

// columnNames returns the names of all columns, in order and with commas.
func columnNames() string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return strings.Join(names, ", ")
}
