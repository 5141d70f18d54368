package gone

import (
	"fmt"
	"strings"
	"testing"
)

func BenchmarkArmDisarm(b *testing.B) {
	server, _ := newTestbed(b, newNotifier).pair()
	canceler := make(signal)
	b.ReportAllocs()
	for b.Loop() {
		server.Arm(canceler)
		server.Disarm()
	}
}

func BenchmarkHeadGuard(b *testing.B) {
	lines := "POST /v1/chat/completions HTTP/1.1\r\nHost: router.example:30000\r\nUser-Agent: OpenAI/Python 2.8.1\r\n" +
		"Accept: application/json\r\nAccept-Encoding: gzip, deflate\r\nContent-Type: application/json\r\n" +
		"Authorization: Bearer sk-0123456789abcdef\r\nX-Stainless-Lang: python\r\nContent-Length: 1024\r\n\r\n"
	for _, extra := range []int{0, 1000} {
		head := []byte(strings.Replace(lines, "sk-", "sk-"+strings.Repeat("x", extra), 1))
		b.Run(fmt.Sprintf("bytes=%d", len(head)), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(head)))
			for b.Loop() {
				var g headGuard
				if g.feed(head) >= 0 || g.state != guardBody {
					b.Fatal("unexpected fault")
				}
			}
		})
	}
}
