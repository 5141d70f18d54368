package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// The server is stopped and started while rows come. None is lost but those that
// found the queue full.
func TestPostgres_Restart(t *testing.T) {
	c := postgres(t)
	db := postgresDB(t)
	var log testLog
	r := db.open(t, Options{Queue: 16, Batch: 4, Flush: 5 * time.Millisecond, Log: log.logger(), Required: true})
	add(r, "before")
	eventually(t, "a row", func() bool { return r.Stats().Written == 1 })
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		add(r, fmt.Sprintf("%03d", i))
	}
	eventually(t, "a warning", func() bool { return log.count("records cannot be written") == 1 && !r.Stats().Up })
	if s := r.Stats(); s.DroppedQueueFull < 100-20 || s.DroppedStoreError != 0 || s.LastError.IsZero() {
		t.Errorf("unexpected stats %+v", s)
	}
	if err := c.start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "rows", func() bool { s := r.Stats(); return s.Written+s.DroppedQueueFull == 101 })
	add(r, "after")
	closeRecorder(t, r)
	s := r.Stats()
	ids := db.ids(t)
	if len(ids) != int(s.Written) || s.Written+s.DroppedQueueFull != 102 || ids[0] != "before" || ids[1] != "000" || ids[len(ids)-1] != "after" {
		t.Errorf("unexpected stats %+v, rows %v", s, ids)
	}
	if strings.Contains(log.String(), clusterPassword) {
		t.Errorf("the log shows the password: %s", log.String())
	}
}

// A connection that was cut between two batches costs no row.
func TestPostgres_ConnectionCut(t *testing.T) {
	db := postgresDB(t)
	r := db.open(t, Options{Flush: 5 * time.Millisecond, Required: true})
	for i := range 3 {
		add(r, fmt.Sprint(i))
		eventually(t, "a row", func() bool { return r.Stats().Written == uint64(i+1) })
		db.exec(t, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = current_schema() AND pid <> pg_backend_pid()")
	}
	add(r, "last")
	closeRecorder(t, r)
	if ids := db.ids(t); !slices.Equal(ids, []string{"0", "1", "2", "last"}) {
		t.Errorf("unexpected rows %v", ids)
	}
	checkStats(t, r, Stats{Written: 4, Batches: 4})
}

// A user who may insert and nothing else is enough for a table that is whole.
func TestPostgres_InsertOnly(t *testing.T) {
	c := postgres(t)
	db := postgresDB(t)
	closeRecorder(t, db.open(t, Options{Required: true}))
	role := "writer_" + c.schema(t)
	db.exec(t, "CREATE ROLE "+role+" LOGIN PASSWORD '"+clusterPassword+"'", "GRANT INSERT ON "+table+" TO "+role,
		"DO $$BEGIN EXECUTE 'GRANT USAGE ON SCHEMA ' || current_schema() || ' TO "+role+"'; END$$")
	var log testLog
	limited := *db
	limited.dsn = strings.Replace(db.dsn, "//sluice:", "//"+role+":", 1)
	r := limited.open(t, Options{Required: true, Retain: time.Hour, Log: log.logger()})
	eventually(t, "a warning", func() bool { return log.count("old records cannot be deleted") == 1 })
	add(r, "a")
	closeRecorder(t, r)
	if ids := db.ids(t); !slices.Equal(ids, []string{"a"}) {
		t.Errorf("unexpected rows %v", ids)
	}
	if !strings.Contains(log.String(), "42501") { // insufficient_privilege
		t.Errorf("unexpected log %s", log.String())
	}
}

// A column that somebody gave a narrower type, or a constraint, costs the rows
// that do not fit, and no others.
func TestPostgres_RefusedRows(t *testing.T) {
	db := postgresDB(t)
	closeRecorder(t, db.open(t, Options{Required: true}))
	db.exec(t, "ALTER TABLE "+table+" ALTER COLUMN request_id TYPE varchar(4)")
	r := db.open(t, Options{Batch: 2, Flush: 5 * time.Millisecond})
	for _, id := range []string{"a", "too long", "b", "c"} {
		add(r, id)
	}
	eventually(t, "all rows", func() bool { s := r.Stats(); return s.Written+s.DroppedStoreError == 4 })
	closeRecorder(t, r)
	// "a" may have had the company of the bad row, or not.
	s := r.Stats()
	if ids := db.ids(t); !slices.Equal(ids[len(ids)-2:], []string{"b", "c"}) || slices.Contains(ids, "too long") || len(ids) != int(s.Written) {
		t.Errorf("unexpected rows %v, %+v", ids, s)
	}
}

// A server that takes connections and says nothing costs rows, not time: Close
// ends when it is told to.
func TestPostgres_Silent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r, err := Open(Options{Store: Postgres, DSN: "postgres://a:" + clusterPassword2 + "@" + l.Addr().String() + "/x?sslmode=disable"})
	if err != nil {
		t.Fatal(err)
	}
	add(r, "a")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := r.Close(ctx); err == nil {
		t.Error("a row was written to nowhere")
	}
	checkStats(t, r, Stats{DroppedClosed: 1})
}

