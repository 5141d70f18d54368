package router

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// BenchmarkReplay replays lines with bodies of 1 and 19 KB, each under one rule or
// another, on one goroutine and on all processors. The bytes are those of the
// bodies.
func BenchmarkReplay(b *testing.B) {
	for _, size := range []int{1 << 10, 19 << 10} {
		var text bytes.Buffer
		bodies, content := 0, strings.Repeat("The quick brown fox jumps over the lazy dog.\\n", size/46)
		for i := range max(4<<20/size, 1) {
			body := fmt.Sprintf(`{"model":%q,"max_tokens":%d,"messages":[{"role":"user","content":"%s"}]}`, []string{"m", "alias", "w"}[i%3], 10*(i%9), content)
			bodies += len(body)
			fmt.Fprintf(&text, `{"path":"/v1/chat/completions","method":"POST","headers":{"x-tier":%q},"body":%s}`+"\n", []string{"free", "gold"}[i%2], body)
		}
		for _, workers := range []int{1, 2} {
			for _, texts := range [][]string{{replayConfig}, {replayConfig, strings.Replace(replayConfig, "max_tokens_limit: 50", "max_tokens_limit: 60", 1)}} {
				name := fmt.Sprintf("%dKB/workers=%d", size>>10, workers)
				if len(texts) > 1 {
					name += "/against"
				}
				b.Run(name, func(b *testing.B) {
					p := newReplay(b, workers, texts...)
					b.ReportAllocs()
					b.SetBytes(int64(bodies))
					for b.Loop() {
						p.files = p.files[:0]
						if err := p.Read("f", bytes.NewReader(text.Bytes())); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}
