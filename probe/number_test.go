package probe

import (
	"encoding/json"
	"math"
	"math/big"
	"os"
	"strconv"
	"strings"
	"testing"
)

// numericRow is a row of testdata/numeric_strings.json: what pydantic 2.13.4
// reads in the string In as a float and as an int; nil where it refuses.
type numericRow struct {
	In    string
	Float *struct{ Float string }
	Int   *struct{ Int string }
}

func numericRows(tb testing.TB) []numericRow {
	tb.Helper()
	data, err := os.ReadFile("testdata/numeric_strings.json")
	if err != nil {
		tb.Fatal(err)
	}
	var file struct{ Rows []numericRow }
	if err := json.Unmarshal(data, &file); err != nil {
		tb.Fatal(err)
	}
	if len(file.Rows) < 3000 {
		tb.Fatalf("unexpected number of rows: %d", len(file.Rows))
	}
	return file.Rows
}

// quoted returns the JSON strings that read as s: plain, and all escaped.
func quoted(tb testing.TB, s string) [2]string {
	tb.Helper()
	plain, err := json.Marshal(s)
	if err != nil {
		tb.Fatal(err)
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		if r > 0xFFFF {
			b.WriteRune(r)
			continue
		}
		b.WriteString(`\u` + string("0123456789abcdef"[r>>12]) + string("0123456789abcdef"[r>>8&15]) + string("0123456789abcdef"[r>>4&15]) + string("0123456789abcdef"[r&15]))
	}
	b.WriteByte('"')
	return [2]string{string(plain), b.String()}
}

func TestNumericStrings(t *testing.T) {
	exact, unread := 0, 0
	for _, row := range numericRows(t) {
		for _, val := range quoted(t, row.In) {
			got, state := ReadNumber([]byte(val), KindString)
			n, ok, huge := ReadWhole([]byte(val), KindString)
			switch {
			case row.Float == nil && state != Unusable:
				t.Errorf("unexpected number of %q; got %v; want unusable", row.In, got)
			case row.Float != nil && state == Number:
				want := pythonFloat(t, row.Float.Float)
				if got != want && !(math.IsNaN(got) && math.IsNaN(want)) || math.Signbit(got) != math.Signbit(want) && !math.IsNaN(want) {
					t.Errorf("unexpected number of %q; got %v; want %v", row.In, got, want)
				}
				exact++
			case row.Float != nil && len(row.In) <= maxNumericString:
				t.Errorf("unexpected state of %q: %d", row.In, state)
			case row.Float != nil:
				unread++
			}
			checkWhole(t, row, n, ok, huge)
		}
	}
	t.Logf("%d exact, %d too long to be read", exact, unread)
}

func checkWhole(t *testing.T, row numericRow, n int64, ok, huge bool) {
	t.Helper()
	if !ok {
		// What is refused though an engine would read it: too long, white space
		// with underscores, or a sign in the middle, which only the int reading
		// of pydantic has.
		if row.Int != nil && row.Float != nil && len(row.In) <= maxNumericString && !strings.Contains(row.In, "_") {
			t.Errorf("unexpected whole number of %q: none; want %s", row.In, row.Int.Int)
		}
		return
	}
	if row.Int == nil {
		t.Errorf("unexpected whole number of %q; got %d; want none", row.In, n)
		return
	}
	want, valid := new(big.Int).SetString(row.Int.Int, 10)
	if !valid {
		t.Fatalf("bad row %q: %s", row.In, row.Int.Int)
	}
	if huge != !want.IsInt64() || !huge && want.Int64() != n || huge && (want.Sign() > 0) != (n > 0) {
		t.Errorf("unexpected whole number of %q; got %d, huge %v; want %s", row.In, n, huge, want)
	}
}

// pythonFloat reads what Python's float.hex wrote.
func pythonFloat(t *testing.T, s string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatalf("bad float %q: %v", s, err)
	}
	return x
}

