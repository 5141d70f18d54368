package configs

import "time"

// defaultOnConflict is what a contract does that does not say: the strictest.
const defaultOnConflict = "reject"

// Default returns the configuration of a router that was given none: no
// contract and no pools, so that simulated engines serve. The caller owns it.
func Default() *Config {
	return &Config{
		Server: Server{
			Listen:       "127.0.0.1:30000",
			AdminListen:  "127.0.0.1:29000",
			MaxBody:      32 << 20,
			Drain:        30 * time.Second,
			ReadTimeout:  60 * time.Second,
			IdleTimeout:  120 * time.Second,
			WriteTimeout: 60 * time.Second,
			CORS:         CORS{MaxAge: 10 * time.Minute},
		},
		Sim: Sim{
			Engines: 2,
			Words:   16,
			Pace:    20 * time.Millisecond,
			TTFB:    50 * time.Millisecond,
		},
		Cache: Cache{
			Store:    "memory",
			MaxBytes: 256 << 20,
			Redis:    Redis{Prefix: "sluice:", Timeout: 50 * time.Millisecond},
		},
		Records: Records{
			Store:  "off",
			Queue:  8192,
			Batch:  256,
			Flush:  time.Second,
			Retain: 30 * 24 * time.Hour,
		},
		Capture: Capture{Sample: 0.01, MaxBytes: 1 << 30, Redact: true},
		Log:     Log{Level: "info", Format: "json", Access: true, Sample: 1, Slow: time.Minute},
	}
}

// DefaultPool returns what a pool has that does not say otherwise; the caller
// owns it. Requests to language models differ in cost by orders of magnitude,
// so they are spread by what is in flight and not in turn; openai is what
// every engine understands.
func DefaultPool() Pool {
	return Pool{
		Engine:     "openai",
		Balance:    "least_requests",
		Protocol:   "auto",
		LoadFactor: 1.25,
		Prefix:     Prefix{MaxBytes: 16 << 20, Block: 512},
		Timeouts: Timeouts{
			Connect:       2 * time.Second,
			FirstByte:     300 * time.Second,
			BetweenEvents: 60 * time.Second,
			Total:         time.Hour,
		},
		Health: Health{
			Path:           "/health",
			Interval:       5 * time.Second,
			Timeout:        2 * time.Second,
			UnhealthyAfter: 3,
			HealthyAfter:   2,
		},
		Breaker:  Breaker{Failures: 5, Cooldown: 30 * time.Second},
		Retry:    Retry{Attempts: 2, Budget: 0.2, Backoff: Backoff{Base: 25 * time.Millisecond, Max: 250 * time.Millisecond}},
		Discover: Discover{Scheme: "http", MinInterval: time.Second, MaxInterval: time.Minute},
		Limits:   Limits{MaxQueue: 1024, QueueTimeout: 10 * time.Second},
	}
}
