package record

import (
	"context"
	"errors"
	"time"
)

// store is an open database with a whole table. One goroutine uses it. After an
// error of write it is closed and opened anew.
type store interface {
	// write inserts rows, all or none. An error that wraps errUnknown leaves
	// open which. It keeps nothing of rows.
	write(ctx context.Context, rows []*Row) error
	// prune deletes at most limit rows from before t and returns how many.
	prune(ctx context.Context, t time.Time, limit int) (int64, error)
	close() error
}

// opener connects to a database and migrates it. Its errors, like those of the
// store, are fit for logs: they hold no password.
type opener func(ctx context.Context) (store, error)

// errUnknown is the answer to a commit that did not come: the rows may be in
// the table. They are not written again, since a row that is missing is counted
// and one that is there twice is not.
var errUnknown = errors.New("the answer to the commit did not come")

// How long a database may take.
const (
	connectTimeout = 5 * time.Second
	writeTimeout   = 10 * time.Second
	// An index over the rows of a month takes its time.
	migrateTimeout = 10 * time.Minute
)

// milliseconds returns d as the table has it.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
