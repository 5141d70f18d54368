package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/big"
	"math/rand"
	"mime/multipart"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bytedance/sonic"
)

// maxFuzzed bounds what is looked at: the fuzzer makes inputs longer and longer, and
// ten short ones find more.
const maxFuzzed = 4096

// checkSame compares what Scan says with what it says without vectors.
func checkSame(t *testing.T, src []byte, surface Surface) {
	t.Helper()
	var want Body
	fault := FaultNone
	withoutVectors(func() { fault = Scan(src, surface, sampling, &want) })
	onEachPath(func() {
		var got Body
		if f := Scan(src, surface, sampling, &got); f != fault {
			t.Fatalf("unexpected fault of %q: %v; without vectors %v", src, f, fault)
		}
		same := got.Span == want.Span && got.FaultAt == want.FaultAt && got.FaultField == want.FaultField && got.Repeated == want.Repeated &&
			got.OddSampling == want.OddSampling && got.last == want.last && slices.Equal(got.Objects, want.Objects) &&
			slices.EqualFunc(got.Members, want.Members, sameMember) && slices.EqualFunc(got.Inner, want.Inner, sameMember)
		if !same {
			t.Fatalf("unexpected body of %q\n got %+v\nwant %+v", src, got, want)
		}
	})
}

// sameMember reports whether two members are equal, NaN or not.
func sameMember(a, b Member) bool {
	sameNum := math.Float64bits(a.Num) == math.Float64bits(b.Num)
	a.Num, b.Num = 0, 0
	return sameNum && a == b
}

func FuzzScan(f *testing.F) {
	for _, d := range corpus(f) {
		if len(d.text) > 400 {
			continue
		}
		f.Add([]byte(d.text))
		f.Add([]byte(`{"a":` + d.text + `,"n":1}`))
		f.Add([]byte(`{"model":"m","n":1,"temperature":0.7,"top_p":` + d.text + `,"stream":true,"a":` + d.text + `,"b":null,"top_p":12.5}`))
		f.Add([]byte(`{"sampling_params":[` + d.text + `,{"temperature":` + d.text + `}],"n":1}`))
	}
	var b Body
	f.Fuzz(func(t *testing.T, src []byte) {
		if len(src) > maxFuzzed {
			return
		}
		// The second time with room for the vector path up to the last member.
		for _, tail := range []string{"", strings.Repeat(" ", 130)} {
			src = append(src[:len(src):len(src)], tail...)
			checkScan(t, src, &b)
			checkObjects(t, src, &b)
			checkSame(t, src, SurfaceChat)
			checkSame(t, src, SurfaceGenerate)
		}
	})
}

