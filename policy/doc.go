// Package policy decides what a request may ask of an engine and edits its
// body accordingly, on the raw bytes. It is pure: values in, values out, no
// I/O, no clock, and no allocation on the path of a request.
//
// A request body walks one way through four steps:
//
//	scan      probe.Scan finds the members of the body: offsets, kinds, and the
//	          numbers of the governed fields. Nothing is decoded.
//	judge     Params.Judge, then Contract.Judge compare what was found with what
//	          the config wants. Each answers with a verdict, which may be a
//	          refusal, and operations on a Plan. The layers follow: force of the
//	          decision, then for each attempt extra_body and thinking of the pool
//	          (Layer.Apply).
//	plan      A Plan collects the operations of all stages over one body:
//	          remove this member, replace that value, put this member into that
//	          object. A later stage sees what an earlier one did and wins over
//	          it. At the end the operations become a list of edits in body order.
//	segments  Plan.AppendSegments, or AppendTo, splices: the client's bytes up to
//	          an edit, the literal of the config, the client's bytes after it.
//
// No step re-serialises: a byte that no edit names arrives as the client sent
// it, and a body without edits is one segment, the very bytes that came in.
//
// What a config says is compiled once, when the config is built, to immutable
// values (Contract, Params, Layer, Thinking, Literal) that any number of requests
// share. What belongs to one request (probe.Body, Plan, AutoLimit) is owned by its
// caller and used again.
package policy