func TestReadNumber(t *testing.T) {
	f := func(val string, kind Kind, want float64, state State) {
		t.Helper()
		got, s := ReadNumber([]byte(val), kind)
		if s != state || s == Number && math.Float64bits(got) != math.Float64bits(want) && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("unexpected number of %.80s; got %v, state %d; want %v, state %d", val, got, s, want, state)
		}
	}
	f("", KindNone, 0, Absent)
	f("null", KindNull, 0, Absent)
	f("true", KindTrue, 1, Number)
	f("false", KindFalse, 0, Number)
	f("{}", KindObject, 0, Unusable)
	f("[1]", KindArray, 0, Unusable)
	f("NaN", KindNumber, math.NaN(), Number)
	f("Infinity", KindNumber, math.Inf(1), Number)
	f("-Infinity", KindNumber, math.Inf(-1), Number)
	f("0.7", KindNumber, 0.7, Number)
	f("-0", KindNumber, math.Copysign(0, -1), Number)
	f("-0.0e5", KindNumber, math.Copysign(0, -1), Number)
	f("1E+2", KindNumber, 100, Number)
	f("9007199254740993", KindNumber, 9007199254740992, Number)
	f("0.1000000000000000055511151231257827021181583404541015625", KindNumber, 0.1, Number)
	f("1e-400", KindNumber, 0, Number)
	f("1e400", KindNumber, 0, Unusable)
	f("-1e309", KindNumber, 0, Unusable)
	f("1E1000", KindNumber, 0, Unusable)
	f("1e99999999999999999999999999", KindNumber, 0, Unusable)
	f("0e99999999999999999999999999", KindNumber, 0, Number)
	f("1e-99999999999999999999999999", KindNumber, 0, Number)
	f("1.7976931348623157e308", KindNumber, math.MaxFloat64, Number)
	f("1.7976931348623158e308", KindNumber, math.MaxFloat64, Number)
	f("1.7976931348623159e308", KindNumber, 0, Unusable)
	f("5e-324", KindNumber, 5e-324, Number)
	f("2.4703282292062327e-324", KindNumber, 0, Number)
	f("2.4703282292062328e-324", KindNumber, 5e-324, Number)
	f("0."+strings.Repeat("0", 200_000)+"1e200001", KindNumber, 1, Number)
	f("1"+strings.Repeat("0", 200_000)+"e-200000", KindNumber, 1, Number)
	f(tooLarge, KindNumber, 0, Unusable)
	f(tooLarge+".000", KindNumber, 0, Unusable)
	less := tooLarge[:len(tooLarge)-1] + "1"
	f(less, KindNumber, math.MaxFloat64, Number)
	f(less+"."+strings.Repeat("9", 10_000), KindNumber, math.MaxFloat64, Number)
	f("1"+strings.Repeat("0", 400), KindNumber, 0, Unusable)
	f(`"1e400"`, KindString, math.Inf(1), Number)
	f(`"-1e400"`, KindString, math.Inf(-1), Number)
	f(`"0x1p3"`, KindString, 0, Unusable)
	f(`"0b1"`, KindString, 0, Unusable)
	f(`"1_0"`, KindString, 10, Number)
	f(`" 1_0"`, KindString, 0, Unusable)
	f(`"_1"`, KindString, 0, Unusable)
	f(`"1__0"`, KindString, 0, Unusable)
	f(`"1_"`, KindString, 0, Unusable)
	f(`"1_e5"`, KindString, 1e5, Number)
	f(`"+InFiNiTy"`, KindString, math.Inf(1), Number)
	f(`"i_nf"`, KindString, math.Inf(1), Number)
	f(`""`, KindString, 0, Unusable)
	f(`" "`, KindString, 0, Unusable)
	f(`"."`, KindString, 0, Unusable)
	f(`".5"`, KindString, 0.5, Number)
	f(`"5."`, KindString, 5, Number)
	f(`"`+strings.Repeat(" ", 200_000)+`1`+strings.Repeat(`\u2003`, 100)+`"`, KindString, 1, Number)
	f(`"`+strings.Repeat("1", 64)+`"`, KindString, 1.1111111111111111e63, Number)
	f(`"`+strings.Repeat("1", 65)+`"`, KindString, 0, Unusable)
}

func TestB07_NumberOutsideFloat64(t *testing.T) {
	for _, lit := range []string{"1e400", "-1e309", "1E1000", "NaN", `"1e400"`} {
		b := scan(t, `{"model":"x","temperature":`+lit+`,"stream":true,"top_p":0.5}`, SurfaceChat)
		if b.Last(FieldModel) == nil || b.Last(FieldStream) == nil || b.Last(FieldTopP).Num != 0.5 {
			t.Errorf("unexpected members with %s: %+v", lit, b.Members)
		}
		want := Unusable
		if lit == "NaN" || lit[0] == '"' {
			want = Number
		}
		if got := b.Last(FieldTemperature).State; got != want {
			t.Errorf("unexpected state of %s; got %d; want %d", lit, got, want)
		}
	}
}

