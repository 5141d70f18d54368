package discover

import "testing"

// FuzzParseList holds every list that is taken to what a member must be, and to
// being the same when it is written out as lines.
func FuzzParseList(f *testing.F) {
	f.Add("http://a:1\nhttps://b weight=3 # second\n")
	f.Add("- url: http://a:1\n- {url: http://b:1, weight: 4}\n")
	f.Add(`[{"url": "http://a:1", "weight": 2}]`)
	f.Add("# none\r\n\r\n")
	f.Fuzz(func(t *testing.T, in string) {
		members, err := parseList([]byte(in))
		if (err == nil) != (len(members) > 0) {
			t.Fatalf("%d members and %v", len(members), err)
		}
		for _, m := range members {
			if err := m.check(); err != nil {
				t.Fatalf("member %+v: %v", m, err)
			}
		}
		if err != nil {
			return
		}
		again, err := parseList([]byte(textOf(members)))
		if err != nil || textOf(again) != textOf(members) {
			t.Fatalf("unexpected members of %q: %q, %v", textOf(members), textOf(again), err)
		}
	})
}
