// Package configs is the configuration of the router: plain structs, how they
// are loaded (files, then environment, then flags, merged by koanf) and every
// rule that can be checked without running anything. It builds nothing.
package configs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// Config is one whole configuration. A Config that Load returned is valid and
// must not be changed; it is then safe for concurrent use.
type Config struct {
	// Server holds the listeners and what bounds a client.
	Server Server `koanf:"server"`
	// Contract is the sampling contract of the whole fleet. Without it, every value
	// passes.
	Contract *SamplingContract `koanf:"sampling_contract"`
	// Pools are the sets of workers, each with its models. Without any, the
	// router starts simulated engines (Sim) and serves from those.
	Pools []Pool `koanf:"pools"`
	// Routing holds the decisions that come before the models of the pools.
	Routing Routing `koanf:"routing"`
	// Cache is where answers are stored for the plugin response_cache.
	Cache Cache `koanf:"cache"`
	// Records is where a row for each attempt is written.
	Records Records `koanf:"records"`
	// Capture writes requests to a file, to replay them under other rules.
	Capture Capture `koanf:"capture"`
	// Sim tunes the simulated engines. It has no effect when there are pools.
	Sim Sim `koanf:"sim"`
	// Log is the router's own log and the access log.
	Log Log `koanf:"log"`

	origins origins
	copies  []etcdCopy // of what was read from etcd
	stale   []error    // why copies stand in for etcd
}

// Server holds the listeners and what bounds a client.
type Server struct {
	// Listen is the address of the data listener, host:port. An empty host is
	// every address of the machine; port 0 is any free one.
	Listen string `koanf:"listen"`
	// AdminListen is the address of the admin listener, host:port. Beyond
	// loopback it needs Admin.
	AdminListen string `koanf:"admin_listen"`
	// Admin says who may use the admin listener.
	Admin Admin `koanf:"admin"`
	// TLS has the data listener speak TLS, HTTP/1.1 inside. Without it, plain.
	TLS ServerTLS `koanf:"tls"`
	// CORS says which web pages may use the data listener.
	CORS CORS `koanf:"cors"`
	// MaxBody is the largest request body in bytes, at least 1, after a
	// Content-Encoding is undone. A larger one is answered 413.
	MaxBody Bytes `koanf:"max_body"`
	// Drain is how long after SIGTERM running requests may take to finish.
	// Zero ends them at once.
	Drain time.Duration `koanf:"drain"`
	// ReadTimeout is how long a client may take to send a request. Zero means
	// as long as it likes.
	ReadTimeout time.Duration `koanf:"read_timeout"`
	// IdleTimeout is how long a keep-alive connection may wait for its next
	// request. Zero means as long as the client likes.
	IdleTimeout time.Duration `koanf:"idle_timeout"`
	// WriteTimeout is how long a client may take to accept a piece of its
	// answer; a stream may take as long as it likes in whole. Zero means as
	// long as the client likes.
	WriteTimeout time.Duration `koanf:"write_timeout"`
	// DrainDelay is how long after SIGTERM new connections are still taken,
	// while the load balancer in front learns that the router is not ready.
	// It is a part of Drain. Zero, the default, closes the listener at once.
	DrainDelay time.Duration `koanf:"drain_delay"`
	// PassthroughPaths are request paths, compared byte for byte and without
	// the query, that are forwarded although the router does not govern them.
	PassthroughPaths []string `koanf:"passthrough_paths"`
	// TenantHeader is the header field that names the tenant, for rules,
	// records and the cache. Empty, the default: there are no tenants. Whatever
	// stands in front of the router must set it.
	TenantHeader string `koanf:"tenant_header"`
}

// SamplingContract is what the operator declares about sampling parameters: for
// the fleet, a pool, a model or a decision. The most specific one holds.
type SamplingContract struct {
	// OnConflict is what happens to a request that breaks the contract: reject
	// (the default), allow, observe or replace.
	OnConflict string `koanf:"on_conflict"`
	// Params holds for each governed field a number (a pin) or a mapping with the
	// numbers min and max (a band). In Go: int, uint64 or float64, and
	// map[string]any.
	Params map[string]any `koanf:"params"`
	// Narrow lays the params over those of the contract that would hold
	// otherwise, which they may only narrow. It is not for the fleet's.
	Narrow bool `koanf:"narrow"`
	// Rollout enforces the contract on a share of the requests and observes the
	// others. It is for reject and replace, and not for a contract that narrows.
	Rollout *Rollout `koanf:"rollout"`
}