// checkScan compares Scan with the twin, with encoding/json and with sonic.
func checkScan(t *testing.T, src []byte, b *Body) {
	t.Helper()
	fault := Scan(src, SurfaceEmbeddings, allNumbers, b)
	want, ok := twinScan(src)
	switch fault {
	case FaultDuplicate, FaultMembers:
		return // what the twin does not know of
	case FaultNone:
		if !ok {
			t.Fatalf("unexpected body of %q: the twin refuses it", src)
		}
	default:
		if ok {
			t.Fatalf("unexpected fault of %q at %d: %v", src, b.FaultAt, fault)
		}
		if json.Valid(src) && utf8.Valid(src) && bytes.HasPrefix(bytes.TrimLeft(src, " \t\r\n"), []byte("{")) && fault != FaultDepth {
			t.Fatalf("unexpected fault of valid JSON %q at %d: %v", src, b.FaultAt, fault)
		}
		return
	}
	if len(b.Members) != len(want) {
		t.Fatalf("unexpected number of members of %q; got %d; want %d", src, len(b.Members), len(want))
	}
	last := map[string]string{}
	for i, w := range want {
		m := &b.Members[i]
		key, val := m.Key.Of(src), m.Val.Of(src)
		if string(key) != w.raw || string(val) != w.val {
			t.Fatalf("unexpected member %d of %q; got %s: %s; want %s: %s", i, src, key, val, w.raw, w.val)
		}
		if m.Field.String() != w.key && (m.Field != FieldNone || fieldByName([]byte(w.key)) != FieldNone) {
			t.Fatalf("unexpected field of %s: %v", key, m.Field)
		}
		if string(AppendUnquoted(nil, key)) != w.key || !EqualKey(key, w.key) {
			t.Fatalf("unexpected key %s; got %q; want %q", key, AppendUnquoted(nil, key), w.key)
		}
		last[w.key] = w.val
	}
	// A second real parser: sonic reads what is behind the keys as we do.
	var other map[string]sonic.NoCopyRawMessage
	if err := sonic.Unmarshal(TrimBOM(src), &other); err != nil || !json.Valid(TrimBOM(src)) {
		return
	}
	if len(other) != len(last) {
		t.Fatalf("unexpected keys of %q; sonic has %d; want %d", src, len(other), len(last))
	}
	for key, val := range last {
		if got := strings.TrimSpace(string(other[key])); got != val {
			t.Fatalf("unexpected value of %q in %q; sonic has %s; want %s", key, src, got, val)
		}
	}
}

// checkObjects compares the objects of sampling_params and stream_options with
// what the twin reads in their spans.
func checkObjects(t *testing.T, src []byte, b *Body) {
	t.Helper()
	for _, surface := range []Surface{SurfaceGenerate, SurfaceChat} {
		if Scan(src, surface, allNumbers, b) != FaultNone {
			continue
		}
		for _, o := range b.Objects {
			text := o.Span.Of(src)
			want, ok := twinScan(text)
			if !ok || len(want) != int(o.Last-o.First) {
				t.Fatalf("unexpected object %s: %d members; the twin has %d", text, o.Last-o.First, len(want))
			}
			for i, w := range want {
				m := &b.Inner[int(o.First)+i]
				if string(m.Key.Of(src)) != w.raw || string(m.Val.Of(src)) != w.val {
					t.Fatalf("unexpected member of %s; got %s: %s; want %s: %s", text, m.Key.Of(src), m.Val.Of(src), w.raw, w.val)
				}
			}
		}
	}
}

// FuzzPaths compares the vector path, where there is one, with the portable one:
// the source stands as a string and as a nested value, behind up to 64 bytes.
func FuzzPaths(f *testing.F) {
	for _, d := range corpus(f) {
		if len(d.text) < 400 {
			f.Add([]byte(d.text), uint8(len(d.text)))
			f.Add([]byte(strings.Repeat("x", 60)+d.text+strings.Repeat("é\\n", 40)+`"]`), uint8(len(d.text)))
		}
	}
	var fast, slow scratch
	f.Fuzz(func(t *testing.T, src []byte, pad uint8) {
		if len(src) <= maxFuzzed {
			onEachPath(func() { checkPaths(t, src, int(pad), &fast, &slow) })
		}
	})
}

func checkPaths(t *testing.T, src []byte, pad int, fast, slow *scratch) {
	t.Helper()
	for _, head := range []string{`"`, `[`, `["`, `{"a":[`} {
		at := 3 + pad&63
		text := append([]byte(strings.Repeat(" ", at)+head), src...)
		for _, tail := range []string{"", `"`, `"]`, strings.Repeat(" ", 100)} {
			text = append(text, tail...)
			if head == `"` {
				end, fault := skipString(text, at+1)
				wantEnd, want := portableString(text, at+1)
				if end != wantEnd || fault != want {
					t.Fatalf("unexpected end of string %q; got %d %v; want %d %v", text, end, fault, wantEnd, want)
				}
				escaped := bytes.IndexByte(text[at:wantEnd], '\\') >= 0
				if end := shortString(text, at+1); end != 0 && (end != wantEnd || want != FaultNone || escaped) {
					t.Fatalf("unexpected end of short string %q; got %d; want %d %v %v", text, end, wantEnd, want, escaped)
				}
				continue
			}
			end, fault := skipNested(text, at, 1+pad<<1, fast)
			wantEnd, want := portableNested(text, at, 1+pad<<1, slow)
			if end != wantEnd || fault != want {
				t.Fatalf("unexpected end of nested value %q; got %d %v; want %d %v", text, end, fault, wantEnd, want)
			}
		}
	}
}

