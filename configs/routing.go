package configs

import "time"

// Routing says which requests go where, and under which rules.
type Routing struct {
	// Decisions are looked at by priority, the highest first, ties by name; the
	// first one whose rules hold takes the request. A request that none takes
	// goes to the pool that lists its model.
	Decisions []Decision `koanf:"decisions"`
}

// Decision is one route: which requests it takes and what becomes of them.
type Decision struct {
	// Name identifies the decision in metrics, logs and records, in the form of
	// a pool's name.
	Name string `koanf:"name"`
	// Description is for people.
	Description string `koanf:"description"`
	// Priority orders the decisions, the highest first, -1000000 to 1000000.
	Priority int `koanf:"priority"`
	// Rules say which requests it takes. Without any it takes all.
	Rules *Rule `koanf:"rules"`
	// Model replaces the model that the client asked for: a model or an alias
	// of a pool. The request goes to that pool unless another is named.
	Model string `koanf:"model"`
	// Pool names the pool that the requests go to. Without Pool and Pools that
	// is the one that lists the model.
	Pool string `koanf:"pool"`
	// Pools share the requests by weight, in the place of Pool.
	Pools []PoolShare `koanf:"pools"`
	// Sticky has Pools shared by the session (the header x-session-id or
	// x-smg-routing-key) or, without one, by the body, so that equal requests go
	// to one pool. Without it, by chance.
	Sticky bool `koanf:"sticky"`
	// Fallback names pools that are tried in turn where the pool has no worker
	// that may be chosen, or where its queue is full.
	Fallback []string `koanf:"fallback"`
	// Contract is the sampling contract of the requests, in the place of the
	// model's, the pool's and the fleet's.
	Contract *SamplingContract `koanf:"sampling_contract"`
	// Force are top-level members that are set whatever the client sent, and
	// whatever the plugins and the contract say.
	Force Object `koanf:"force"`
	// Rollout enforces request_params and the decision's contract on a share of the
	// requests and observes the others.
	Rollout *Rollout `koanf:"rollout"`
	// Plugins are what is done with the requests, at most one of each type.
	Plugins []Plugin `koanf:"plugins"`
}

// PoolShare is a pool and its share of a decision's requests.
type PoolShare struct {
	// Name names the pool.
	Name string `koanf:"name"`
	// Weight is the pool's share relative to that of others, 0 to 1000000. Zero
	// is none.
	Weight int `koanf:"weight"`
}

// Rule is a condition, or several under an operator.
type Rule struct {
	// Operator is AND, OR or NOT (of its only condition). Empty for a
	// condition itself.
	Operator string `koanf:"operator"`
	// Conditions are what the operator joins.
	Conditions []Rule `koanf:"conditions"`
	// Type is model, surface, path, header, tenant, stream, context or body.
	Type string `koanf:"type"`
	// Name is the name of the model as the client wrote it, of the surface, the
	// header field, the tenant, or the top-level member of the body.
	Name string `koanf:"name"`
	// Exact is the whole path or the whole value of the header field.
	Exact string `koanf:"exact"`
	// Prefix is how the path or the value of the header field begins.
	Prefix string `koanf:"prefix"`
	// Regex is a regular expression (RE2) found in the value of the header field.
	Regex string `koanf:"regex"`
	// Present is whether the header field, or the member of the body, is there.
	Present *bool `koanf:"present"`
	// Value is whether the answer is asked for as a stream.
	Value *bool `koanf:"value"`
	// Equals is the value of the member of the body: a string, number or bool.
	Equals any `koanf:"equals"`
	// MinTokens and MaxTokens bound the estimated tokens of the prompt, both
	// inclusive: a number, 32K (thousands) or 1M.
	MinTokens Tokens `koanf:"min_tokens"`
	MaxTokens Tokens `koanf:"max_tokens"`
}

// The types of plugins.
const (
	RequestParams = "request_params"
	ResponseCache = "response_cache"
)

// Plugin is one thing done with the requests of a decision.
type Plugin struct {
	// Type is request_params or response_cache.
	Type string `koanf:"type"`
	// Configuration is what it does.
	Configuration PluginConfiguration `koanf:"configuration"`
}

