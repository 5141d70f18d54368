// Package cache keeps whole answers of engines and gives them to later requests
// that are equal. It knows keys, entries and where they are stored; what is
// looked up, stored and sent is the request path's to decide.
//
// # What equal means
//
// Two requests are equal, and share a [Key], iff all parts that were fed to
// their [Builder] are. The body takes part as the client sent it, through the
// members that [probe.Scan] found:
//
//   - The order of the top-level members does not matter, nor does white space
//     outside strings, nor how a key is escaped (a key with an escaped surrogate
//     counts as written).
//   - Values count as written otherwise: 1 and 1.0 differ, "A" and "\u0041", null
//     and absent, {"a":1,"b":2} and {"b":2,"a":1} below the top level. A request
//     that is spelled differently costs a miss; it never gets the answer to
//     another.
//   - Of a member that stands twice all copies count, in their order. Engines read
//     the last one, but what they do not read may be read by a proxy before them.
//   - A stream and a whole answer never share a key. "stream": false and null are
//     the same as no stream, where a surface generates.
//   - Members that cannot change the answer take no part, see below.
//
// What else changes an answer is fed by the request path, as a [Part] each: the
// models and the extra_body of the pools ([Fingerprint]), what the policy edited,
// the thinking profile, header fields that engines look at ([Varies]). An empty
// part takes no part, so that a key does not change when a new part is invented.
//
// # Members that take no part
//
//	chat         user, metadata, safety_identifier, prompt_cache_key,
//	             prompt_cache_retention, stream_options.include_usage
//	completions  user, stream_options.include_usage
//	messages     metadata
//	embeddings, rerank, score, classify
//	             user
//
// They name the user, label the request or place it in the provider's own caches.
// include_usage adds one event to a stream: that event is stored apart and given
// to those who asked for it ([Entry.Stream]). Any other member of stream_options
// has all of it take part: include_obfuscation and continuous_usage_stats change
// every event.
//
// All others take part. Among them, on purpose: user, metadata and the like on
// responses, whose answer repeats them; store, for which the provider keeps the
// answer; service_tier, which the answer repeats; rid and request_id, which the
// answer has as its id, so that a client that sends one looks for it; cache_salt,
// by which a client asks not to share caches; priority and data_parallel_rank,
// which some engines refuse; whatever is not known here.
//
// # What is stored
//
// Answers with status 200 that came whole, in the engine's bytes, with the few
// header fields of [Replayed]. Never one with a Content-Encoding, which the next
// client may not read, or that says Cache-Control: no-store or Vary: *. Cookies
// and rate limits are of the client that got them and are not stored.
//
// [Memory] keeps entries in the process, [Redis] on a server that several routers
// share, which may be Valkey. Whatever is wrong with the server is a miss, a
// counter and now and then a warning, and never costs a request more than the
// configured timeout.
package cache