// Pool is a set of workers that serve the same models.
type Pool struct {
	// Name identifies the pool in metrics, logs and environment variables:
	// letters, digits, dot, dash and underscore, at most 64 of them.
	Name string `koanf:"name"`
	// Models are the names that requests ask for and that the workers know. A
	// model of several pools leads to the first one, and to the others where a
	// decision says so. One pool may have none: it serves every model that no
	// other pool lists.
	Models []string `koanf:"models"`
	// Aliases maps further names to one of Models; the worker gets the latter.
	Aliases map[string]string `koanf:"aliases"`
	// Engine is what the workers run: sglang, vllm or openai (anything else
	// that speaks that API; the default). An sglang worker is told to stop a
	// request whose client has left.
	Engine string `koanf:"engine"`
	// Balance is how a worker is chosen: least_requests (fewest in flight; the
	// default), round_robin, random, power_of_two, consistent_hash (by the session
	// that the header x-session-id or x-smg-routing-key names) or prefix_aware
	// (where the longest beginning of the conversation was served last; a session
	// comes first).
	Balance string `koanf:"balance"`
	// LoadFactor is how many times its share of the requests under way a worker
	// may have, 1 to 100, before consistent_hash and prefix_aware send requests
	// elsewhere. Default 1.25.
	LoadFactor float64 `koanf:"load_factor"`
	// Prefix is what prefix_aware remembers.
	Prefix Prefix `koanf:"prefix"`
	// Protocol is what workers are spoken to in: auto (h2c where a worker speaks
	// it, which is looked at when it joins and when it comes back, else HTTP/1.1;
	// the default), http1 or h2c. https workers are spoken to in HTTP/1.1.
	Protocol string `koanf:"protocol"`
	// Workers are the engines that are always there. At least one, unless
	// Discover finds them.
	Workers []Worker `koanf:"workers"`
	// Discover finds further workers.
	Discover Discover `koanf:"discover"`
	// Timeouts bound each request to a worker of the pool.
	Timeouts Timeouts `koanf:"timeouts"`
	// Health says how workers are asked whether they are well.
	Health Health `koanf:"health"`
	// Breaker says when a worker that fails requests is left alone.
	Breaker Breaker `koanf:"breaker"`
	// Retry says how often a request that failed is sent to another worker.
	Retry Retry `koanf:"retry"`
	// Limits bound the requests under way.
	Limits Limits `koanf:"limits"`
	// TLS says how the workers with https URLs are spoken to.
	TLS TLS `koanf:"tls"`
	// Headers edits the header of what is sent to the workers.
	Headers Headers `koanf:"headers"`
	// Contract is the sampling contract of the pool, in the place of the
	// fleet's.
	Contract *SamplingContract `koanf:"sampling_contract"`
	// ModelContracts are those of single models, in the place of the pool's.
	ModelContracts map[string]*SamplingContract `koanf:"model_contracts"`
	// ContextWindows are how many tokens the models take, prompt and answer
	// together: a number, 32K (thousands) or 1M. They are shown by /v1/models.
	ContextWindows map[string]Tokens `koanf:"context_windows"`
	// ExtraBody are top-level members that are added to a request that does not
	// have them.
	ExtraBody Object `koanf:"extra_body"`
	// Thinking are the members that turn a model's thinking on or off.
	Thinking Thinking `koanf:"thinking"`
}

// Discover finds workers while the router runs. At most one of File, DNS and SRV
// is given.
type Discover struct {
	// File lists one URL a line, and may add weight=N; it is read anew when it
	// changes. An empty or faulty file changes nothing.
	File string `koanf:"file"`
	// DNS is a name whose A and AAAA records are workers.
	DNS DNSName `koanf:"dns"`
	// SRV is a name whose SRV records are workers, such as
	// _http._tcp.engines.internal; the weights are theirs.
	SRV string `koanf:"srv"`
	// Scheme is http (the default) or https, for what DNS finds.
	Scheme string `koanf:"scheme"`
	// Resolver is the DNS server, host:port. Default: those of the system.
	Resolver string `koanf:"resolver"`
	// MinInterval and MaxInterval bound the time between two looks, which the
	// TTL of the records decides. Defaults 1s and 1m.
	MinInterval time.Duration `koanf:"min_interval"`
	MaxInterval time.Duration `koanf:"max_interval"`
}

