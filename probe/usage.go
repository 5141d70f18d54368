package probe

// Usage is what an answer says of its cost and of its end. The numbers are those
// of the engine, as reported: on SurfaceMessages the prompt does not count what
// was read from the cache, elsewhere it does.
type Usage struct {
	PromptTokens       int64
	CachedPromptTokens int64
	CompletionTokens   int64
	// Seen reports that the answer held a usage at all.
	Seen bool
	// Finish says why the generation ended, "" if that was not said. It is one
	// of a fixed set of words, "other" for what is not among them, and keeps no
	// bytes of the answer.
	Finish string
}

// maxTokens is the largest number of tokens that is believed.
const maxTokens = 1 << 40

// ReadUsage reads the usage of body, a whole answer of the surface. It reports
// false where there is none. Of a list of answers (a batch of SurfaceGenerate)
// it is the sum. body is not kept; nothing is allocated.
func ReadUsage(body []byte, surface Surface) (Usage, bool) {
	body = TrimBOM(body)
	if i := skipSpace(body, 0); surface != SurfaceGenerate || i == len(body) || body[i] != '[' {
		var a answer
		if !a.read(body, surface) {
			return Usage{}, false
		}
		return a.usage, a.usage.Seen
	}
	var sum Usage
	var tmp scratch
	w := walk(body, '[', &tmp)
	for w.next() {
		var a answer
		if !a.read(w.val(), surface) {
			continue
		}
		sum.PromptTokens += a.usage.PromptTokens
		sum.CachedPromptTokens += a.usage.CachedPromptTokens
		sum.CompletionTokens += a.usage.CompletionTokens
		sum.Seen = sum.Seen || a.usage.Seen
		sum.Finish = a.usage.Finish
	}
	if !w.whole() {
		return Usage{}, false
	}
	return sum, sum.Seen
}

// merge takes over what u says, number by number.
func (a *answer) merge(has uint8, u Usage) {
	if has&hasPrompt != 0 {
		a.usage.PromptTokens = u.PromptTokens
	}
	if has&hasCached != 0 {
		a.usage.CachedPromptTokens = u.CachedPromptTokens
	}
	if has&hasCompletion != 0 {
		a.usage.CompletionTokens = u.CompletionTokens
	}
	a.has |= has
	a.usage.Seen = a.has != 0
}

// The numbers that a usage had.
const (
	hasPrompt = 1 << iota
	hasCached
	hasCompletion
)

// An answer is what one JSON object of an answer says: the whole answer, or one
// event of its stream.
type answer struct {
	usage   Usage
	has     uint8 // of usage
	failed  bool  // it is an error
	done    bool  // it is the last event
	choices bool  // it has a list of choices …
	empty   bool  // … without an element
	tmp     scratch
}

// usageOnly reports an event that only carries the usage of a chat or completion
// (choices: []).
func (a *answer) usageOnly() bool { return a.choices && a.empty && a.usage.Seen }

// read reads the object src and reports whether it was one.
func (a *answer) read(src []byte, surface Surface) bool {
	var buf [maxAnswerKey]byte
	w := walk(src, '{', &a.tmp)
	for w.next() {
		switch string(w.name(&buf)) {
		case "usage":
			a.readUsage(&w)
		case "error":
			a.failed = a.failed || w.kind() == '{' || w.kind() == '"'
		case "object": // vLLM's flat error
			a.failed = string(w.val()) == `"error"` || a.failed
		case "type":
			done, failed := endOf(surface, w.val())
			a.done, a.failed = a.done || done, a.failed || failed
		case "choices":
			a.readChoices(&w)
		case "stop_reason", "status":
			if surface == SurfaceMessages || surface == SurfaceResponses {
				a.finish(&w)
			}
		case "delta", "message":
			if surface == SurfaceMessages {
				a.readNested(&w)
			}
		case "response":
			if surface == SurfaceResponses {
				a.readNested(&w)
			}
		case "meta_info":
			if surface == SurfaceGenerate {
				a.readUsage(&w)
			}
		}
	}
	return w.whole()
}

// readNested reads the answer inside an event of messages or responses, the
// present value of w.
func (a *answer) readNested(w *walker) {
	var buf [maxAnswerKey]byte
	d := w.down('{')
	for d.next() {
		switch string(d.name(&buf)) {
		case "usage":
			a.readUsage(&d)
		case "stop_reason", "status":
			a.finish(&d)
		}
	}
	w.up(&d)
}

