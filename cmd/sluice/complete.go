package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"regexp"
	"strings"
)

const completionUsage = `sluice completion prints a script by which a shell completes verbs and flags.

usage: sluice completion bash|zsh|fish

  bash: sluice completion bash > /etc/bash_completion.d/sluice
  zsh:  sluice completion zsh > "${fpath[1]}/_sluice"
  fish: sluice completion fish > ~/.config/fish/completions/sluice.fish

Exit codes: 0 printed, 2 wrong usage.
`

func runCompletion(p *process) int {
	fs := flag.NewFlagSet("sluice completion", flag.ContinueOnError)
	fs.SetOutput(p.stderr)
	fs.Usage = func() { fmt.Fprint(p.stderr, completionUsage) }
	if err := fs.Parse(p.args); errors.Is(err, flag.ErrHelp) {
		return exitOK
	} else if err != nil {
		return exitUsage
	}
	scripts := map[string]func([]completion) string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}
	script := scripts[fs.Arg(0)]
	if script == nil || fs.NArg() != 1 {
		fmt.Fprint(p.stderr, completionUsage)
		return exitUsage
	}
	fmt.Fprint(p.stdout, script(completions()))
	return exitOK
}

// completion is what may follow a verb.
type completion struct {
	verb, text string
	words      []string // in the place of files
	flags      []flagText
}

// flagText is a flag with its dashes.
type flagText struct {
	name, text string
	value      bool // it takes one
}

// helpFlag matches a flag in what flag.FlagSet.PrintDefaults writes.
var helpFlag = regexp.MustCompile(`(?m)^  -([a-z-]+)( \S+)?(?:\n    )?\t(.*)$`)

// completions asks each verb for its help: the flags that it tells there are those
// that it has.
func completions() []completion {
	words := map[string][]string{"config": configParts, "completion": {"bash", "zsh", "fish"}}
	var list []completion
	for _, v := range verbs() {
		var help bytes.Buffer
		v.run(&process{args: []string{"-h"}, stdout: &help, stderr: &help})
		c := completion{verb: v.name, text: v.text, words: words[v.name]}
		for _, m := range helpFlag.FindAllStringSubmatch(help.String(), -1) {
			dashes := "--"
			if len(m[1]) == 1 {
				dashes = "-"
			}
			c.flags = append(c.flags, flagText{dashes + m[1], m[3], m[2] != ""})
		}
		list = append(list, c)
	}
	return list
}

// next returns the words and flags that may follow the verb.
func (c *completion) next() string {
	next := append([]string{}, c.words...)
	for _, f := range c.flags {
		next = append(next, f.name)
	}
	return strings.Join(next, " ")
}

func verbNames(list []completion) string {
	var names []string
	for _, c := range list {
		names = append(names, c.verb)
	}
	return strings.Join(names, " ")
}

func bashScript(list []completion) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# bash completion of sluice
_sluice() {
	local word=${COMP_WORDS[COMP_CWORD]} next=
	if [ "$COMP_CWORD" -eq 1 ]; then
		next="%s"
	else
		case ${COMP_WORDS[1]} in
`, verbNames(list))
	for _, c := range list {
		fmt.Fprintf(&b, "\t\t%s) next=\"%s\" ;;\n", c.verb, c.next())
	}
	b.WriteString(`		esac
	fi
	COMPREPLY=($(compgen -W "$next" -- "$word"))
}
complete -o default -F _sluice sluice
`)
	return b.String()
}

func zshScript(list []completion) string {
	var b strings.Builder
	b.WriteString("#compdef sluice\n_sluice() {\n\tif (( CURRENT == 2 )); then\n\t\tlocal -a verbs=(\n")
	for _, c := range list {
		fmt.Fprintf(&b, "\t\t\t%s\n", shellQuote(c.verb+":"+c.text))
	}
	b.WriteString("\t\t)\n\t\t_describe verb verbs\n\t\treturn\n\tfi\n\tcase $words[2] in\n")
	for _, c := range list {
		fmt.Fprintf(&b, "\t%s) compadd -- %s ;;\n", c.verb, c.next())
	}
	b.WriteString("\tesac\n\t_files\n}\ncompdef _sluice sluice\n")
	return b.String()
}

func fishScript(list []completion) string {
	var b strings.Builder
	b.WriteString("# fish completion of sluice\n")
	for _, c := range list {
		fmt.Fprintf(&b, "complete -c sluice -n __fish_use_subcommand -f -a %s -d %s\n", c.verb, shellQuote(c.text))
	}
	for _, c := range list {
		in := fmt.Sprintf("complete -c sluice -n '__fish_seen_subcommand_from %s'", c.verb)
		for _, w := range c.words {
			fmt.Fprintf(&b, "%s -f -a %s\n", in, w)
		}
		for _, f := range c.flags {
			dashes, required := "-l", ""
			if !strings.HasPrefix(f.name, "--") {
				dashes = "-s"
			}
			if f.value {
				required = " -r"
			}
			fmt.Fprintf(&b, "%s %s %s%s -d %s\n", in, dashes, strings.TrimLeft(f.name, "-"), required, shellQuote(f.text))
		}
	}
	return b.String()
}

// shellQuote quotes s for all three shells, which read a quote within quotes in
// different ways: it becomes another character.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", "’") + "'" }