// DNSName is a name with address records, and the port of the workers there.
type DNSName struct {
	// Name is the host name.
	Name string `koanf:"name"`
	// Port is that of the workers there, 1 to 65535.
	Port int `koanf:"port"`
}

// Prefix is what prefix_aware remembers of conversations.
type Prefix struct {
	// MaxBytes bounds the memory, 64KiB to 16GiB, 8 bytes for each block.
	// Default 16MiB.
	MaxBytes Bytes `koanf:"max_bytes"`
	// Block is how many bytes of a conversation are compared at once, 64 to
	// 65536; it doubles every 8 blocks. Default 512.
	Block Bytes `koanf:"block"`
}

// Worker is one engine.
type Worker struct {
	// Weight is the worker's share of the requests relative to that of others,
	// 1 to 1000. Zero, the default, is 1.
	Weight int `koanf:"weight"`
	// URL is http://host:port or https://host:port, without a path.
	URL string `koanf:"url"`
}

// Timeouts bound the stages of one request at a worker. Zero means none.
type Timeouts struct {
	// Connect bounds the making of a connection. Default 2s.
	Connect time.Duration `koanf:"connect"`
	// FirstByte bounds the wait for the first byte of the answer, from the
	// moment the request is sent. Default 5m: a long prompt takes long.
	FirstByte time.Duration `koanf:"first_byte"`
	// BetweenEvents bounds the silence between two reads of an answer that has
	// begun. Default 1m.
	BetweenEvents time.Duration `koanf:"between_events"`
	// Total bounds the whole, from the connection to the last byte. Default 1h.
	Total time.Duration `koanf:"total"`
}

// Health says how workers are asked whether they are well. A worker is well
// until probes say otherwise.
type Health struct {
	// Path is the request target of a probe, a GET. An answer below 500 is a
	// good one. Default /health.
	Path string `koanf:"path"`
	// Interval is the time between two probes of a worker, give or take a
	// tenth. Zero turns probes off. Default 5s.
	Interval time.Duration `koanf:"interval"`
	// Timeout bounds one probe, at least 1ms. Default 2s.
	Timeout time.Duration `koanf:"timeout"`
	// UnhealthyAfter is the number of bad probes in a row, at least 1, after
	// which a worker gets no requests. Default 3.
	UnhealthyAfter int `koanf:"unhealthy_after"`
	// HealthyAfter is the number of good ones in a row, at least 1, after which
	// it gets requests again. Default 2.
	HealthyAfter int `koanf:"healthy_after"`
	// MinHealthy is how many workers the probes leave in service whatever they
	// find, 0 to 100000. Default 0.
	MinHealthy int `koanf:"min_healthy"`
	// FailOpen sends requests to any worker when none is well, instead of
	// answering 503. Default false.
	FailOpen bool `koanf:"fail_open"`
}

// Breaker says when a worker that fails requests is left alone. What counts is
// no connection, no or a broken answer, a timeout and a status of 500 and
// above, but not 503.
type Breaker struct {
	// Failures is the number of failures in a row after which a worker gets no
	// requests. Zero turns the breaker off. Default 5.
	Failures int `koanf:"failures"`
	// Cooldown is how long, at least 1ms. Then one request tries the worker.
	// Default 30s.
	Cooldown time.Duration `koanf:"cooldown"`
}

// Retry says how often a request that failed is sent to another worker: for no
// connection, one that closed or stayed silent before the answer, and 502, 503
// and 504; never after a byte of an answer has reached the client.
type Retry struct {
	// Attempts bounds the tries of a request, the first included, 0 to 10: 0
	// and 1 both mean one. Default 2.
	Attempts int `koanf:"attempts"`
	// Budget bounds retries to this share of the pool's requests, 0 to 1.
	// Default 0.2.
	Budget float64 `koanf:"budget"`
	// Backoff is the wait before a try, but for the first one after a failed
	// connection.
	Backoff Backoff `koanf:"backoff"`
}