func FuzzNumber(f *testing.F) {
	for _, row := range numericRows(f)[1000:1600] {
		f.Add(row.In)
	}
	for _, s := range []string{
		"1", "-0", "0.7", "1e400", "-1e309", "1e-400", "5e-324", "1.7976931348623158e308", "9007199254740993", "0x1p3", "1_0", " 1_0", "inf", "-NaN",
		"500.0", "1e18", "9223372036854775808", tooLarge, "0.000001e6", "\u20031\u0085", "2.4703282292062327208e-324", "1e23", "8.5e22", "123456789012345e22",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		checkLiteral(t, s)
		if utf8.ValidString(s) {
			checkNumericString(t, s)
		}
	})
}

// exact returns the value of a decimal text, nil where its exponent is too large
// to be written out.
func exact(text string) *big.Rat {
	mantissa, exp, found := strings.Cut(strings.ToLower(text), "e")
	if n := len(strings.TrimLeft(strings.TrimLeft(exp, "+-"), "0")); found && n > 4 || len(mantissa) > 5000 {
		return nil
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil
	}
	return r
}

// checkLiteral compares the reading of a JSON number with math/big.
func checkLiteral(t *testing.T, s string) {
	t.Helper()
	if !json.Valid([]byte(s)) || strings.TrimSpace(s) != s || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
		return
	}
	got, state := ReadNumber([]byte(s), KindNumber)
	n, whole, huge := ReadWhole([]byte(s), KindNumber)
	r := exact(s)
	if r == nil {
		return
	}
	want, _ := r.Float64()
	switch {
	case math.IsInf(want, 0) != (state == Unusable):
		t.Fatalf("unexpected state of %s: %d; math/big has %v", s, state, want)
	case state == Number && got != want:
		t.Fatalf("unexpected number of %s; got %v; want %v", s, got, want)
	case state == Number && math.Signbit(got) != (s[0] == '-'):
		t.Fatalf("unexpected sign of %s: %v", s, got)
	case whole != r.IsInt():
		t.Fatalf("unexpected whole of %s: %v", s, whole)
	case whole && huge == r.Num().IsInt64():
		t.Fatalf("unexpected huge of %s: %v", s, huge)
	case whole && !huge && r.Num().Int64() != n:
		t.Fatalf("unexpected whole number of %s: %d", s, n)
	case huge && (r.Sign() > 0) != (n == math.MaxInt64) || huge && (r.Sign() < 0) != (n == math.MinInt64):
		t.Fatalf("unexpected huge number of %s: %d", s, n)
	}
}

// checkNumericString compares the reading of a string with the rule of the
// specification, followed word by word with strings and math/big.
func checkNumericString(t *testing.T, s string) {
	t.Helper()
	want, ok := twinNumber(s)
	for _, val := range quoted(t, s) {
		got, state := ReadNumber([]byte(val), KindString)
		switch {
		case ok != (state == Number):
			t.Fatalf("unexpected state of %s: %d; want number: %v", val, state, ok)
		case ok && got != want && !(math.IsNaN(got) && math.IsNaN(want)):
			t.Fatalf("unexpected number of %s; got %v; want %v", val, got, want)
		}
		n, whole, huge := ReadWhole([]byte(val), KindString)
		if whole && (!ok || want != math.Trunc(want) || !huge && float64(n) != want) {
			t.Fatalf("unexpected whole number of %s: %d; want %v", val, n, want)
		}
	}
}

