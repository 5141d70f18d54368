package configs

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// etcdRetry is how long etcd is left alone after it did not answer.
	etcdRetry = time.Second
	// etcdPoll is how often a key is read without an event: 400 times a second in
	// a fleet of 2,000 routers.
	etcdPoll = 5 * time.Second
)

var errWatchEnded = errors.New("is no longer watched")

// follow tells found what the key of a source holds, at first and whenever it may
// have changed, until ctx ends. The value is read each time, so that there is one
// way to learn it; the events of the watch only say when. trouble is told when it
// cannot be read, once until it can again.
func (e *Etcd) follow(ctx context.Context, name string, found chan<- finding, trouble func(error)) {
	told := ""
	for ctx.Err() == nil {
		err := e.followOnce(ctx, name, func(now digest) {
			told = ""
			select {
			case found <- finding{name, now}:
			case <-ctx.Done():
			}
		})
		if text := err.Error(); ctx.Err() == nil && text != told {
			trouble(fmt.Errorf("%s %w; it is tried again", name, err))
			told = text
		}
		select {
		case <-time.After(etcdRetry):
		case <-ctx.Done():
		}
	}
}

// followOnce follows the key until etcd fails, which its error tells.
func (e *Etcd) followOnce(ctx context.Context, name string, tell func(digest)) error {
	k, err := parseEtcd(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := e.client(ctx, k)
	if err != nil {
		return fmt.Errorf("cannot be watched: %w", err)
	}
	defer func() { _ = c.Close() }() // an error says what is known: the connection is lost
	var events clientv3.WatchChan
	poll := time.NewTicker(etcdPoll)
	defer poll.Stop()
	for {
		data, revision, err := e.get(ctx, c, k)
		if revision == 0 {
			return err // it has not answered
		}
		tell(digestOf(data, err))
		if events == nil {
			// A member that has lost its leader tells nothing new: the watch ends then.
			events = c.Watch(clientv3.WithRequireLeader(ctx), k.key, clientv3.WithRev(revision+1))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-poll.C: // a watch does not tell that its server is gone
		case resp, ok := <-events:
			if err := resp.Err(); err != nil {
				return fmt.Errorf("is no longer watched: %w", err)
			} else if !ok {
				return errWatchEnded
			}
		}
	}
}
