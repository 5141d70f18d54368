package probe

// Fault says why Scan or MultipartField gave up. It is a small code and not an
// allocated error, for it is made on the hot path; it satisfies error all the
// same. What the client is told is the caller's choice and needs none of it.
type Fault uint8

// The faults.
const (
	// FaultNone: all is well.
	FaultNone Fault = iota
	// FaultNotObject: the body is not a JSON object (empty, an array, null …).
	FaultNotObject
	// FaultSyntax: a byte stands where JSON does not allow it.
	FaultSyntax
	// FaultTruncated: the body ends before its object does.
	FaultTruncated
	// FaultTrailing: something other than white space follows the object.
	FaultTrailing
	// FaultUTF8: the body is not UTF-8.
	FaultUTF8
	// FaultDepth: nested deeper than MaxDepth.
	FaultDepth
	// FaultMembers: more than MaxMembers, MaxInner or MaxObjects.
	FaultMembers
	// FaultDuplicate: a routing key stands twice.
	FaultDuplicate
	// FaultTooLarge: longer than MaxBody.
	FaultTooLarge
	numFaults
)

var faultTexts = [numFaults]string{
	FaultNone:      "no fault",
	FaultNotObject: "not a JSON object",
	FaultSyntax:    "not JSON",
	FaultTruncated: "unexpected end of body",
	FaultTrailing:  "trailing bytes after the JSON object",
	FaultUTF8:      "not UTF-8",
	FaultDepth:     "nested too deeply",
	FaultMembers:   "too many members",
	FaultDuplicate: "repeated key",
	FaultTooLarge:  "too large",
}

// Error returns a fixed text without any byte of the body.
func (f Fault) Error() string {
	if f >= numFaults {
		return "unknown fault"
	}
	return faultTexts[f]
}