const unicodeSpace = "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"

func twinNumber(s string) (float64, bool) {
	if trimmed := strings.Trim(s, unicodeSpace); len(trimmed) <= maxNumericString {
		if x, ok := twinFloat(trimmed); ok {
			return x, true
		}
	}
	if len(s) > maxNumericString || !strings.Contains(s, "_") || s[0] == '_' || s[len(s)-1] == '_' || strings.Contains(s, "__") {
		return 0, false
	}
	return twinFloat(strings.ReplaceAll(s, "_", ""))
}

func twinFloat(s string) (float64, bool) {
	abs := strings.TrimPrefix(s, "+")
	sign := 1
	if abs == s {
		if abs = strings.TrimPrefix(s, "-"); abs != s {
			sign = -1
		}
	}
	switch strings.ToLower(abs) {
	case "inf", "infinity":
		return math.Inf(sign), true
	case "nan":
		return math.NaN(), true
	}
	mantissa, exp, found := strings.Cut(strings.ReplaceAll(abs, "E", "e"), "e")
	if found {
		digits := exp
		if exp != "" && (exp[0] == '+' || exp[0] == '-') {
			digits = exp[1:]
		}
		if digits == "" || strings.Trim(digits, "0123456789") != "" {
			return 0, false
		}
	}
	whole, frac, _ := strings.Cut(mantissa, ".")
	if whole+frac == "" || strings.Trim(whole+frac, "0123456789") != "" {
		return 0, false
	}
	if strings.Trim(whole+frac, "0") == "" {
		return math.Copysign(0, float64(sign)), true
	}
	r := exact("0" + whole + "." + frac + "0e0" + strings.TrimPrefix(exp, "+"))
	if found {
		r = exact("0" + whole + "." + frac + "0e" + exp)
	}
	if r == nil { // an exponent of more than four digits
		if strings.HasPrefix(exp, "-") {
			return math.Copysign(0, float64(sign)), true
		}
		return math.Inf(sign), true
	}
	x, _ := r.Float64()
	return x * float64(sign), true
}

func FuzzUnquote(f *testing.F) {
	for _, d := range corpus(f) {
		if strings.HasPrefix(d.text, `"`) {
			f.Add(d.text, "a")
			f.Add(d.text[1:]+"x", strings.Trim(d.text, `"`))
		}
	}
	f.Fuzz(func(t *testing.T, raw, name string) {
		got := string(AppendUnquoted(nil, []byte(raw)))
		equal := EqualKey([]byte(raw), name)
		var want string
		if !utf8.ValidString(raw) || !strings.HasPrefix(raw, `"`) || json.Unmarshal([]byte(raw), &want) != nil || strings.TrimSpace(raw) != raw {
			return
		}
		if got != want {
			t.Fatalf("unexpected text of %s; got %q; want %q", raw, got, want)
		}
		if equal != (name == want) || !EqualKey([]byte(raw), want) {
			t.Fatalf("unexpected EqualKey of %s and %q: %v", raw, name, equal)
		}
	})
}

