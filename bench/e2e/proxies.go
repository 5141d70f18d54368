//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// target is something between load and engine.
type target struct {
	name string
	// program is what is run; nil for the engine itself.
	program func(engine, listen string) (*program, error)

	addr string
	proc *process // while it runs
}

// program is how a target is started.
type program struct {
	args  []string
	role  bool   // of this command: it takes lines of JSON
	file  string // of its configuration, in args
	text  string
	input string // of a role
}

const (
	nameDirect  = "direct"
	nameNginx   = "nginx"
	nameHAProxy = "haproxy"
	namePeer    = "Go ReverseProxy"
)

// targets returns all targets in the order of the tables, and what could not be
// had. sluice and before are builds of the router.
func targets(dir, sluice, before string) (list []*target, missing []string) {
	list = append(list, &target{name: nameDirect})
	installed := func(name string) bool {
		_, err := exec.LookPath(name)
		if err != nil {
			missing = append(missing, name+" is not installed: skipped")
		}
		return err == nil
	}
	if installed("nginx") {
		list = append(list, &target{name: nameNginx, program: nginx(dir)})
	}
	if installed("haproxy") {
		list = append(list, &target{name: nameHAProxy, program: haproxy(dir)})
	}
	list = append(list, &target{name: namePeer, program: reverseProxy})
	add := func(name, binary string) {
		for _, protocol := range []string{"http1", "h2c"} {
			for _, rules := range []bool{false, true} {
				full := name + " " + protocol
				if !rules {
					full += ", no rules"
				}
				list = append(list, &target{name: full, program: router(dir, binary, full, protocol, rules)})
			}
		}
	}
	add("sluice", sluice)
	if before != "" {
		add("before", before)
	}
	return list, missing
}

func nginx(dir string) func(engine, listen string) (*program, error) {
	return func(engine, listen string) (*program, error) {
		own := filepath.Join(dir, "nginx")
		if err := os.MkdirAll(own, 0o755); err != nil {
			return nil, err
		}
		file := filepath.Join(own, "nginx.conf")
		return &program{
			args: []string{"nginx", "-p", own, "-c", file, "-e", filepath.Join(own, "error.log")},
			file: file,
			// Bodies are held in memory, as the router holds them; events pass
			// as they come.
			text: fmt.Sprintf(`daemon off;
worker_processes 2;
worker_rlimit_nofile 20000;
pid nginx.pid;
events { worker_connections 16384; }
http {
  access_log off;
  client_max_body_size 64m;
  client_body_buffer_size 8m;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  keepalive_requests 1000000000;
  upstream engine { server %s; keepalive 512; keepalive_requests 1000000000; }
  server {
    listen %s;
    location / {
      proxy_pass http://engine;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 300s;
    }
  }
}
`, engine, listen),
		}, nil
	}
}

func haproxy(dir string) func(engine, listen string) (*program, error) {
	return func(engine, listen string) (*program, error) {
		file := filepath.Join(dir, "haproxy.cfg")
		return &program{
			args: []string{"haproxy", "-db", "-f", file},
			file: file,
			text: fmt.Sprintf(`global
  nbthread 2
  maxconn 9000
defaults
  mode http
  option http-no-delay
  timeout connect 5s
  timeout client 300s
  timeout server 300s
frontend clients
  bind %s
  default_backend engine
backend engine
  http-reuse always
  server engine %s
`, listen, engine),
		}, nil
	}
}

// router starts the router with one pool. The rules are the sampling contract,
// which reads and edits every body, and the access log.
func router(dir, binary, name, protocol string, rules bool) func(engine, listen string) (*program, error) {
	return func(engine, listen string) (*program, error) {
		file := filepath.Join(dir, strings.NewReplacer(" ", "-", ",", "").Replace(name)+".yaml")
		text := fmt.Sprintf(`server:
  listen: %s
  admin_listen: 127.0.0.1:0
log:
  level: %s
  access: %t
`, listen, "info", rules)
		if rules {
			text += `sampling_contract:
  on_conflict: reject
  params:
    temperature: 1
    top_p: {min: 0.9, max: 1}
`
		}
		text += fmt.Sprintf(`pools:
  - name: bench
    models: [%s]
    protocol: %s
    workers: [{url: "http://%s"}]
`, model, protocol, engine)
		return &program{args: []string{binary, "serve", "--config", file}, file: file, text: text}, nil
	}
}

// reverseProxy starts net/http/httputil.ReverseProxy in a process of its own.
func reverseProxy(engine, listen string) (*program, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return &program{
		args: []string{self, rolePeer}, role: true,
		input: fmt.Sprintf("{\"Engine\":%q,\"Listen\":%q}\n", engine, listen),
	}, nil
}

// serveReverseProxy is that process.
func serveReverseProxy(in io.Reader, out io.Writer) error {
	return serveLines(in, out, func(q *struct{ Engine, Listen string }) (hello, error) {
		ln, err := net.Listen("tcp", q.Listen)
		if err != nil {
			return hello{}, err
		}
		proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: q.Engine})
		proxy.FlushInterval = -1
		proxy.Transport = &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true}
		server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// Without it a fast engine's stream may be cut short: the server
			// closes the request's body while the transport still looks at it.
			if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			proxy.ServeHTTP(w, r)
		})}
		go func() { _ = server.Serve(ln) }() // until the process ends
		return hello{ln.Addr().String()}, nil
	})
}

// start starts t in front of engine and waits until it answers.
func (t *target) start(engine string) error {
	if t.program == nil {
		t.addr = engine
		return nil
	}
	listen, err := freeAddr()
	if err != nil {
		return err
	}
	p, err := t.program(engine, listen)
	if err != nil {
		return err
	}
	if p.file != "" {
		if err := os.WriteFile(p.file, []byte(p.text), 0o644); err != nil {
			return err
		}
	}
	t.addr = listen
	if t.proc, err = startProcess(p.args, p.role); err != nil {
		return err
	}
	if p.role {
		var h hello
		err = t.proc.ask([]byte(p.input), &h)
	} else {
		err = t.await()
	}
	if err != nil {
		t.stop()
		return fmt.Errorf("%s: %w", t.name, err)
	}
	return nil
}

// await waits until the target answers a small request.
func (t *target) await() error {
	s := scenario{Body: kib, Want: want{Size: answerSize}}
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var c *client
		if c, err = dialClient(&job{Addr: t.addr, Scenario: s}); err == nil {
			err = c.exchange(&tally{})
			_ = c.nc.Close()
		}
		if err == nil {
			return nil
		}
		if t.proc.exited() {
			break
		}
	}
	return fmt.Errorf("no answer from %q: %w", strings.Join(t.proc.cmd.Args, " "), err)
}

// stop ends the processes of t.
func (t *target) stop() {
	if t.proc != nil {
		t.proc.stop()
		t.proc = nil
	}
}

// pids returns the processes whose CPU time and memory are those of t.
func (t *target) pids() ([]int, error) {
	if t.proc == nil {
		return nil, nil
	}
	return family(t.proc.cmd.Process.Pid)
}

func freeAddr() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return ln.Addr().String(), ln.Close()
}

// version returns the first line of what a program says of its version.
func version(name string, args ...string) string {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return name + ": " + err.Error()
	}
	line, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	return string(line)
}
