// Package record keeps a row in a database for each attempt, each answer from
// the cache and each request that failed for good: what was asked, what was
// sent, what it cost. It knows nothing of requests; the router fills the rows.
//
// A Recorder takes rows without ever waiting and writes them in batches, from
// one goroutine, to SQLite or PostgreSQL. A database that is slow, broken or
// gone costs rows, which are counted, and nothing else: see Stats.
//
// # The table
//
// All rows are in the table sluice_records. A Recorder creates it, adds the
// columns and the index that an older one lacks, and leaves alone what it does
// not know. A value that does not apply is NULL.
//
//	created_at            Row.CreatedAt: timestamptz in PostgreSQL, microseconds since 1970 in SQLite
//	request_id            x-request-id, cut at MaxText bytes, as all text of clients and workers
//	kind                  attempt, cache_hit or terminal_failure
//	attempt               number of the try, from 1
//	surface               chat, completions, responses, messages, generate, embeddings, ...
//	decision              name of the routing decision
//	tenant                who asked
//	pool                  pool that was chosen
//	worker                URL of the worker
//	provider              engine of the pool
//	model                 model that was asked for, after aliases
//	model_reported        model that the answer names
//	status                HTTP status; 499 where the client left
//	error_code            x-router-error-code of what the router says itself
//	prompt_tokens         usage as the worker reported it
//	cached_prompt_tokens  those of the prompt that its cache held
//	completion_tokens     tokens of the answer
//	ttft_ms               time to the first token
//	duration_ms           time to the last byte
//	stream                whether the answer was a stream: boolean in PostgreSQL, 0 or 1 in SQLite
//	finish_reason         why the generation ended
//	sampling              canonical JSON of the sampling parameters, at most MaxSampling bytes
//
// There is never a body, a header or a key in it. Bytes that are not UTF-8 and
// control characters are written as U+FFFD.
//
// # Queries
//
// `sluice records` prints the last rows and sums. Some that it does not have,
// for SQLite:
//
//	-- what happened to a request
//	SELECT datetime(created_at/1e6, 'unixepoch'), kind, attempt, worker, status, error_code, duration_ms
//	FROM sluice_records WHERE request_id = '...' ORDER BY created_at, attempt;
//	-- tokens by tenant and day
//	SELECT date(created_at/1e6, 'unixepoch') AS day, tenant, sum(prompt_tokens), sum(completion_tokens)
//	FROM sluice_records GROUP BY day, tenant ORDER BY day, tenant;
//
// and for PostgreSQL:
//
//	-- share of prompts read from the cache, by worker, in the last hour
//	SELECT worker, sum(cached_prompt_tokens)::float / nullif(sum(prompt_tokens), 0)
//	FROM sluice_records WHERE created_at > now() - interval '1 hour' GROUP BY worker;
//	-- who asks for which temperature
//	SELECT tenant, sampling::json ->> 'temperature' AS temperature, count(*)
//	FROM sluice_records WHERE kind = 'attempt' GROUP BY tenant, temperature;
//
// The one index is on created_at: it is what deletes old rows and what bounds a
// query by time, and each further one would be paid for by every row. Add those
// that your queries need.
package record
