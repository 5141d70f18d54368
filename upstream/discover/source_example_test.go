package discover_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"sluice/upstream/discover"
)

// A file names two workers, one of which has three times the share of the other.
func ExampleWatch() {
	dir, err := os.MkdirTemp("", "workers")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "workers")
	list := "http://10.0.0.1:30000 # the old one\nhttp://10.0.0.2:30000 weight=3\n"
	if err := os.WriteFile(path, []byte(list), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	discover.Watch(ctx, discover.Source{File: path}, func(members []discover.Member, err error) {
		fmt.Println(members, err)
		cancel() // Watch returns
	})
	// Output: [{http://10.0.0.1:30000 1} {http://10.0.0.2:30000 3}] <nil>
}