func FuzzStream(f *testing.F) {
	rnd := rand.New(rand.NewSource(2))
	for _, c := range streamCases {
		for kind := range 4 {
			f.Add([]byte(lineEnds(c.text, kind, rnd)), uint8(c.surface), int64(kind))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, surface uint8, seed int64) {
		if len(text) > maxFuzzed {
			return
		}
		of := SurfaceChat + Surface(surface%uint8(SurfaceGenerate))
		var whole, parts, events Stream
		whole.Reset(of)
		whole.Feed(text)
		whole.End()
		parts.Reset(of)
		rnd := rand.New(rand.NewSource(seed))
		for rest := bytes.Clone(text); len(rest) > 0; {
			n := 1 + rnd.Intn(min(len(rest), 1+rnd.Intn(64)))
			parts.Feed(rest[:n])
			clear(rest[:n])
			rest = rest[n:]
		}
		parts.End()
		if whole.seen() != parts.seen() {
			t.Fatalf("unexpected result of %q in parts\n got %+v\nwant %+v", text, parts.seen(), whole.seen())
		}
		events.Reset(of)
		ended := 0
		for rest := text; len(rest) > 0; {
			n, event := events.Next(rest)
			if event {
				ended++
			}
			rest = rest[n:]
		}
		events.End()
		if whole.seen() != events.seen() || events.Events-ended > 1 || events.Events < ended {
			t.Fatalf("unexpected result of %q by events\n got %+v, %d ended\nwant %+v", text, events.seen(), ended, whole.seen())
		}
		n, done := twinEvents(string(text))
		if n != whole.Events || done && !whole.Done {
			t.Fatalf("unexpected events of %q; got %d, %v; want %d, %v", text, whole.Events, whole.Done, n, done)
		}
	})
}

// twinEvents counts the events with data, and looks for [DONE].
func twinEvents(text string) (n int, done bool) {
	first, _, _ := strings.Cut(strings.ReplaceAll(text, "\r", "\n"), "\n")
	text = strings.TrimPrefix(first, "\uFEFF") + text[len(first):]
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	for event := range strings.SplitSeq(text+"\n", "\n\n") {
		var data []string
		for line := range strings.SplitSeq(event, "\n") {
			if line == "data" || strings.HasPrefix(line, "data:") {
				value := strings.TrimPrefix(strings.TrimPrefix(line, "data"), ":")
				data = append(data, strings.TrimPrefix(value, " "))
			}
		}
		if len(data) > 0 {
			n++
			done = done || strings.Join(data, "\n") == "[DONE]"
		}
	}
	return n, done
}

func FuzzMultipart(f *testing.F) {
	for _, s := range []string{
		"--XX\nContent-Disposition: form-data; name=\"model\"\n\nm\n--XX--\n",
		"--XX\nContent-Disposition: form-data; name=\"file\"; filename=\"a\\\"b\"\nContent-Type: audio/wav\n\nRIFF\n--XY\n--XX\nContent-Disposition: form-data; name=model\n\n\n--XX--\n",
		"--XX\nContent-Disposition: form-data; name=\"x\"; name=\"model\"\n\nm\n--XX--\n",
		"--XX\nContent-Disposition: form-data; name*=utf-8''model\n\nm\n--XX--\n",
		"--XX--",
	} {
		f.Add([]byte(crlf(s)))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		span, fault := MultipartField(body, []byte("XX"), "model")
		if fault != FaultNone {
			return
		}
		got := span.Of(body)
		var want []byte
		r := multipart.NewReader(bytes.NewReader(body), "XX")
		for {
			part, err := r.NextRawPart()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return // more is refused than need be: the engine's answer
			}
			text, err := io.ReadAll(part)
			if err != nil {
				return
			}
			if part.FormName() == "model" {
				want = append(want, text...)
			}
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("unexpected value in %q; got %q; want %q", body, got, want)
		}
	})
}