func TestReadWhole(t *testing.T) {
	f := func(val string, kind Kind, n int64, ok, huge bool) {
		t.Helper()
		gotN, gotOK, gotHuge := ReadWhole([]byte(val), kind)
		if gotN != n || gotOK != ok || gotHuge != huge {
			t.Errorf("unexpected whole number of %.60s; got %d %v %v; want %d %v %v", val, gotN, gotOK, gotHuge, n, ok, huge)
		}
	}
	f("500", KindNumber, 500, true, false)
	f("500.0", KindNumber, 500, true, false)
	f("5e2", KindNumber, 500, true, false)
	f("5.00e+2", KindNumber, 500, true, false)
	f("0.05e4", KindNumber, 500, true, false)
	f("50000e-2", KindNumber, 500, true, false)
	f("-3", KindNumber, -3, true, false)
	f("0", KindNumber, 0, true, false)
	f("-0.0", KindNumber, 0, true, false)
	f("0e999999999999999999999", KindNumber, 0, true, false)
	f("1.5", KindNumber, 0, false, false)
	f("1e-1", KindNumber, 0, false, false)
	f("1e-400", KindNumber, 0, false, false)
	f("500.0000000000000000000000000000001", KindNumber, 0, false, false)
	f("1e30", KindNumber, math.MaxInt64, true, true)
	f("1e400", KindNumber, math.MaxInt64, true, true)
	f("1e9999999999999999999999", KindNumber, math.MaxInt64, true, true)
	f("-1e30", KindNumber, math.MinInt64, true, true)
	f("18446744073709551616", KindNumber, math.MaxInt64, true, true)
	f("18446744073709551615", KindNumber, math.MaxInt64, true, true)
	f("9223372036854775807", KindNumber, math.MaxInt64, true, false)
	f("9223372036854775808", KindNumber, math.MaxInt64, true, true)
	f("-9223372036854775808", KindNumber, math.MinInt64, true, false)
	f("-9223372036854775809", KindNumber, math.MinInt64, true, true)
	f("1e18", KindNumber, 1e18, true, false)
	f("1e19", KindNumber, math.MaxInt64, true, true)
	f(strings.Repeat("9", 400), KindNumber, math.MaxInt64, true, true)
	f("1"+strings.Repeat("0", 400)+"e-400", KindNumber, 1, true, false)
	f("NaN", KindNumber, 0, false, false)
	f("Infinity", KindNumber, 0, false, false)
	f("true", KindTrue, 1, true, false)
	f("false", KindFalse, 0, true, false)
	f("null", KindNull, 0, false, false)
	f("", KindNone, 0, false, false)
	f("[]", KindArray, 0, false, false)
	f(`"500"`, KindString, 500, true, false)
	f(`" 500.0 "`, KindString, 500, true, false)
	f(`"1_000"`, KindString, 1000, true, false)
	f(`"1e3"`, KindString, 0, false, false)
	f(`"1.5"`, KindString, 0, false, false)
	f(`"inf"`, KindString, 0, false, false)
	f(`"18446744073709551616"`, KindString, math.MaxInt64, true, true)
}

// TestShortNumber tries all short numbers of a few digits.
func TestShortNumber(t *testing.T) {
	digits := "0123456789"
	f := func(text string) {
		t.Helper()
		want, err := strconv.ParseFloat(text, 64)
		valid := err == nil && json.Valid([]byte(text))
		for _, tail := range []string{",", "}", " \t\n\r    ", ",12345678", "e5      ", ".       ", "5"} {
			src := []byte(text + tail + strings.Repeat(" ", 8))
			x, end, ok := shortNumber(src, 0)
			if ok && (!valid && tail != "5" || tail[0] == 'e' || end != len(text) && tail != "5" && tail[0] != '.') {
				t.Fatalf("unexpected number in %q; got %v, %d", src, x, end)
			}
			if ok && tail[0] != '5' && (math.Float64bits(x) != math.Float64bits(want)) {
				t.Fatalf("unexpected number in %q; got %v; want %v", src, x, want)
			}
		}
	}
	for i := range 20_000 {
		text := strconv.Itoa(i)
		f(text)
		for point := range len(text) {
			f(text[:point] + "." + text[point:])
		}
	}
	for n := range 10 {
		for _, d := range digits {
			text := strings.Repeat(string(d), n)
			for point := range n {
				f("-" + text[:point] + "." + text[point:])
			}
			f(text)
			f("-" + text)
			f("0" + text)
			f("0." + text)
		}
	}
	if _, _, ok := shortNumber([]byte("1234567,"), 0); !ok {
		t.Error("unexpected refusal of 7 digits")
	}
	if x, end, ok := shortNumber([]byte("-123.4567,"), 0); ok || end != 0 || x != 0 {
		t.Error("unexpected reading of 8 bytes with the point") // as far as the block reaches
	}
}
