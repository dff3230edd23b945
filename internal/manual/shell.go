package manual

import (
	"fmt"
	"strings"
)

// takesFunction is a function of the completions for bash and for zsh: it sets what a flag of a command takes as its value.
func takesFunction(root *command) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# _%[1]s_takes sets what a flag of a command takes as its value.
_%[1]s_takes() {
	arguments=''
	case "$1 $2" in
`, root.name)
	for _, c := range root.all() {
		for _, f := range c.typed() {
			if f.takes && f.values != free {
				fmt.Fprintf(&b, "\t%s) arguments=%s ;;\n", quote(c.name+" --"+f.name), quote(shellValues(f)))
			}
		}
	}
	b.WriteString("\tesac\n}\n")
	return b.String()
}

func flagNames(c *command, valued bool) string {
	var list []string
	for _, f := range c.typed() {
		if f.takes || !valued {
			list = append(list, "--"+f.name)
		}
	}
	return strings.Join(list, " ")
}

func shellValues(o option) string {
	switch o.values {
	case files:
		return ":files"
	case directories:
		return ":directories"
	}
	return strings.Join(o.words, " ")
}

// quote writes a text as one word of any of the three shells. The texts have no line breaks.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
