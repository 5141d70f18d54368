package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// width is that of the narrowest terminal, indent how far quoted text is in it.
const (
	width  = 80
	indent = 4
)

// maxLines is how much of an answer is shown.
const maxLines = 4

// page prints the tour. Nothing can be done about a terminal that cannot be
// written to.
type page struct{ w io.Writer }

func (p page) text(format string, args ...any) { fmt.Fprintf(p.w, format, args...) }

// indented prints text as it is, in lines that fit.
func (p page) indented(text string) { p.lines(wrap(text)) }

func (p page) lines(lines []string) {
	for _, line := range lines {
		p.text("%s%s\n", strings.Repeat(" ", indent), line)
	}
}

// wrap breaks text into lines that fit on the page beside the indent, after a
// comma or a space where there is one near.
func wrap(text string) []string {
	const most, near = width - indent, 30
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		runes := []rune(line)
		for len(runes) > most {
			n := most
			for n > most-near && runes[n-1] != ',' && runes[n-1] != ' ' {
				n--
			}
			if n == most-near {
				n = most
			}
			lines = append(lines, string(runes[:n]))
			runes = runes[n:]
		}
		lines = append(lines, string(runes))
	}
	return lines
}

func (p page) head(text string) { p.text("\n%s\n%s\n\n", strings.Repeat("-", width), text) }

func (p page) title(n int, s *step) {
	p.head(fmt.Sprintf("%d. %s\n\n%s", n, strings.ToUpper(s.name), s.about))
}

func (p page) request(s *step, x *exchange) {
	p.text("client sent: POST %s, %d bytes\n", s.path, len(x.sent))
	p.indented(x.sent)
}

func (p page) received(st *stage, x *exchange) {
	switch {
	case x.engine == 0:
		p.text("engines received: nothing\n")
	case x.received == x.sent:
		p.text("engine %d received: the same %d bytes (%s)\n", x.engine, len(x.received), st.engines[x.engine-1])
		p.indented(x.received)
	default:
		p.text("engine %d received: %d bytes (%s)\n", x.engine, len(x.received), st.engines[x.engine-1])
		p.indented(x.received)
	}
}

// answer prints the head of the answer and, unless it is a stream, its body.
func (p page) answer(x *exchange) {
	p.text("client got: %d %s", x.status, http.StatusText(x.status))
	if code := x.header.Get("X-Router-Error-Code"); code != "" {
		p.text(", x-router-error-code: %s", code)
	}
	p.text("\n")
	if x.body == "" {
		return
	}
	lines := wrap(x.body)
	if len(lines) > maxLines {
		lines = append(lines[:maxLines], fmt.Sprintf("... (%d bytes in all)", len(x.body)))
	}
	p.lines(lines)
}

func (p page) event(e *event) {
	text := []rune(fmt.Sprintf("%5.2f s  %s", e.at.Seconds(), e.gist()))
	if max := width - indent; len(text) > max {
		text = append(text[:max-3], []rune("...")...)
	}
	p.indented(string(text))
}

// invite prints what to try while the router serves.
func (p page) invite(data, admin string) {
	p.head("All went as promised. The router serves until you interrupt it (Ctrl-C).\nTry:")
	p.text(`# a chat
curl http://%[1]s/v1/chat/completions \
  -d '{"model":"small","messages":[{"role":"user","content":"Hi"}]}'

# the same as a stream
curl -N http://%[1]s/v1/chat/completions \
  -d '{"model":"small","stream":true,"messages":[{"role":"user","content":"Hi"}]}'

# one that the contract refuses
curl -i http://%[1]s/v1/chat/completions \
  -d '{"model":"small","temperature":0.5,"messages":[]}'

# metrics and workers
curl http://%[2]s/metrics
curl http://%[2]s/workers

`, data, admin)
}
