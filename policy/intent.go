package policy

import (
	"strconv"
	"strings"

	"sluice/probe"
)

// intentKeys are the members that say how an answer is sampled: the governed
// fields, the limits, stops, seeds, biases, beams and thinking. What is asked, the
// form of the answer (response_format, grammars), tools and who asks are none.
var intentKeys = strings.Fields(`temperature top_p top_k min_p repetition_penalty frequency_penalty presence_penalty n
	max_tokens max_completion_tokens max_output_tokens max_new_tokens candidate_count best_of
	min_tokens min_new_tokens seed sampling_seed stop stop_sequences stop_token_ids stop_regex ignore_eos
	include_stop_str_in_output no_stop_trim logit_bias bad_words allowed_token_ids
	use_beam_search beam_width length_penalty logprobs top_logprobs
	thinking thinking_token_budget max_thinking_tokens reasoning reasoning_effort verbosity chat_template_kwargs enable_thinking`)

var intentTable = newKeyTable(intentKeys)

// Bounds of an intent. Members beyond them are cut, so that a client cannot fill a
// store with its own bytes.
const (
	maxIntentValue   = 1024 // bytes of one value
	maxIntentMembers = 96
	maxIntentObjects = 64
)

// AppendIntent appends the client's sampling intent, which is canonical JSON of
// what the request src, scanned in b, asks: an object with its sampling members
// under their own names, sorted, un-escaped, each as the client wrote it but
// without white space. null is not asked; of several copies the last counts, and
// NaN and the infinities are strings. A value of more than 1,024 bytes is told by
// its size. On generate the members are those of sampling_params; a batch of
// several objects gives a list. Nothing is appended where there is no intent, and
// on surfaces that generate nothing: that is NULL.
//
// It depends on what the client sent alone, and not on any plan: each attempt, the
// cache and the record see the same.
func AppendIntent(dst, src []byte, b *probe.Body, s probe.Surface) []byte {
	return AppendSampling(dst, src, b, s, nil)
}

// AppendSampling is AppendIntent over the members of a pool's extra_body: those
// that the client did not send are there, too, whatever they are, but for the
// format of the answer.
func AppendSampling(dst, src []byte, b *probe.Body, s probe.Surface, extra *Layer) []byte {
	if !s.Generative() {
		return dst
	}
	in := intent{src: src, surface: s, extra: extra, top: b.Members}
	if s != probe.SurfaceGenerate {
		return in.append(dst, b.Members)
	}
	objects := b.Objects
	if b.OddSampling {
		objects = nil
	}
	if len(objects) < 2 {
		var ms []probe.Member
		if len(objects) == 1 {
			ms = b.Inner[objects[0].First:objects[0].Last]
		}
		return in.append(dst, ms)
	}
	start := len(dst)
	dst = append(dst, '[')
	some := false
	for i := range objects[:min(len(objects), maxIntentObjects)] {
		if i > 0 {
			dst = append(dst, ',')
		}
		before := len(dst)
		if dst = in.append(dst, b.Inner[objects[i].First:objects[i].Last]); len(dst) == before {
			dst = append(dst, '{', '}')
			continue
		}
		some = true
	}
	if !some {
		return dst[:start]
	}
	return append(dst, ']')
}

// intent collects the members of one object, sorted by key.
type intent struct {
	src     []byte
	surface probe.Surface
	extra   *Layer
	top     []probe.Member
	members [maxIntentMembers]intentMember
	n       int
}

type intentMember struct {
	key string
	val []byte
}

// append appends the intent in the members ms of one object.
func (in *intent) append(dst []byte, ms []probe.Member) []byte {
	in.n = 0
	for i := range ms {
		k := intentTable.findMember(in.src, &ms[i])
		switch {
		case k < 0:
		case ms[i].Kind == probe.KindNull:
			in.set(intentKeys[k], nil)
		default:
			in.set(intentKeys[k], ms[i].Val.Of(in.src))
		}
	}
	in.addExtra(ms)
	start := len(dst)
	for _, m := range in.members[:in.n] {
		if m.val == nil {
			continue
		}
		if len(dst) == start {
			dst = append(dst, '{')
		} else {
			dst = append(dst, ',')
		}
		dst = strconv.AppendQuote(dst, m.key)
		dst = append(dst, ':')
		dst = appendIntentValue(dst, m.val)
	}
	if len(dst) == start {
		return dst
	}
	return append(dst, '}')
}

// addExtra adds what extra_body would add to a request with the members ms in the
// object that is sampled from.
func (in *intent) addExtra(ms []probe.Member) {
	if in.extra == nil {
		return
	}
	for i := range in.extra.items {
		it := &in.extra.items[i]
		lit := it.lits[in.surface]
		where := in.top
		if it.inner && in.surface == probe.SurfaceGenerate {
			where = ms
		}
		if it.other == "" && it.on>>in.surface&1 != 0 && !it.sent(in.src, where, lit) {
			in.set(lit.Key, lit.value)
		}
	}
}

// sent reports whether the client gave the member under any of its names, lit's
// or another one. Of copies of one name the last counts.
func (it *layerItem) sent(src []byte, ms []probe.Member, lit *Literal) bool {
	sent := false
	for i := range ms {
		switch m := &ms[i]; {
		case lit.spelled(src, m):
			sent = m.Kind != probe.KindNull
		case m.Kind != probe.KindNull && it.names(src, m):
			return true
		}
	}
	return sent
}

// set makes val the value of key, nil for none.
func (in *intent) set(key string, val []byte) {
	i := in.n
	for i > 0 && in.members[i-1].key >= key {
		i--
	}
	if i < in.n && in.members[i].key == key {
		in.members[i].val = val
		return
	}
	if in.n == len(in.members) {
		return
	}
	copy(in.members[i+1:in.n+1], in.members[i:in.n])
	in.members[i] = intentMember{key, val}
	in.n++
}

// appendIntentValue appends a scanned JSON value without the white space outside
// its strings, as JSON that any database reads.
func appendIntentValue(dst, val []byte) []byte {
	if len(val) > maxIntentValue {
		dst = append(dst, '"')
		dst = strconv.AppendInt(dst, int64(len(val)), 10)
		return append(dst, ` bytes"`...)
	}
	for i := 0; i < len(val); i++ {
		c := val[i]
		switch {
		case c == '"':
			end := i + 1
			for val[end] != '"' {
				if val[end] == '\\' {
					end++
				}
				end++
			}
			dst = append(dst, val[i:end+1]...)
			i = end
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		case c == 'N' || c == 'I' || c == '-' && i+1 < len(val) && val[i+1] == 'I':
			end := i + 1
			for end < len(val) && val[end]|0x20 >= 'a' && val[end]|0x20 <= 'z' {
				end++
			}
			dst = append(dst, '"')
			dst = append(dst, val[i:end]...)
			dst = append(dst, '"')
			i = end - 1
		default:
			dst = append(dst, c)
		}
	}
	return dst
}
