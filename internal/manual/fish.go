package manual

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// Fish is the completion for fish.
func Fish(app *kong.Application) string {
	root := read(app.Node)
	var b strings.Builder
	fmt.Fprintf(&b, `# Completion of %[1]s for fish.

# __%[1]s_at says whether the words before the cursor name this command.
function __%[1]s_at
	set -l path %[1]s
	set -l skip 0
	for word in (commandline -opc)[2..-1]
		if test $skip = 1
			set skip 0
		else if string match -q -- '-*' $word
			__%[1]s_valued $path $word; and set skip 1
		else if contains -- $word (__%[1]s_commands $path)
			set path "$path $word"
		end
	end
	test $path = $argv[1]
end

# __%[1]s_commands prints the commands below a command.
function __%[1]s_commands
	switch $argv[1]
`, root.name)
	for _, c := range root.all() {
		if len(c.children) > 0 {
			fmt.Fprintf(&b, "\t\tcase %s\n\t\t\tprintf '%%s\\n' %s\n", fishQuote(c.name), strings.Join(c.names(), " "))
		}
	}
	fmt.Fprintf(&b, `	end
end

# __%[1]s_valued says whether a flag of a command takes a value in the next word.
function __%[1]s_valued
	switch $argv[1]
`, root.name)
	for _, c := range root.all() {
		fmt.Fprintf(&b, "\t\tcase %s\n\t\t\tcontains -- $argv[2] %s\n", fishQuote(c.name), flagNames(c, true))
	}
	fmt.Fprintf(&b, "\tend\nend\n\ncomplete -c %s -f\n", root.name)
	for _, c := range root.all() {
		line := fmt.Sprintf("complete -c %s -n %s", root.name, fishQuote("__"+root.name+"_at "+fishQuote(c.name)))
		for _, child := range c.children {
			fmt.Fprintf(&b, "%s -a %s -d %s\n", line, child.last(), fishQuote(brief(child.help)))
		}
		for _, f := range c.typed() {
			fmt.Fprintf(&b, "%s -l %s%s -d %s\n", line, f.name, fishValues(f, true), fishQuote(brief(f.help)))
		}
		if len(c.arguments) > 0 {
			if offer := fishValues(c.arguments[0], false); offer != "" {
				fmt.Fprintf(&b, "%s%s\n", line, offer)
			}
		}
	}
	return b.String()
}

// fishValues are the options of complete for what a flag or an argument takes.
func fishValues(o option, flag bool) string {
	required := ""
	if flag && o.takes {
		required = " -r"
	}
	switch {
	case o.values == files:
		return required + " -F"
	case o.values == directories:
		return required + " -f -a '(__fish_complete_directories)'"
	case o.values == words:
		return required + " -f -a " + fishQuote(strings.Join(o.words, " "))
	case o.takes:
		return required + " -f"
	}
	return required
}

// fishQuote quotes for fish, where a backslash within quotes is one before a quote or a backslash only.
func fishQuote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}