// Backoff is a wait by chance between zero and a bound that doubles from Base to
// Max with each try.
type Backoff struct {
	// Base is the first bound. Zero is no wait. Default 25ms.
	Base time.Duration `koanf:"base"`
	// Max is the last one. Default 250ms.
	Max time.Duration `koanf:"max"`
}

// Limits bound the requests under way at a pool. What is beyond waits in a queue,
// first come, first served; what cannot wait is answered 503.
type Limits struct {
	// MaxInflightPerWorker bounds them for each worker. Zero, the default, is
	// no bound.
	MaxInflightPerWorker int `koanf:"max_inflight_per_worker"`
	// MaxInflight bounds them for all workers together. Zero, the default, is
	// no bound.
	MaxInflight int `koanf:"max_inflight"`
	// MaxQueue is how many requests may wait. Default 1024.
	MaxQueue int `koanf:"max_queue"`
	// QueueTimeout is how long each may wait, at least 1ms. Default 10s.
	QueueTimeout time.Duration `koanf:"queue_timeout"`
}

// TLS says how workers with https URLs are spoken to: with TLS 1.2 or later, and
// never without a check of the worker's certificate. Files are PEM, at most
// 1 MiB, and are read at the start.
type TLS struct {
	// CA is a file with the certificates that a worker's must be signed by.
	// Without it, those of the system.
	CA string `koanf:"ca"`
	// ServerName is the name or IP address that a worker's certificate must be
	// for. Without it, the host of the worker's URL.
	ServerName string `koanf:"server_name"`
	// Cert and Key are the files of the certificate that the router shows to
	// workers that ask for one, and of its private key.
	Cert string `koanf:"cert"`
	Key  string `koanf:"key"`
}

// Headers edits the header of all that is sent to the workers of a pool,
// requests and probes, after the client's fields and the router's own.
type Headers struct {
	// Set adds fields by name. Fields of the same name, in any case, are
	// replaced. A value is a string, {env: NAME} or {file: path}, read at the
	// start; one line end at the end of a file is left out.
	Set map[string]Secret `koanf:"set"`
	// Remove are the names of fields that are left out, in any case.
	Remove []string `koanf:"remove"`
}

// Log is the router's own log and the access log, both on standard error.
type Log struct {
	// Level is the least important thing to log: debug, info, warn or error.
	Level string `koanf:"level"`
	// Format is how a line is written: json (the default) or text, key=value. A
	// change needs a restart.
	Format string `koanf:"format"`
	// Access turns the line a request on or off.
	Access bool `koanf:"access"`
	// Sample is the share of good requests that get a line, 0 to 1; what failed,
	// was refused or was slow gets one always. Default 1.
	Sample float64 `koanf:"sample"`
	// Slow is how long a request takes, from its head to the last byte of its
	// answer, that counts as slow. Zero: none does. Default 1m.
	Slow time.Duration `koanf:"slow"`
}

// Sim tunes the simulated engines that serve when there are no pools.
type Sim struct {
	// Engines is how many to start, 1 to 64.
	Engines int `koanf:"engines"`
	// Words is the length of an answer in words, each one token, at least 1.
	Words int `koanf:"words"`
	// Pace is the time between two words.
	Pace time.Duration `koanf:"pace"`
	// TTFB is the time from a request to the first byte of its answer.
	TTFB time.Duration `koanf:"ttfb"`
}

// Origin returns where the value at path, such as pools[0].balance, was set;
// the zero Origin says that nobody did and the default holds.
func (c *Config) Origin(path string) Origin { return c.origins[path].origin }

// Hash returns a SHA-256 of the effective configuration, in hexadecimal: equal
// for equal values, wherever they were set and however they were written. It
// compares routers of one version; another version may have other keys. Secrets
// and the content of files take no part, so that a hash that is shown tells
// nothing of them: equal hashes do not mean equal keys.
func (c *Config) Hash() string {
	text, err := json.Marshal(c)
	if err != nil {
		// Load lets only finite numbers, strings and maps of them through.
		panic("BUG: a valid configuration cannot be encoded: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