// readChoices reads why the choices, the present value of w, ended.
func (a *answer) readChoices(w *walker) {
	var buf [maxAnswerKey]byte
	list := w.down('[')
	empty := true
	for list.next() {
		empty = false
		choice := list.down('{')
		for choice.next() {
			if string(choice.name(&buf)) == "finish_reason" {
				a.finish(&choice)
			}
		}
		list.up(&choice)
	}
	w.up(&list)
	if list.closed {
		a.choices, a.empty = true, empty
	}
}

// readUsage reads a usage object of any shape, the present value of w. Its numbers
// are non-negative whole numbers or ignored.
func (a *answer) readUsage(w *walker) {
	var buf [maxAnswerKey]byte
	var u Usage
	has := uint8(0)
	d := w.down('{')
	for d.next() {
		switch string(d.name(&buf)) {
		case "prompt_tokens", "input_tokens":
			has |= d.tokens(&u.PromptTokens, hasPrompt)
		case "completion_tokens", "output_tokens":
			has |= d.tokens(&u.CompletionTokens, hasCompletion)
		case "cached_tokens", "cache_read_input_tokens", "prompt_cache_hit_tokens":
			has |= d.tokens(&u.CachedPromptTokens, hasCached)
		case "prompt_tokens_details", "input_tokens_details":
			details := d.down('{')
			for details.next() {
				if string(details.name(&buf)) == "cached_tokens" {
					has |= details.tokens(&u.CachedPromptTokens, hasCached)
				}
			}
			d.up(&details)
		case "finish_reason": // of meta_info
			a.finish(&d)
		}
	}
	w.up(&d)
	a.merge(has, u)
}

// tokens reads the present value as a number of tokens. It returns bit, or 0 where
// there is none.
func (w *walker) tokens(to *int64, bit uint8) uint8 {
	val := w.val()
	if w.m.Kind != KindNumber {
		return 0
	}
	n, ok, _ := ReadWhole(val, KindNumber)
	if !ok || n < 0 || n > maxTokens {
		return 0
	}
	*to = n
	return bit
}

// finish takes over a reason, the present value of w: a string, or an object whose
// type is one.
func (a *answer) finish(w *walker) {
	if w.kind() == '{' {
		var buf [maxAnswerKey]byte
		d := w.down('{')
		for d.next() {
			if string(d.name(&buf)) == "type" && d.kind() == '"' {
				a.finish(&d)
			}
		}
		w.up(&d)
		return
	}
	if val := w.val(); len(val) > 2 && val[0] == '"' {
		a.usage.Finish = finishWord(val[1 : len(val)-1])
	}
}

// finishWord returns the reason as one of a fixed set of words.
func finishWord(b []byte) string {
	switch string(b) {
	case "stop":
		return "stop"
	case "length":
		return "length"
	case "tool_calls":
		return "tool_calls"
	case "function_call":
		return "function_call"
	case "content_filter":
		return "content_filter"
	case "abort":
		return "abort"
	case "end_turn":
		return "end_turn"
	case "max_tokens":
		return "max_tokens"
	case "stop_sequence":
		return "stop_sequence"
	case "tool_use":
		return "tool_use"
	case "refusal":
		return "refusal"
	case "pause_turn":
		return "pause_turn"
	case "completed":
		return "completed"
	case "incomplete":
		return "incomplete"
	case "failed":
		return "failed"
	case "cancelled":
		return "cancelled"
	case "in_progress", "queued":
		return ""
	}
	return "other"
}

// endOf says whether an event of that type, a JSON string with its quotes, is
// the last of its surface's stream, and whether it is a failure.
func endOf(surface Surface, raw []byte) (done, failed bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return false, false
	}
	return endOfEvent(surface, raw[1:len(raw)-1])
}

func endOfEvent(surface Surface, kind []byte) (done, failed bool) {
	switch string(kind) {
	case "error":
		return false, true
	case "message_stop":
		return surface == SurfaceMessages, false
	case "response.completed", "response.incomplete":
		return surface == SurfaceResponses, false
	case "response.failed":
		return surface == SurfaceResponses, surface == SurfaceResponses
	}
	return false, false
}
