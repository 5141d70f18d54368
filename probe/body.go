package probe

// Surface is one of the API shapes the router serves. It decides where the
// governed members of a body are and how an answer of that shape looks.
type Surface uint8

// The surfaces. Generation surfaces come first.
const (
	SurfaceNone Surface = iota
	SurfaceChat
	SurfaceCompletions
	SurfaceResponses
	SurfaceMessages
	SurfaceGenerate
	SurfaceEmbeddings
	SurfaceRerank
	SurfaceScore
	SurfaceClassify
	SurfaceModerations
	SurfaceAudio
	SurfaceImages
	SurfaceOCR
	SurfaceTokenize
	SurfaceDetokenize
	NumSurfaces
)

var surfaceNames = [NumSurfaces]string{
	SurfaceNone:        "none",
	SurfaceChat:        "chat",
	SurfaceCompletions: "completions",
	SurfaceResponses:   "responses",
	SurfaceMessages:    "messages",
	SurfaceGenerate:    "generate",
	SurfaceEmbeddings:  "embeddings",
	SurfaceRerank:      "rerank",
	SurfaceScore:       "score",
	SurfaceClassify:    "classify",
	SurfaceModerations: "moderations",
	SurfaceAudio:       "audio",
	SurfaceImages:      "images",
	SurfaceOCR:         "ocr",
	SurfaceTokenize:    "tokenize",
	SurfaceDetokenize:  "detokenize",
}

// String returns the name of s as it stands in metrics, logs and configs.
func (s Surface) String() string {
	if s >= NumSurfaces {
		return "none"
	}
	return surfaceNames[s]
}

// Generative reports whether s is a generation surface, that is one whose
// sampling parameters are governed.
func (s Surface) Generative() bool {
	return s >= SurfaceChat && s <= SurfaceGenerate
}

// Field names a member that the router itself knows. Any other member has
// FieldNone and is found by its key.
type Field uint8

// The fields. The governed sampling fields come first, in the order in which
// they are injected and in which a violation is reported.
const (
	FieldNone Field = iota
	FieldTemperature
	FieldTopP
	FieldTopK
	FieldMinP
	FieldRepetitionPenalty
	FieldFrequencyPenalty
	FieldPresencePenalty
	FieldN
	FieldModel
	FieldStream
	FieldMaxTokens
	FieldMaxCompletionTokens
	FieldMaxOutputTokens
	FieldMaxNewTokens
	FieldCandidateCount
	FieldBestOf
	FieldSamplingParams
	FieldStreamOptions
	FieldIncludeUsage
	FieldRID
	NumFields
)

// FirstSampling and LastSampling bound the governed sampling fields.
const (
	FirstSampling = FieldTemperature
	LastSampling  = FieldN
)

var fieldNames = [NumFields]string{
	FieldNone:                "",
	FieldTemperature:         "temperature",
	FieldTopP:                "top_p",
	FieldTopK:                "top_k",
	FieldMinP:                "min_p",
	FieldRepetitionPenalty:   "repetition_penalty",
	FieldFrequencyPenalty:    "frequency_penalty",
	FieldPresencePenalty:     "presence_penalty",
	FieldN:                   "n",
	FieldModel:               "model",
	FieldStream:              "stream",
	FieldMaxTokens:           "max_tokens",
	FieldMaxCompletionTokens: "max_completion_tokens",
	FieldMaxOutputTokens:     "max_output_tokens",
	FieldMaxNewTokens:        "max_new_tokens",
	FieldCandidateCount:      "candidate_count",
	FieldBestOf:              "best_of",
	FieldSamplingParams:      "sampling_params",
	FieldStreamOptions:       "stream_options",
	FieldIncludeUsage:        "include_usage",
	FieldRID:                 "rid",
}

// String returns the JSON key of f.
func (f Field) String() string {
	if f >= NumFields {
		return ""
	}
	return fieldNames[f]
}

// FieldSet is a set of fields.
type FieldSet uint64

// Has reports whether f is in s.
func (s FieldSet) Has(f Field) bool { return s>>f&1 != 0 }

// With returns s and f.
func (s FieldSet) With(f Field) FieldSet { return s | 1<<f }

// Kind is the JSON type of a value, settled by its first byte.
type Kind uint8

