package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sluice/configs"
)

// configFlags are the flags by which every verb that needs a configuration is
// told of it.
type configFlags struct {
	fs               *flag.FlagSet
	opts             configs.Options
	params, conflict *string
	copies           *string
}

func newConfigFlags(fs *flag.FlagSet, env []string) *configFlags {
	c := &configFlags{fs: fs, opts: configs.Options{Env: env}}
	fs.Func("config", "configuration `file` (.yaml, .json, .toml, .sluice) or etcd://host:2379,host:2379/key (etcds:// for TLS), repeatable", func(s string) error {
		c.opts.Files = append(c.opts.Files, s)
		return nil
	})
	fs.StringVar(&c.opts.Etcd.UserFile, "etcd-user-file", "", "`file` with user:password for etcds://")
	fs.StringVar(&c.opts.Etcd.TLS.CA, "etcd-ca", "", "`file` with the certificates that those of etcds:// servers must be signed by (default: those of the system)")
	fs.StringVar(&c.opts.Etcd.TLS.Cert, "etcd-cert", "", "`file` with the certificate to show to etcds:// servers")
	fs.StringVar(&c.opts.Etcd.TLS.Key, "etcd-key", "", "`file` with its key")
	fs.Func("set", "`key=value` of the configuration, repeatable: --set server.max_body=8MiB", func(s string) error {
		path, value, ok := strings.Cut(s, "=")
		if !ok {
			return errors.New("want key=value")
		}
		c.opts.Flags = append(c.opts.Flags, configs.Override{Flag: "--set " + path, Path: path, Value: value})
		return nil
	})
	c.params = fs.String("override-sampling-params", "", "sampling contract as a JSON `object`: '{\"temperature\":1,\"top_p\":{\"min\":0.9,\"max\":1}}'")
	c.conflict = fs.String("sampling-param-conflict", "", "what a conflict with it does: reject, allow, observe or replace")
	return c
}

// serveFlags adds those that stand for single keys.
func (c *configFlags) serveFlags() {
	key := func(name, path, text string) {
		c.fs.Func(name, text, func(s string) error {
			c.opts.Flags = append(c.opts.Flags, configs.Override{Flag: "--" + name, Path: path, Value: s})
			return nil
		})
	}
	key("listen", "server.listen", "`address` of the data listener")
	key("admin-listen", "server.admin_listen", "`address` of the admin listener")
	key("drain", "server.drain", "`time` that streams have to finish after SIGTERM")
	key("log-level", "log.level", "`level`: debug, info, warn or error")
	c.copies = c.fs.String("config-cache", copiesDir(), "`directory` for the last good copy of what comes from etcd, for a start without it")
}

// copiesDir returns where copies are kept if nothing is said: nowhere if the
// process has no home.
func copiesDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "sluice")
}

// options returns what the flags say, after fs was parsed.
func (c *configFlags) options() (configs.Options, error) {
	// An unset shell variable must not switch the contract off in silence.
	empty := ""
	c.fs.Visit(func(f *flag.Flag) {
		if (f.Name == "override-sampling-params" || f.Name == "sampling-param-conflict") && f.Value.String() == "" {
			empty = f.Name
		}
	})
	if empty != "" {
		return c.opts, fmt.Errorf("--%s is empty; leave it out to have no contract", empty)
	}
	overrides, err := configs.ParseContractFlags(*c.params, *c.conflict)
	if err != nil {
		return c.opts, err
	}
	c.opts.Flags = append(c.opts.Flags, overrides...)
	if c.copies != nil {
		c.opts.Etcd.Copies = *c.copies
	}
	return c.opts, nil
}

// load reads the configuration that the flags name.
func (c *configFlags) load() (*configs.Config, error) {
	o, err := c.options()
	if err != nil {
		return nil, err
	}
	return loadConfig(o)
}

// loadConfig reads a configuration. The error has the lines at fault of .sluice
// files.
func loadConfig(o configs.Options) (*configs.Config, error) {
	cfg, err := configs.Load(o)
	if err != nil {
		return nil, errors.New(configs.Report(err))
	}
	return cfg, nil
}