// FuzzUsage compares the usage of a chat answer, and of an event that holds it,
// with what encoding/json finds.
func FuzzUsage(f *testing.F) {
	for _, c := range streamCases {
		for line := range strings.SplitSeq(c.text, "\n") {
			if data, ok := strings.CutPrefix(line, "data:"); ok {
				f.Add([]byte(strings.TrimSpace(data)))
			}
		}
	}
	f.Add([]byte(`{"usage":{"input_tokens":12.0,"output_tokens":1e3,"cache_read_input_tokens":4,"x":{"prompt_tokens":1}},"error":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		top := map[string]any{}
		if len(data) > maxFuzzed || !utf8.Valid(data) || repeatsKey(data) {
			return
		}
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		if d.Decode(&top) != nil || !json.Valid(data) {
			return
		}
		want, ok := twinUsage(top)
		if !ok {
			return
		}
		got, _ := ReadUsage(data, SurfaceChat)
		got.Finish = ""
		if got != want {
			t.Fatalf("unexpected usage of %s; got %+v; want %+v", data, got, want)
		}
		if bytes.ContainsAny(data, "\r\n\\") || len(top) == 0 {
			return
		}
		var s Stream
		s.Reset(SurfaceChat)
		s.Feed([]byte("data: "))
		s.Feed(data)
		s.Feed([]byte("\n\n"))
		s.Usage.Finish = ""
		failed := top["object"] == "error" || top["type"] == "error"
		switch top["error"].(type) {
		case string, map[string]any:
			failed = true
		}
		if s.Usage != want || s.Events != 1 || s.Failed != failed && bytes.Contains(data, []byte(`"error"`)) {
			t.Fatalf("unexpected result of the event %s; got %+v; want %+v, failed %v", data, s.seen(), want, failed)
		}
	})
}

// twinUsage reads a usage the slow way. It reports false where that says a number
// in two ways, of which the last counts.
func twinUsage(top map[string]any) (u Usage, ok bool) {
	usage, is := top["usage"].(map[string]any)
	if !is {
		return u, true
	}
	set := func(to *int64, in map[string]any, keys ...string) {
		for _, key := range keys {
			text, is := in[key].(json.Number)
			if !is || len(text) > 100 {
				continue
			}
			r := exact(text.String())
			if r == nil || !r.IsInt() || r.Sign() < 0 || r.Cmp(big.NewRat(maxTokens, 1)) > 0 {
				continue
			}
			if *to != 0 {
				ok = false
			}
			*to, u.Seen = r.Num().Int64(), true
		}
	}
	ok = true
	set(&u.PromptTokens, usage, "prompt_tokens", "input_tokens")
	set(&u.CompletionTokens, usage, "completion_tokens", "output_tokens")
	set(&u.CachedPromptTokens, usage, "cached_tokens", "cache_read_input_tokens", "prompt_cache_hit_tokens")
	for _, key := range []string{"prompt_tokens_details", "input_tokens_details"} {
		if details, is := usage[key].(map[string]any); is {
			set(&u.CachedPromptTokens, details, "cached_tokens")
		}
	}
	// A zero that is told twice is not seen above.
	return u, ok && !(u.Seen && strings.Contains(keysOf(usage), "0"))
}

// keysOf names the keys of usage that hold zero, as a 0 each.
func keysOf(usage map[string]any) string {
	var b strings.Builder
	for _, val := range usage {
		if text, is := val.(json.Number); is && strings.Trim(text.String(), "-0.eE+") == "" {
			b.WriteByte('0')
		}
	}
	return b.String()
}

// repeatsKey reports whether an object in data has a key twice.
func repeatsKey(data []byte) bool {
	d := json.NewDecoder(bytes.NewReader(data))
	var seen []map[string]bool
	var isKey []bool
	for {
		tok, err := d.Token()
		if err != nil {
			return false
		}
		switch tok {
		case json.Delim('{'):
			seen, isKey = append(seen, map[string]bool{}), append(isKey, true)
			continue
		case json.Delim('['):
			seen, isKey = append(seen, nil), append(isKey, false)
			continue
		case json.Delim('}'), json.Delim(']'):
			seen, isKey = seen[:len(seen)-1], isKey[:len(isKey)-1]
		default:
			if n := len(isKey) - 1; n >= 0 && seen[n] != nil && isKey[n] {
				key, _ := tok.(string)
				if seen[n][key] {
					return true
				}
				seen[n][key] = true
				isKey[n] = false
				continue
			}
		}
		if n := len(isKey) - 1; n >= 0 && seen[n] != nil {
			isKey[n] = true
		}
	}
}