// The kinds.
const (
	KindNone Kind = iota
	KindNull
	KindFalse
	KindTrue
	KindNumber
	KindString
	KindObject
	KindArray
)

// State is what a governed value is to an engine.
type State uint8

// The states of a governed value.
const (
	// Absent: the member is missing or null.
	Absent State = iota
	// Number: the engine reads a number, see Member.Num.
	Number
	// Unusable: anything else.
	Unusable
)

// Span is a range of offsets into the scanned body.
type Span struct{ Start, End uint32 }

// Of returns the bytes of src that s covers. They alias src.
func (s Span) Of(src []byte) []byte { return src[s.Start:s.End] }

// Len returns the length of s in bytes.
func (s Span) Len() int { return int(s.End - s.Start) }

// Member is one member of a scanned object: offsets, never bytes.
type Member struct {
	// Key spans the key with its quotes, Val the value without the white
	// space around it.
	Key, Val Span
	// Num is what the engine reads. Valid iff State is Number.
	Num float64
	// Field is the known field whose name equals the un-escaped key.
	Field Field
	Kind  Kind
	// State is settled for fields in the set given to Scan, else Absent.
	State State
	// Escaped reports a key that holds a backslash.
	Escaped bool
}

// Object is a scanned object one level below the top: an element of
// sampling_params on the generate surface, or stream_options.
type Object struct {
	// Span covers the braces.
	Span Span
	// First and Last delimit its members, Body.Inner[First:Last].
	First, Last uint32
	// Repeated are the known fields that stand more than once in it.
	Repeated FieldSet
	// Of is the top-level member it belongs to: FieldSamplingParams or
	// FieldStreamOptions.
	Of Field
}

// Body is what Scan found in one request body. It is owned by the caller and
// reused from request to request; it holds offsets only and keeps no reference
// to the scanned bytes. The zero value is ready for use. Not safe for
// concurrent use.
type Body struct {
	// Members are the top-level members in body order, duplicates included.
	Members []Member
	// Inner are the members of Objects in body order.
	Inner   []Member
	Objects []Object
	// Span covers the braces of the top-level object.
	Span Span
	// FaultAt is the offset at which Scan gave up and FaultField the
	// duplicated field. Valid iff Scan returned a fault.
	FaultAt    uint32
	FaultField Field
	// Repeated are the known top-level fields that stand more than once.
	Repeated FieldSet
	// OddSampling reports, on SurfaceGenerate, a sampling_params that is
	// neither null, nor an object, nor a list of objects. What of it is an
	// object is in Objects all the same.
	OddSampling bool

	tmp  scratch
	last [NumFields]uint16 // 1 + index in Members of the last one, 0: none
}

// Last returns the last top-level member of the field f, which is the one that
// engines read, or nil. The pointer is valid until the next Scan.
func (b *Body) Last(f Field) *Member {
	i := b.last[f]
	if i == 0 {
		return nil
	}
	return &b.Members[i-1]
}

// reset empties b and keeps its capacity.
func (b *Body) reset() {
	b.Members, b.Inner, b.Objects = b.Members[:0], b.Inner[:0], b.Objects[:0]
	b.Span = Span{}
	b.FaultAt, b.FaultField = 0, FieldNone
	b.Repeated, b.OddSampling = 0, false
	b.last = [NumFields]uint16{}
}

// LastInner returns the last member of the field f in the object o of b, which
// is the one that engines read, or nil. The pointer is valid until the next
// Scan.
func (b *Body) LastInner(o *Object, f Field) *Member {
	members := b.Inner[o.First:o.Last]
	for i := len(members) - 1; i >= 0; i-- {
		if members[i].Field == f {
			return &members[i]
		}
	}
	return nil
}

// Limits of one scan. What is beyond them is refused, not cut.
const (
	// MaxDepth bounds the nesting of objects and arrays, the top-level object
	// included.
	MaxDepth = 512
	// MaxMembers bounds the members of the top level, and those of each Object.
	MaxMembers = 1024
	// MaxInner bounds the members of all Objects together.
	MaxInner = 16384
	// MaxObjects bounds the Objects: elements of a list of sampling_params.
	MaxObjects = 4096
	// MaxBody bounds the length of a body in bytes: offsets are 32 bits wide.
	MaxBody = 1 << 31
)
