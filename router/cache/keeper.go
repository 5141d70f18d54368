package cache

import (
	"context"
	"time"
)

// fall takes the server for down and wakes the keeper.
func (r *Redis) fall() {
	if r.up.CompareAndSwap(true, false) {
		r.fell <- struct{}{} // has room: the keeper took it before it set up
	}
}

// keep brings the server up, and again whenever it fell, until Close.
func (r *Redis) keep() {
	for r.bringUp() {
		select {
		case <-r.fell:
		case <-r.ctx.Done():
			return
		}
	}
}

// bringUp tries until the server answers, and then lets commands in. It reports
// false after Close.
func (r *Redis) bringUp() bool {
	warned := false
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if !r.settle() {
			return false
		}
		err := r.ping()
		if err == nil {
			r.late.Store(0)
			r.up.Store(true)
			if warned {
				r.log.Info("the response cache's server serves again", "addr", r.options.Addr)
			}
			return true
		}
		if r.ctx.Err() != nil {
			return false
		}
		warned = r.warn(ErrorDown, err) || warned
		if !r.sleep(pause) {
			return false
		}
	}
}

// settle waits until no command is under way. Each is bounded by the timeout, and
// none enters before the server is up. It reports false after Close.
func (r *Redis) settle() bool {
	for r.inFlight.Load() > 0 {
		if !r.sleep(time.Millisecond) {
			return false
		}
	}
	return r.ctx.Err() == nil
}

// ping asks the server whether it serves, and connects before, where there is no
// connection.
func (r *Redis) ping() error {
	ctx := context.WithValue(r.ctx, keeperKey{}, true)
	ctx, cancel := context.WithTimeout(ctx, max(connectTimeout, r.options.Timeout))
	defer cancel()
	return r.client.Do(ctx, r.client.B().Ping().Build()).Error()
}

// sleep waits for d and reports false after Close.
func (r *Redis) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.ctx.Done():
		return false
	}
}
