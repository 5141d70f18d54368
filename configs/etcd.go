package configs

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// etcdTimeout bounds one question to etcd if nothing else is said.
const etcdTimeout = 2 * time.Second

// Etcd says how keys in etcd are read (etcd 3.4 and later, the v3 API over gRPC).
// The zero value is for servers without TLS and users.
type Etcd struct {
	// UserFile holds user:password, in one line. It is for etcds:// alone, and is
	// read at each connection.
	UserFile string
	// TLS is how the servers of etcds:// are spoken to.
	TLS TLS
	// Copies is the directory of the copies that KeepCopies writes. Empty is none.
	Copies string
	// LastGood has Load take the copy of what etcd does not give.
	LastGood bool
	// Timeout bounds one question, the making of a connection included. Zero is
	// 2s.
	Timeout time.Duration
}

func (e *Etcd) timeout() time.Duration { return cmp.Or(e.Timeout, etcdTimeout) }

// etcdKey is the place of a configuration in etcd.
type etcdKey struct {
	endpoints []string // with their schemes, as the client wants them
	key       string
	secure    bool
}

func isEtcd(name string) bool {
	return strings.HasPrefix(name, "etcd://") || strings.HasPrefix(name, "etcds://")
}

// parseEtcd reads a name such as etcd://a:2379,b:2379/key. What follows the first
// slash after the hosts is the key: one that begins with a slash is written with
// two.
func parseEtcd(name string) (k etcdKey, err error) {
	scheme, rest, _ := strings.Cut(name, "://")
	hosts, key, _ := strings.Cut(rest, "/")
	if strings.Contains(hosts, "@") {
		return k, errors.New("must not hold a user or password; they are given by a file") // and are not echoed
	}
	if key == "" {
		return k, errors.New("must name a key, as " + scheme + "://host:2379/key does")
	}
	k = etcdKey{key: key, secure: scheme == "etcds"}
	scheme = "http://"
	if k.secure {
		scheme = "https://"
	}
	for host := range strings.SplitSeq(hosts, ",") {
		if h, port, err := net.SplitHostPort(host); err != nil || h == "" || port == "" {
			return k, errors.New("must name servers as host:port, with commas between, got " + quote(hosts))
		}
		k.endpoints = append(k.endpoints, scheme+host)
	}
	return k, nil
}

// client returns a client, which the caller closes. Without a user it is connected
// later: only questions fail.
func (e *Etcd) client(ctx context.Context, k etcdKey) (*clientv3.Client, error) {
	c := clientv3.Config{
		Context: ctx, Endpoints: k.endpoints, DialTimeout: e.timeout(),
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: e.timeout(),
		Logger: zap.NewNop(), // what is wrong is in the errors
	}
	if k.secure {
		secure, err := e.TLS.ClientConfig()
		if err != nil {
			return nil, err
		}
		if secure == nil {
			secure = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		c.TLS = secure
	}
	if e.UserFile != "" {
		if !k.secure {
			return nil, errors.New("a password would be readable on its way; use etcds://")
		}
		b, err := readSmall(e.UserFile, maxFieldValue)
		if err != nil {
			return nil, fmt.Errorf("the file of the user, %s, %w", quote(e.UserFile), err)
		}
		var ok bool
		if c.Username, c.Password, ok = strings.Cut(strings.TrimSpace(string(b)), ":"); !ok {
			return nil, fmt.Errorf("the file of the user, %s, must hold user:password", quote(e.UserFile))
		}
	}
	return clientv3.New(c)
}

// get returns what a key holds and the revision of the store that has it so.
func (e *Etcd) get(ctx context.Context, c *clientv3.Client, k etcdKey) (data []byte, revision int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout())
	defer cancel()
	resp, err := c.Get(ctx, k.key)
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("cannot be read: %w", err)
	case len(resp.Kvs) == 0:
		return nil, resp.Header.Revision, fmt.Errorf("%w %s (one that begins with a slash is written with two)", errNoKey, quote(k.key))
	case len(resp.Kvs[0].Value) > maxSourceBytes:
		return nil, resp.Header.Revision, fmt.Errorf("is larger than %v", Bytes(maxSourceBytes))
	}
	return resp.Kvs[0].Value, resp.Header.Revision, nil
}

var errNoKey = errors.New("there is no key")

// etcdProvider is the koanf.Provider of a key in etcd.
type etcdProvider struct {
	l    *loader
	name string
}

// ReadBytes returns what the key holds, or its copy where it may.
func (p *etcdProvider) ReadBytes() ([]byte, error) {
	e := p.l.etcd
	data, err := e.read(p.name)
	if err == nil {
		p.l.copies = append(p.l.copies, etcdCopy{e.copyName(p.name), data})
		return data, nil
	}
	if !e.LastGood || e.Copies == "" || errors.Is(err, errNoKey) {
		return nil, err
	}
	name := e.copyName(p.name)
	data, copyErr := fileProvider(name).ReadBytes()
	if copyErr != nil {
		return nil, fmt.Errorf("%w; the copy %s %w", err, name, copyErr)
	}
	p.l.stale = append(p.l.stale, fmt.Errorf("%s %w; its last good copy, %s, is used", p.name, err, name))
	return data, nil
}

// Read returns an error: without a parser there are no values.
func (p *etcdProvider) Read() (map[string]any, error) { return nil, errNoParser }

func (e *Etcd) read(name string) ([]byte, error) {
	k, err := parseEtcd(name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), e.timeout())
	defer cancel()
	c, err := e.client(ctx, k)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	defer func() { _ = c.Close() }() // the answer is there by then
	data, _, err := e.get(ctx, c, k)
	return data, err
}

// etcdCopy is a local copy of what a key held.
type etcdCopy struct {
	file string // empty: it is not to be kept
	data []byte
}

// copyName returns the file of the copy of a source, or "".
func (e *Etcd) copyName(name string) string {
	if e.Copies == "" {
		return ""
	}
	return filepath.Join(e.Copies, fmt.Sprintf("%x", sha256.Sum256([]byte(name)))[:16]+".copy")
}

// Stale says which copies stand in for keys in etcd, and why.
func (c *Config) Stale() []error { return c.stale }

// KeepCopies writes what was read from etcd into Etcd.Copies, for a start without
// etcd: after c has proved good. Each file is replaced as a whole and is for its
// owner alone to read. A copy that is there already is not written again.
func (c *Config) KeepCopies() error {
	var errs []error
	for _, k := range c.copies {
		if k.file == "" {
			continue
		}
		if old, err := os.ReadFile(k.file); err == nil && bytes.Equal(old, k.data) {
			continue
		}
		if err := k.write(); err != nil {
			errs = append(errs, fmt.Errorf("cannot keep a copy of the configuration: %w", err))
		}
	}
	return errors.Join(errs...)
}

func (k *etcdCopy) write() (err error) {
	if err := os.MkdirAll(filepath.Dir(k.file), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(k.file), filepath.Base(k.file)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // what failed is told
		}
	}()
	_, err = f.Write(k.data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), k.file)
}