// PluginConfiguration is what a plugin does; each type has keys of its own.
type PluginConfiguration struct {
	// BlockedParams (request_params) are top-level members that are removed.
	BlockedParams []string `koanf:"blocked_params"`
	// DefaultMaxTokens (request_params) is the output limit of a request that
	// gives none, at least 1, or auto: what the context window leaves.
	DefaultMaxTokens *TokenLimit `koanf:"default_max_tokens"`
	// AutoFallback (request_params) is what default_max_tokens auto does where
	// the worker cannot count the tokens of a prompt: estimate (the default) or
	// reject.
	AutoFallback string `koanf:"auto_fallback"`
	// MaxTokensLimit (request_params) is the largest output limit, at least 1;
	// larger ones are lowered to it.
	MaxTokensLimit *int `koanf:"max_tokens_limit"`
	// MaxN (request_params) is the largest number of answers, at least 1; a
	// larger one is lowered to it.
	MaxN *int `koanf:"max_n"`
	// StripUnknown (request_params) removes top-level members that neither the
	// surface nor the engine knows.
	StripUnknown bool `koanf:"strip_unknown"`
	// KnownParams (request_params) are further members that strip_unknown keeps.
	KnownParams []string `koanf:"known_params"`
	// OnViolation (request_params) is enforce (the default) or observe, which
	// changes and refuses nothing and counts what enforce would do.
	OnViolation string `koanf:"on_violation"`

	// Namespace (response_cache) separates the entries of different uses; the
	// word tenant separates those of each tenant.
	Namespace string `koanf:"namespace"`
	// Salt (response_cache) is a part of every key: a new one empties the cache.
	Salt string `koanf:"salt"`
	// TTL (response_cache) is how long an answer is used, at least 1s. Default
	// 1h.
	TTL *time.Duration `koanf:"ttl"`
	// MaxEntry (response_cache) is the largest answer that is stored. Default
	// 1MiB.
	MaxEntry *Bytes `koanf:"max_entry"`
	// Coalesce (response_cache) lets requests that are equal and under way at
	// the same time wait for the answer of the first.
	Coalesce bool `koanf:"coalesce"`
}

// Cache is where the answers of response_cache are stored.
type Cache struct {
	// Store is memory (the default), redis or off.
	Store string `koanf:"store"`
	// MaxBytes bounds the memory store, at least 1MiB. Default 256MiB.
	MaxBytes Bytes `koanf:"max_bytes"`
	// Redis is the server, which may be Valkey.
	Redis Redis `koanf:"redis"`
}

// Redis is a server that stores answers.
type Redis struct {
	// Addr is host:port. Required for the store redis.
	Addr string `koanf:"addr"`
	// Username and Password are for a server that asks for them.
	Username string `koanf:"username"`
	Password Secret `koanf:"password"`
	// DB is the number of the database, 0 to 1023.
	DB int `koanf:"db"`
	// TLS has the server spoken to in TLS, with a certificate that the system
	// trusts.
	TLS bool `koanf:"tls"`
	// Prefix begins every key. Default sluice:.
	Prefix string `koanf:"prefix"`
	// Timeout bounds one command; a later answer is a miss. Default 50ms.
	Timeout time.Duration `koanf:"timeout"`
}

// Records is where a row for each attempt is written.
type Records struct {
	// Store is off (the default), sqlite or postgres.
	Store string `koanf:"store"`
	// DSN is the file of sqlite (default sluice.db) or the connection string of
	// postgres.
	DSN Secret `koanf:"dsn"`
	// Queue is how many rows may wait to be written, 1 to 1000000. What is
	// beyond is dropped and counted. Default 8192.
	Queue int `koanf:"queue"`
	// Batch is how many rows are written at once, 1 to 10000. Default 256.
	Batch int `koanf:"batch"`
	// Flush is how long a row waits for others at most. Default 1s.
	Flush time.Duration `koanf:"flush"`
	// Retain is how long rows are kept. Zero keeps them for ever. Default 30d.
	Retain time.Duration `koanf:"retain"`
	// Required refuses to start without the store. Without it, what cannot be
	// written is dropped and counted.
	Required bool `koanf:"required"`
}

// Database returns the DSN, or the file that stands for none.
func (r *Records) Database() string {
	if r.DSN == "" {
		return "sluice.db"
	}
	return string(r.DSN)
}
