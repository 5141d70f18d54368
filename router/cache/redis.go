package cache

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// RedisOptions say how a Redis or Valkey server is spoken to.
type RedisOptions struct {
	// Addr is its host:port.
	Addr string
	// Username and Password are for a server that asks for them; without a
	// username the password is that of the user default.
	Username, Password string
	// DB is the number of the database.
	DB int
	// TLS has the server spoken to in TLS; nil: not.
	TLS *tls.Config
	// Prefix begins every key.
	Prefix string
	// Timeout bounds each command. It must be positive.
	Timeout time.Duration
}

// Redis is a Store on a Redis or Valkey server.
//
// It has one connection, over which commands are sent without waiting for one
// another. While the server does not serve, every Get is a miss at once and every
// Put does nothing; a goroutine, the keeper, tries until it serves again. Only the
// keeper connects, and only while no command is under way, so that no request ever
// waits for a connection.
//
// Put hands the entry to goroutines that write it. What is more than they can
// write is dropped.
type Redis struct {
	client  rueidis.Client
	options RedisOptions
	stats   *Stats
	log     *slog.Logger

	up       atomic.Bool
	inFlight atomic.Int64 // commands under way, for a moment those refused, too
	late     atomic.Int32 // timeouts without an answer in between
	fell     chan struct{}

	puts    chan put
	pending atomic.Int64 // bytes in puts

	warned [NumErrors]atomic.Int64 // when a warning was written last, since start
	start  time.Time

	stop   context.CancelFunc
	ctx    context.Context // until Close
	wg     sync.WaitGroup
	closed sync.Once
}

// put is an entry to write.
type put struct {
	key   Key
	entry *Entry
	ttl   time.Duration
}

const (
	// maxInFlight bounds the commands under way. It is below the length of the
	// client's queue (2^ringScale), which would block without a timeout when it
	// is full: see lateLimit for why commands that were given up do not fill it.
	maxInFlight = 512
	ringScale   = 10
	// lateLimit is how many timeouts in a row take the server for down. Answers
	// come in order on the one connection, so that an answer in time means that
	// none before it is outstanding.
	lateLimit = 3
	// maxPuts and maxPending bound what waits to be written, writers is how many
	// goroutines write.
	maxPuts    = 256
	maxPending = 32 << 20
	writers    = 4
	// connectTimeout bounds what the keeper does: to connect, in TLS and with a
	// password, takes several exchanges.
	connectTimeout = time.Second
	// Between two attempts the keeper waits from firstPause up to lastPause.
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
	// warnEvery is the least time between two warnings of a kind.
	warnEvery = time.Minute
)

// errNotConnected is what a command gets when there is no connection.
var errNotConnected = errors.New("not connected")

// keeperKey marks the context of the keeper, who may connect.
type keeperKey struct{}

// NewRedis returns a store on the server that the options name, which need not be
// there yet: it returns at once. Close it.
func NewRedis(options RedisOptions, stats *Stats, log *slog.Logger) (*Redis, error) {
	r := &Redis{
		options: options, stats: stats, log: log, start: time.Now(),
		fell: make(chan struct{}, 1), puts: make(chan put, maxPuts),
	}
	for i := range r.warned {
		r.warned[i].Store(-int64(warnEvery))
	}
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:       []string{options.Addr},
		Username:          options.Username,
		Password:          options.Password,
		SelectDB:          options.DB,
		ForceSingleClient: true, // returns a client without a connection, too
		DialCtxFn:         r.dial,
		Dialer:            net.Dialer{Timeout: connectTimeout, KeepAlive: time.Second},
		ConnWriteTimeout:  2 * connectTimeout, // closes a connection on which nothing comes
		PipelineMultiplex: -1,                 // one connection
		RingScaleEachConn: ringScale,
		AlwaysPipelining:  true,
		DisableRetry:      true,
		DisableCache:      true,
	})
	if client == nil {
		return nil, err
	}
	r.client = client
	r.ctx, r.stop = context.WithCancel(context.Background())
	r.wg.Go(r.keep)
	for range writers {
		r.wg.Go(r.write)
	}
	return r, nil
}

// dial connects for the keeper and for nobody else.
func (r *Redis) dial(ctx context.Context, addr string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
	if ctx.Value(keeperKey{}) == nil {
		return nil, errNotConnected
	}
	if r.options.TLS != nil {
		return (&tls.Dialer{NetDialer: d, Config: r.options.TLS}).DialContext(ctx, "tcp", addr)
	}
	return d.DialContext(ctx, "tcp", addr)
}

// Get implements Store.
func (r *Redis) Get(k *Key) *Entry {
	if !r.enter() {
		return nil
	}
	defer r.inFlight.Add(-1)
	ctx, cancel := context.WithTimeout(r.ctx, r.options.Timeout)
	defer cancel()
	raw, err := r.client.Do(ctx, r.client.B().Get().Key(r.name(k)).Build()).AsBytes()
	if err != nil {
		r.judge(err)
		return nil
	}
	r.late.Store(0)
	e, err := Decode(raw)
	if err != nil {
		r.failed(ErrorForeign, err)
		return nil
	}
	return e
}

