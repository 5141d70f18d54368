// Package probe reads request bodies and event streams without decoding them:
// bytes in, offsets out. It makes one pass, keeps no reference to what it read,
// and allocates nothing in steady state. It does no I/O and depends on nothing
// but a few leaf packages of the standard library.
//
// # What a body may be
//
// The engine behind the router parses the body again, with a parser of its own.
// A rule is worth nothing if that parser sees another member than Scan does. So
// where the parsers that engines use differ in what they read, Scan refuses; it
// lets pass what all of them refuse or all of them read alike.
//
// The top level, and the objects named in Object, are read by the grammar of
// RFC 8259 with NaN, Infinity and -Infinity in addition. In values below that,
// strings are read as strictly, brackets are matched by kind, the depth is
// bounded by MaxDepth, and outside strings only the bytes occur that JSON has
// there; the order of commas, colons and literals is left to the engine.
//
// The table was made by running the parsers: json of CPython 3.11 (what
// Starlette and so vLLM and SGLang call), jiter 0.19 (pydantic-core), orjson
// 3.13, simdjson (pysimdjson 7.0), serde_json 1, encoding/json of Go 1.26, sonic
// 1.15 (default configuration), fastjson 1.6. "reads" means that the member
// behind the oddity is found, "–" that the body is refused.
//
//	                            json   jiter  orjson simdj. serde  Go     sonic  fastj. Scan
//	control character in string –      –      –      –      –      –      reads  reads  –
//	escape \x, \', \u12, \u12g4 –      –      –      –      –      –      –      reads  –
//	escaped lone surrogate      reads  –      –      –      –      reads  reads  reads  reads
//	byte FF, C0 80, cut UTF-8   –      –      –      –      –      reads  reads  reads  –
//	surrogate as bytes ED A0 80 reads  –      –      –      –      reads  reads  reads  –
//	leading byte order mark     reads  –      –      reads  –      –      –      –      reads
//	UTF-16, UTF-32              reads  –      –      –      –      –      –      –      –
//	trailing bytes, 2nd object  –      –      –      –      –      –      –      –      –
//	trailing comma in object    –      –      –      –      –      –      –      –      –
//	comments, single quotes     –      –      –      –      –      –      –      –      –
//	unpaired bracket kinds      –      –      –      –      –      –      –      –      –
//	missing comma further down  –      –      –      –      –      –      –      –      passes
//	escaped key \u0074          reads  reads  reads  reads  reads  reads  reads  reads  reads
//	"t": 1, "t": 2 reads as     last   last   last   last   last   last   last   first  last
//	"T": 1 reads as "t"         no     no     no     no     no     (a)    no     no     no
//	NaN, Infinity, -Infinity    reads  reads  –      –      –      –      –      (b)    reads
//	-NaN, nan, +1, 01, .5, 1.   –      –      –      –      –      –      –      reads  –
//	1e400                       inf    inf    –      –      –      –      –      reads  Unusable
//	400 digits                  reads  reads  –      –      –      –      –      reads  Unusable
//	depth 200                   reads  –      reads  reads  –      reads  reads  reads  reads
//	depth 512                   reads  –      reads  reads  –      reads  reads  –      reads
//	depth 1,100                 –      –      –      –      –      reads  reads  –      –
//
// (a) encoding/json folds case when it fills a struct, not a map. An engine in Go
// that does so would read members that no other engine reads; none is known.
// (b) NaN alone.
//
// The byte order mark is skipped and should not be forwarded, see TrimBOM: half
// the parsers refuse it. UTF-16 and UTF-32 are refused because only one of them
// reads it. Surrogates as bytes are refused because they are not UTF-8.
//
// # Numbers
//
// A number is what the engine reads, exactly, or nothing; see ReadNumber and
// ReadWhole. A short decimal is one exact division. Any other is taken apart
// digit by digit and rounded by strconv, which never sees a text that it reads
// differently or could fail on.
//
// # Two paths
//
// With GOEXPERIMENT=simd on amd64, and a processor that has AVX2 or better
// AVX-512, strings and nested values are read in blocks of 64 bytes. The path is
// chosen at start. It settles what is sound and leaves the rest to the portable
// path, which a plain build has alone: both say the same of every body, the fault
// and its place included, which FuzzPaths checks.
//
// The cost is linear in the body whatever is in it, for the members, the objects
// and the depth are bounded.
package probe
