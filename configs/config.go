// Package configs is the configuration of the router: plain structs, how they
// are loaded (files, then environment, then flags, merged by koanf) and every
// rule that can be checked without running anything. It builds nothing.
package configs

import "time"

// Bytes is a size in bytes. It is written as a plain number or with a unit:
// 512, 64KiB, 32MiB, 1GiB (1024-based) or KB, MB, GB (1000-based).
type Bytes int64

// Config is one whole configuration. A Config that Load returned is valid and
// must not be changed.
type Config struct {
	Server   Server            `koanf:"server"`
	Contract *SamplingContract `koanf:"sampling_contract"`
	Pools    []Pool            `koanf:"pools"`
	Sim      Sim               `koanf:"sim"`
	Log      Log               `koanf:"log"`
}

// Server holds the listeners and what bounds a client.
type Server struct {
	Listen           string        `koanf:"listen"`
	AdminListen      string        `koanf:"admin_listen"`
	MaxBody          Bytes         `koanf:"max_body"`
	Drain            time.Duration `koanf:"drain"`
	ReadTimeout      time.Duration `koanf:"read_timeout"`
	IdleTimeout      time.Duration `koanf:"idle_timeout"`
	PassthroughPaths []string      `koanf:"passthrough_paths"`
}

// SamplingContract is what the operator declares about sampling parameters.
type SamplingContract struct {
	// OnConflict is reject, allow, observe or replace.
	OnConflict string `koanf:"on_conflict"`
	// Params holds a number (a pin) or {min, max} (a band) for each field.
	Params map[string]any `koanf:"params"`
}

// Pool is a set of workers that serve the same models.
type Pool struct {
	Name    string            `koanf:"name"`
	Models  []string          `koanf:"models"`
	Aliases map[string]string `koanf:"aliases"`
	// Engine is sglang, vllm or openai.
	Engine string `koanf:"engine"`
	// Balance is round_robin, random or least_requests.
	Balance  string   `koanf:"balance"`
	Workers  []Worker `koanf:"workers"`
	Timeouts Timeouts `koanf:"timeouts"`
}

// Worker is one engine.
type Worker struct {
	URL string `koanf:"url"`
}

// Timeouts bound the stages of one request at a worker. Zero means none.
type Timeouts struct {
	Connect       time.Duration `koanf:"connect"`
	FirstByte     time.Duration `koanf:"first_byte"`
	BetweenEvents time.Duration `koanf:"between_events"`
	Total         time.Duration `koanf:"total"`
}

// Log is the router's own log and the access log, both on standard error.
type Log struct {
	// Level is debug, info, warn or error.
	Level string `koanf:"level"`
	// Access turns the line a request on or off.
	Access bool `koanf:"access"`
}

// Sim tunes the simulated engines that serve when there are no pools.
type Sim struct {
	Engines int `koanf:"engines"`
}
