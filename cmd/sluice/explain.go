package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"sluice/router"
)

const explainUsage = `sluice explain tells what becomes of one request under a configuration, without
sending it: the decision and why, the pool, each edit of the body, and the body
that would be sent or the error that the client would get. It runs the code of the
data path.

usage: sluice explain [flags] FILE|-

FILE holds the body. Exit codes: 0 forwarded, 1 refused, 2 wrong usage or
configuration.

flags:
`

func runExplain(p *process) int {
	fs := flag.NewFlagSet("sluice explain", flag.ContinueOnError)
	fs.SetOutput(p.stderr)
	fs.Usage = func() {
		fmt.Fprint(p.stderr, explainUsage)
		fs.PrintDefaults()
	}
	c := newConfigFlags(fs, p.env)
	var ask router.Question
	fs.Func("header", "`name: value` of the request, repeatable", func(s string) error {
		if !strings.Contains(s, ":") {
			return errors.New("want name: value")
		}
		ask.Header = append(ask.Header, s)
		return nil
	})
	fs.StringVar(&ask.Target, "path", "/v1/chat/completions", "`path` of the request")
	fs.StringVar(&ask.Method, "method", "POST", "`method` of the request")
	asJSON := fs.Bool("json", false, "print JSON")
	diff := fs.Bool("diff", false, "print the body as [-what is taken out-]{+what is put in+}")
	if err := fs.Parse(p.args); errors.Is(err, flag.ErrHelp) {
		return exitOK
	} else if err != nil {
		return exitUsage
	}
	fail := func(err error) int {
		fmt.Fprintf(p.stderr, "sluice explain: %v\n", err)
		return exitUsage
	}
	if fs.NArg() != 1 {
		return fail(errors.New("want one file with the body, or - for standard input"))
	}
	cfg, err := c.load()
	if err != nil {
		return fail(fmt.Errorf("wrong configuration:\n%w", err))
	}
	if ask.Body, err = readBody(p, fs.Arg(0)); err != nil {
		return fail(err)
	}
	rules, err := router.NewRules(cfg)
	if err != nil {
		return fail(err)
	}
	x := rules.Explain(ask)
	if *asJSON {
		err = writeJSON(p.stdout, explained{x, string(x.Body)})
	} else {
		printExplanation(p.stdout, &x, ask.Body, *diff)
	}
	if err != nil {
		return fail(err)
	}
	if x.Refusal != nil {
		return exitFailed
	}
	return exitOK
}

// explained is an explanation with the body as a string.
type explained struct {
	router.Explanation
	Body string `json:"body,omitempty"`
}

// readBody returns what is in a file, or on standard input for -.
func readBody(p *process, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(p.stdin)
	}
	return os.ReadFile(name)
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func printExplanation(w io.Writer, x *router.Explanation, body []byte, diff bool) {
	if x.Decision == "" {
		fmt.Fprintln(w, "decision: none")
	} else {
		fmt.Fprintf(w, "decision: %s\n", x.Decision)
	}
	for _, s := range x.Rules {
		indent := strings.Repeat("  ", 1+strings.Count(s.Path, "."))
		fmt.Fprintf(w, "%s%s: %v", indent, s.Condition, s.Holds)
		if s.Seen != "" {
			fmt.Fprintf(w, " (%s)", s.Seen)
		}
		fmt.Fprintln(w)
	}
	if x.Pool != "" {
		fmt.Fprintf(w, "pool: %s", x.Pool)
		if len(x.Shares) > 0 {
			fmt.Fprintf(w, ", by chance among %s", strings.Join(x.Shares, ", "))
		}
		if len(x.Fallback) > 0 {
			fmt.Fprintf(w, ", then %s", strings.Join(x.Fallback, ", "))
		}
		fmt.Fprintln(w)
		fmt.Fprintf(w, "model: %q", x.SentModel)
		if x.Model != x.SentModel {
			fmt.Fprintf(w, " for %q", x.Model)
		}
		fmt.Fprintln(w)
	}
	if x.Contract != "" {
		fmt.Fprintf(w, "contract: %s (%s)\n", x.OnConflict, x.Contract)
	}
	for _, r := range x.Rollouts {
		fmt.Fprintf(w, "rollout %s: %s\n", r.Name, r.Side)
	}
	for _, e := range x.Edits {
		fmt.Fprintf(w, "%s: %s %s at byte %d", e.Rule, e.Op, e.Param, e.At)
		if e.Before != "" {
			fmt.Fprintf(w, ", %s", shorten(e.Before))
		}
		if e.After != "" {
			fmt.Fprintf(w, " > %s", shorten(e.After))
		}
		fmt.Fprintln(w)
	}
	for _, s := range x.Observed {
		fmt.Fprintf(w, "observed: %s\n", s)
	}
	switch {
	case x.Refusal != nil:
		fmt.Fprintf(w, "refused: %d %s: %s\n", x.Refusal.Status, x.Refusal.Code, x.Refusal.Message)
	case diff:
		fmt.Fprintf(w, "body:\n%s\n", marked(body, x.Splices))
	case x.Pool != "":
		fmt.Fprintf(w, "body:\n%s\n", x.Body)
	}
}

// marked returns body with what splices take out and put in.
func marked(body []byte, splices []router.Splice) string {
	var b strings.Builder
	at := 0
	for _, s := range splices {
		b.Write(body[at:s.Start])
		if s.End > s.Start {
			fmt.Fprintf(&b, "[-%s-]", body[s.Start:s.End])
		}
		if s.Text != "" {
			fmt.Fprintf(&b, "{+%s+}", s.Text)
		}
		at = s.End
	}
	b.Write(body[at:])
	return b.String()
}

// shorten cuts a value that would not fit in a line.
func shorten(s string) string {
	const limit = 120
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
