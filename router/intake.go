package router

import (
	"bytes"
	"mime"

	"github.com/valyala/fasthttp"

	"sluice/probe"
)

// refusal is an answer that the router gives in the place of a worker's.
type refusal struct {
	status     int
	code       errorCode
	msg, param string
}

func badRequest(msg, param string) *refusal {
	return &refusal{fasthttp.StatusBadRequest, codeBadRequest, msg, param}
}

// intake is what a request asks for, as it was read: its endpoint, its body and
// the members of it. It refers to the request's memory.
type intake struct {
	endpoint *endpoint
	path     []byte // of the target, without the query
	// body is the body as it came, decoded. It is valid until the worker has it.
	body    []byte
	hasBody bool

	form      bool       // the body is multipart/form-data
	formModel probe.Span // and this the value of its model field

	scan   probe.Body
	model  []byte // as the client wrote it, un-escaped; empty: none
	stream bool   // the answer is asked for as a stream
}

// recycled returns an empty intake with the memory of in.
func (in *intake) recycled() intake {
	if cap(in.scan.Inner) > keepScan {
		in.scan = probe.Body{}
	}
	return intake{scan: in.scan, model: in.model[:0]}
}

// locate finds the endpoint of a request target and checks the method.
func (in *intake) locate(target, method []byte, passes map[string]bool) *refusal {
	in.path = target
	if i := bytes.IndexByte(target, '?'); i >= 0 {
		in.path = target[:i]
	}
	in.endpoint = lookup(in.path)
	if in.endpoint == nil && passes[string(in.path)] {
		in.endpoint = &epPass
	}
	if in.endpoint == nil {
		return &refusal{fasthttp.StatusNotFound, codeNotFound, "this path is not served here", ""}
	}
	if !in.endpoint.allows(method) {
		return &refusal{fasthttp.StatusMethodNotAllowed, codeMethodNotAllowed, "method not allowed; use " + in.endpoint.methods, ""}
	}
	return nil
}

// accept checks the type of the body before it is read. The boundary is for
// parse.
func (in *intake) accept(contentType []byte) (boundary []byte, refused *refusal) {
	boundary, multipart := multipartBoundary(contentType)
	switch {
	case multipart && in.endpoint.multipart:
		in.form = true
	case multipart, in.endpoint.surface.Generative() && !jsonType(contentType):
		return nil, &refusal{fasthttp.StatusUnsupportedMediaType, codeUnsupportedMedia, "content type is not supported; use application/json", ""}
	}
	return boundary, nil
}

// parse finds the members of the body. numbers are the fields whose values are
// settled.
func (in *intake) parse(boundary []byte, numbers probe.FieldSet) *refusal {
	in.hasBody = true
	switch {
	case in.form:
		return in.readForm(boundary)
	case in.endpoint.kind == kindPass && len(in.body) == 0:
		in.hasBody = false
		return nil
	}
	in.body = probe.TrimBOM(in.body)
	if len(probe.TrimBOM(in.body)) < len(in.body) {
		// Scan passes over a mark, too, and a second one must not be forwarded.
		return badRequest(notObjectText, "")
	}
	switch probe.Scan(in.body, in.endpoint.surface, numbers, &in.scan) {
	case probe.FaultNone:
		return in.readRouting()
	case probe.FaultDuplicate:
		key := in.scan.FaultField.String()
		return badRequest("invalid request: \""+key+"\" is given more than once", key)
	}
	return badRequest(notObjectText, "")
}

// readRouting checks and takes what the router itself needs from the scanned
// body.
func (in *intake) readRouting() *refusal {
	if m := in.scan.Last(probe.FieldStream); m != nil && in.endpoint.surface.Generative() {
		in.stream = m.Kind == probe.KindTrue
		if m.Kind != probe.KindTrue && m.Kind != probe.KindFalse && m.Kind != probe.KindNull {
			return badRequest("invalid request: \"stream\" must be true or false", "stream")
		}
	}
	m := in.scan.Last(probe.FieldModel)
	switch {
	case m == nil || m.Kind == probe.KindNull:
		in.model = in.model[:0]
	case m.Kind != probe.KindString || m.Val.Len() > 6*maxModelName:
		return badRequest("invalid request: \"model\" must be a string", "model")
	default:
		in.model = probe.AppendUnquoted(in.model[:0], m.Val.Of(in.body))
	}
	return nil
}

// readForm finds the model in a multipart body, whose other parts are not
// looked at.
func (in *intake) readForm(boundary []byte) *refusal {
	span, fault := probe.MultipartField(in.body, boundary, "model")
	switch {
	case fault == probe.FaultDuplicate:
		return badRequest("invalid request: \"model\" is given more than once", "model")
	case fault != probe.FaultNone:
		return badRequest("invalid request: body must be multipart/form-data", "")
	}
	in.formModel = span
	in.model = append(in.model[:0], span.Of(in.body)...)
	return nil
}

// json reports whether the body is a JSON object that was scanned.
func (in *intake) json() bool { return in.hasBody && !in.form }

// streamOptions returns the index of the object in m, the last stream_options,
// and its include_usage, if it has one.
func (in *intake) streamOptions(m *probe.Member) (index int, include *probe.Member) {
	for i := range in.scan.Objects {
		o := &in.scan.Objects[i]
		if o.Of == probe.FieldStreamOptions && o.Span.Start >= m.Val.Start && o.Span.End <= m.Val.End {
			return i, in.scan.LastInner(o, probe.FieldIncludeUsage)
		}
	}
	panic("BUG: stream_options was scanned and is none of the objects")
}

// asksUsage reports whether the client asks for the usage of its stream.
func (in *intake) asksUsage() bool {
	m := in.scan.Last(probe.FieldStreamOptions)
	if m == nil || m.Kind != probe.KindObject {
		return false
	}
	_, include := in.streamOptions(m)
	return include != nil && include.Kind == probe.KindTrue
}

// member returns the last top-level member with the name, or nil.
func (in *intake) member(name string) *probe.Member {
	for i := len(in.scan.Members) - 1; i >= 0; i-- {
		m := &in.scan.Members[i]
		if m.Key.Len() >= len(name)+2 && probe.EqualKey(m.Key.Of(in.body), name) {
			return m
		}
	}
	return nil
}

// multipartBoundary returns the boundary of a multipart/form-data type, or
// nothing where there is none. multi reports any multipart type.
func multipartBoundary(contentType []byte) (boundary []byte, multi bool) {
	const prefix = "multipart/"
	if len(contentType) < len(prefix) || !bytes.EqualFold(contentType[:len(prefix)], []byte(prefix)) {
		return nil, false
	}
	kind, params, err := mime.ParseMediaType(string(contentType))
	if err != nil || kind != "multipart/form-data" {
		return nil, true
	}
	return []byte(params["boundary"]), true
}