// Put implements Store. It does not wait for the server.
func (r *Redis) Put(k *Key, e *Entry, ttl time.Duration) {
	size := int64(len(e.raw))
	if !r.up.Load() {
		r.stats.Errors[ErrorDown].Add(1)
		return
	}
	if n := r.pending.Add(size); n <= maxPending || n == size { // one may be larger
		select {
		case r.puts <- put{*k, e, ttl}:
			return
		default:
		}
	}
	r.pending.Add(-size)
	r.failed(ErrorBusy, errBusy)
}

var errBusy = errors.New("too much is under way")

// write writes what was put, until Close.
func (r *Redis) write() {
	for {
		select {
		case p := <-r.puts:
			r.set(&p)
			r.pending.Add(-int64(len(p.entry.raw)))
		case <-r.ctx.Done():
			return
		}
	}
}

func (r *Redis) set(p *put) {
	if !r.enter() {
		return
	}
	defer r.inFlight.Add(-1)
	ctx, cancel := context.WithTimeout(r.ctx, r.options.Timeout)
	defer cancel()
	// The command keeps the entry's bytes, also after a timeout: they never change.
	value := rueidis.BinaryString(p.entry.raw)
	err := r.client.Do(ctx, r.client.B().Set().Key(r.name(&p.key)).Value(value).Px(max(p.ttl, time.Millisecond)).Build()).Error()
	if err != nil {
		r.judge(err)
		return
	}
	r.late.Store(0)
}

// name returns the name of k on the server.
func (r *Redis) name(k *Key) string {
	var buf [128]byte
	return string(hex.AppendEncode(append(buf[:0], r.options.Prefix...), k[:]))
}

// enter counts a command as under way, unless the server is down or too many are.
// Only a command that entered may use the client.
func (r *Redis) enter() bool {
	if !r.up.Load() { // the keeper has warned
		r.stats.Errors[ErrorDown].Add(1)
		return false
	}
	n := r.inFlight.Add(1)
	switch {
	case !r.up.Load(): // the keeper may not have seen the count
		r.stats.Errors[ErrorDown].Add(1)
	case n > maxInFlight:
		r.failed(ErrorBusy, errBusy)
	default:
		return true
	}
	r.inFlight.Add(-1)
	return false
}

// judge counts a command that failed, and takes the server for down where the next
// one would fail, too.
func (r *Redis) judge(err error) {
	if answer, ok := rueidis.IsRedisErr(err); ok {
		r.judgeAnswer(answer)
		return
	}
	switch {
	case r.ctx.Err() != nil: // Close
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		r.stats.Errors[ErrorTimeout].Add(1)
		if r.late.Add(1) >= lateLimit {
			r.fall()
			return
		}
		r.warn(ErrorTimeout, err)
	default:
		r.stats.Errors[ErrorDown].Add(1)
		r.fall()
	}
}

// judgeAnswer is judge for an error that the server itself has told.
func (r *Redis) judgeAnswer(answer *rueidis.RedisError) {
	r.late.Store(0)
	text := answer.Error()
	switch {
	case answer.IsNil(): // a plain miss
	case strings.HasPrefix(text, "OOM "):
		r.failed(ErrorFull, answer)
	case strings.HasPrefix(text, "WRONGTYPE "):
		r.failed(ErrorForeign, answer)
	case answer.IsLoading(), strings.HasPrefix(text, "MASTERDOWN "), strings.HasPrefix(text, "NOAUTH "):
		r.stats.Errors[ErrorDown].Add(1)
		r.fall()
	default:
		r.failed(ErrorOther, answer)
	}
}

// failed counts an error and warns of it.
func (r *Redis) failed(kind ErrorKind, err error) {
	r.stats.Errors[kind].Add(1)
	r.warn(kind, err)
}

// warn writes a warning, unless one of the kind was written lately, and reports
// whether it did.
func (r *Redis) warn(kind ErrorKind, err error) bool {
	now := int64(time.Since(r.start))
	last := r.warned[kind].Load()
	if now-last < int64(warnEvery) || !r.warned[kind].CompareAndSwap(last, now) {
		return false
	}
	r.log.Warn("the response cache's server fails; requests go on without it",
		"addr", r.options.Addr, "kind", kind.String(), "error", r.redact(err))
	return true
}

// redact returns the text of err without the password: servers of old repeat the
// command that they do not understand.
func (r *Redis) redact(err error) string {
	text := err.Error()
	if r.options.Password != "" {
		text = strings.ReplaceAll(text, r.options.Password, "***")
	}
	return text
}

// Close implements Store. What is not written yet is dropped. It may take a second
// when the server is silent.
func (r *Redis) Close() {
	r.closed.Do(func() {
		r.stop()
		r.wg.Wait()
		r.client.Close()
	})
}
