package record_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"sluice/router/record"
)

func ExampleRecorder() {
	dir, err := os.MkdirTemp("", "sluice-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	dsn := filepath.Join(dir, "sluice.db")
	ctx := context.Background()

	r, err := record.Open(record.Options{Store: record.SQLite, DSN: dsn, Required: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	row := r.Get()
	row.RequestID.SetString("42")
	row.Pool, row.Status = "llama", 200
	row.PromptTokens, row.CompletionTokens = 12, 34
	r.Add(row)
	if err := r.Close(ctx); err != nil {
		fmt.Println(err)
	}

	reader, err := record.OpenReader(ctx, record.SQLite, dsn)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer reader.Close()
	sums, err := reader.Sums(ctx, []string{"pool"}, record.Filter{Limit: 10})
	fmt.Println(sums.Columns[:2], sums.Rows[0][:2], err)
	// Output: [pool requests] [llama 1] <nil>
}