// clusterPassword2 needs no escaping in a URL.
const clusterPassword2 = "an0ther-secret"

// No error shows a password, however wrong the DSN, and none leads to one.
func TestPostgres_PasswordNotShown(t *testing.T) {
	const secret = clusterPassword2
	c := postgres(t)
	f := func(dsn string) {
		t.Helper()
		check := func(err error) {
			t.Helper()
			if err == nil {
				t.Fatalf("no error for %q", dsn)
			}
			text := fmt.Sprintf("%v %+v %#v", err, err, err)
			var parse *pgconn.ParseConfigError
			var connect *pgconn.ConnectError
			if strings.Contains(text, secret) || errors.As(err, &parse) || errors.As(err, &connect) {
				t.Errorf("the error of %q shows the password: %s", dsn, text)
			}
		}
		_, err := Open(Options{Store: Postgres, DSN: dsn, Required: true})
		check(err)
		_, err = OpenReader(t.Context(), Postgres, dsn)
		check(err)
	}
	at := "127.0.0.1:" + c.port
	// Refused by the server.
	f("postgres://sluice:" + secret + "@" + at + "/postgres?sslmode=disable")
	f("postgres://nobody:" + secret + "@" + at + "/" + secret + "?sslmode=disable")
	f("host=127.0.0.1 port=" + c.port + " user=sluice password=" + secret + " dbname=none sslmode=disable")
	f("host=127.0.0.1 port=" + c.port + " user=sluice password='" + secret + "' dbname=none sslmode=require")
	// Nobody there.
	f("postgres://sluice:" + secret + "@127.0.0.1:1/x")
	f("postgres://sluice:" + secret + "@[::1/x")
	f("postgres://sluice@127.0.0.1:1/x?password=" + secret)
	// Not to be read.
	f("postgres://sluice:" + secret + "/x@" + at + "/x")
	f("postgres://sluice:pa ss" + secret + "%zz@" + at + "/x")
	f("postgres://sluice:" + secret + "@" + at + "/x?sslmode=bogus")
	f("postgres://a@sluice:" + secret + "@127.0.0.1/x")
	f("host=127.0.0.1 password=" + secret + " port=none")
	f("host=127.0.0.1 password = '" + secret)
	f(secret)
	f("mysql://sluice:" + secret + "@" + at + "/x")
}

// A commit whose answer is lost may have been one: its rows are counted as
// dropped and never written twice.
func TestPostgres_CommitUnanswered(t *testing.T) {
	f := func(name string, forward bool, want ...string) {
		t.Run(name, func(t *testing.T) {
			c := postgres(t)
			db := postgresDB(t)
			closeRecorder(t, db.open(t, Options{Required: true}))
			through := *db
			through.dsn = strings.Replace(db.dsn, ":"+c.port+"/", ":"+cutAtCommit(t, c.port, forward)+"/", 1)
			r := through.open(t, Options{Flush: 5 * time.Millisecond, Required: true})
			add(r, "a")
			eventually(t, "a row counted", func() bool { return r.Stats().DroppedStoreError == 1 })
			add(r, "b")
			closeRecorder(t, r)
			checkStats(t, r, Stats{Written: 1, Batches: 1, DroppedStoreError: 1})
			if ids := db.ids(t); !slices.Equal(ids, want) {
				t.Errorf("unexpected rows %v; want %v", ids, want)
			}
		})
	}
	f("done", true, "a", "b")
	f("lost", false, "b")
}

// cutAtCommit passes connections on to the port and returns its own. The first
// commit is the end of its connection, before the server has it or, if it is to
// be forwarded, after the server has answered.
func cutAtCommit(t *testing.T, port string, forward bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var cut atomic.Bool
	pass := func(client, server net.Conn) {
		var last atomic.Bool // the next answer is not passed on
		wg.Go(func() {
			copyUntil(client, server, func([]byte) bool { return last.Load() })
		})
		copyUntil(server, client, func(b []byte) bool {
			if bytes.Contains(b, []byte("commit\x00")) && cut.CompareAndSwap(false, true) {
				last.Store(true)
				return !forward
			}
			return false
		})
	}
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", "127.0.0.1:"+port)
			if err != nil {
				t.Error(err)
				_ = client.Close()
				return
			}
			wg.Go(func() { pass(client, server) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close() // ends Accept
		wg.Wait()
	})
	_, own, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return own
}

// copyUntil copies until an end closes or stop says so, and closes both.
func copyUntil(dst, src net.Conn, stop func(b []byte) bool) {
	defer dst.Close()
	defer src.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		if err != nil || stop(buf[:n]) {
			return
		}
		if _, err := dst.Write(buf[:n]); err != nil {
			return
		}
	}
}
