package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// clusterPassword is what no error and no log line may hold.
const clusterPassword = "tops3cret/pw"

// cluster is a PostgreSQL server of the tests' own, on a port of loopback.
type cluster struct {
	bin, dir, port string
	cred           *syscall.Credential
	cmd            *exec.Cmd
	stdin          io.Closer
	schemas        atomic.Int32
}

// shared is the one cluster of the process: making one takes a second.
var shared = sync.OnceValues(newCluster)

var clusterStarted atomic.Bool

// errNoPostgres is the reason to skip.
var errNoPostgres = errors.New("initdb and postgres are neither in PATH nor in /usr/lib/postgresql/*/bin (Debian: postgresql)")

// postgres returns the running cluster, and skips the test where there is no
// PostgreSQL.
func postgres(t testing.TB) *cluster {
	t.Helper()
	c, err := shared()
	if errors.Is(err, errNoPostgres) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// stopPostgres ends the cluster of the process, if it has one.
func stopPostgres() error {
	if !clusterStarted.Load() {
		return nil
	}
	c, err := shared()
	if err != nil {
		return err
	}
	return errors.Join(c.stop(), os.RemoveAll(c.dir))
}

func newCluster() (*cluster, error) {
	c := new(cluster)
	if c.bin = postgresBin(); c.bin == "" {
		return nil, errNoPostgres
	}
	var err error
	if c.dir, err = os.MkdirTemp("", "sluice-postgres-"); err != nil {
		return nil, err
	}
	clusterStarted.Store(true)
	password := filepath.Join(c.dir, "password")
	if err := os.WriteFile(password, []byte(clusterPassword), 0o600); err != nil {
		return nil, err
	}
	if err := c.leaveRoot(c.dir, password); err != nil {
		return nil, err
	}
	initdb := c.command("initdb", "--pgdata", filepath.Join(c.dir, "data"), "--username", "sluice", "--pwfile", password,
		"--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if _, c.port, err = net.SplitHostPort(l.Addr().String()); err != nil {
		return nil, err
	}
	if err := l.Close(); err != nil {
		return nil, err
	}
	return c, c.start()
}

// postgresBin returns the directory of the newest server.
func postgresBin() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path)
		}
	}
	list, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(list) == 0 {
		return ""
	}
	return filepath.Dir(list[len(list)-1])
}

// leaveRoot has the programs run by another user than root, who they refuse, and
// gives that user the files.
func (c *cluster) leaveRoot(files ...string) error {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return err
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return err
	}
	c.cred = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	for _, f := range files {
		if err := os.Chown(f, int(uid), int(gid)); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir = c.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.cred}
	return cmd
}

// start starts the server. A shell stands before it, which stops it when its
// input ends: also when the test dies.
func (c *cluster) start() error {
	server := filepath.Join(c.bin, "postgres")
	c.cmd = exec.Command("sh", "-c", `"$@" </dev/null & read _; kill -INT $!; wait $!`, "sh",
		server, "-D", filepath.Join(c.dir, "data"), "-h", "127.0.0.1", "-p", c.port, "-k", "", "-F")
	c.cmd.Dir = c.dir
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.cred}
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the server has its own descriptor
	c.cmd.Stdout, c.cmd.Stderr = log, log
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := c.cmd.Start(); err != nil {
		return err
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := c.connect("public")
		if err == nil {
			closePostgres(conn)
			return nil
		}
		if time.Now().After(end) {
			text, _ := os.ReadFile(filepath.Join(c.dir, "log")) // for the message
			return fmt.Errorf("the server does not start: %w\n%s", err, text)
		}
	}
}

// stop stops the server, which cuts its connections.
func (c *cluster) stop() error { return errors.Join(c.stdin.Close(), c.cmd.Wait()) }

// dsn leads to a schema. Sessions can be told by its name.
func (c *cluster) dsn(schema string) string {
	return fmt.Sprintf("postgres://sluice:%s@127.0.0.1:%s/postgres?sslmode=disable&search_path=%s&application_name=%s",
		strings.ReplaceAll(clusterPassword, "/", "%2F"), c.port, schema, schema)
}

func (c *cluster) connect(schema string) (*pgx.Conn, error) {
	config, err := parsePostgres(c.dsn(schema))
	if err != nil {
		return nil, err
	}
	return dialPostgres(context.Background(), config)
}

// schema makes an empty schema, which is as good as a database and made faster,
// and returns its name.
func (c *cluster) schema(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("s%d", c.schemas.Add(1))
	c.exec(t, name, "CREATE SCHEMA "+name)
	return name
}

// exec runs statements.
func (c *cluster) exec(t testing.TB, schema string, statements ...string) {
	t.Helper()
	conn, err := c.connect(schema)
	if err != nil {
		t.Fatal(err)
	}
	defer closePostgres(conn)
	for _, s := range statements {
		if _, err := conn.Exec(context.Background(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}
