package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"sluice/configs"
)

const healthUsage = `sluice health asks the router on this machine whether it is alive.

usage: sluice health [flags]

It is for the HEALTHCHECK of an image without a shell, and for probes where clients
need a certificate. It reads no configuration, so that a faulty file makes no router
look ill: the address is that of the data listener in SLUICE_SERVER__LISTEN, or the
default. Redirects and proxies are not followed.

Exit codes: 0 the answer was 200, 1 it was not, or there was none, 2 wrong flags.

flags:
`

// healthAsk is what to ask of whom.
type healthAsk struct {
	address string
	path    string
	timeout time.Duration
	secure  bool
	tls     configs.TLS
}

// parseHealth reads the flags of health. It has told of an error already.
func parseHealth(p *process) (*healthAsk, error) {
	a := &healthAsk{address: configs.Default().Server.Listen, path: "/healthz"}
	for _, v := range p.env {
		if s, ok := strings.CutPrefix(v, "SLUICE_SERVER__LISTEN="); ok && s != "" {
			a.address = s
		}
	}
	fs := flag.NewFlagSet("sluice health", flag.ContinueOnError)
	fs.SetOutput(p.stderr)
	fs.Usage = func() {
		fmt.Fprint(p.stderr, healthUsage)
		fs.PrintDefaults()
	}
	fs.StringVar(&a.address, "listen", a.address, "`address` of the data listener; without a host, or with that of all addresses: loopback")
	ready := fs.Bool("ready", false, "ask whether it can serve, too: it has a worker and does not drain")
	fs.DurationVar(&a.timeout, "timeout", 2*time.Second, "`time` that the answer may take")
	fs.BoolVar(&a.secure, "tls", false, "speak TLS; so do the other flags of TLS")
	fs.StringVar(&a.tls.CA, "ca", "", "`file` with the certificates that the router's must be signed by (default: those of the system)")
	fs.StringVar(&a.tls.ServerName, "server-name", "", "`name` that the router's certificate must be for (default: the host of the address)")
	fs.StringVar(&a.tls.Cert, "cert", "", "`file` with the certificate to show, for server.tls.client_ca")
	fs.StringVar(&a.tls.Key, "key", "", "`file` with its key")
	if err := fs.Parse(p.args); err != nil {
		return nil, err
	}
	if *ready {
		a.path = "/ready"
	}
	var err error
	if fs.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", fs.Arg(0))
	} else {
		a.address, err = loopbackOf(a.address)
	}
	if err != nil {
		fmt.Fprintf(p.stderr, "sluice health: %v\n", err)
	}
	return a, err
}

// loopbackOf returns the address at which a listener of this machine is reached.
func loopbackOf(listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("the address must be host:port, got %q", listen)
	}
	switch host {
	case "", "0.0.0.0":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	return net.JoinHostPort(host, port), nil
}

func runHealth(p *process) int {
	a, err := parseHealth(p)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		return exitUsage
	}
	ctx, cancel := context.WithTimeout(p.stop, a.timeout)
	defer cancel()
	if err := a.ask(ctx); err != nil {
		fmt.Fprintf(p.stderr, "sluice health: %v\n", err)
		return exitFailed
	}
	fmt.Fprintln(p.stdout, "ok")
	return exitOK
}

// ask returns nil for the answer 200, and otherwise what came instead of it.
func (a *healthAsk) ask(ctx context.Context) error {
	secure, err := a.tls.ClientConfig()
	if err != nil {
		return err
	}
	scheme := "http"
	if a.secure || secure != nil {
		scheme = "https"
	}
	client := http.Client{
		Transport:     &http.Transport{TLSClientConfig: secure, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+a.address+a.path, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it is not used again
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	why, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	return errors.Join(fmt.Errorf("%s%s was answered %s %s", a.address, a.path, resp.Status, why), err)
}
