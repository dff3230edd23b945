package manual

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// Zsh is the completion for zsh: a file _muster in a directory of $fpath, or a script to source.
func Zsh(app *kong.Application) string {
	root := read(app.Node)
	var b strings.Builder
	fmt.Fprintf(&b, `#compdef %[1]s
# Completion of %[1]s for zsh.

# _%[1]s_has sets what may follow a command: its commands and flags with their descriptions, the flags that take a value, and what it takes as arguments.
_%[1]s_has() {
	commands=() flags=() valued=() arguments=''
	case $1 in
`, root.name)
	for _, c := range root.all() {
		fmt.Fprintf(&b, "\t%s)\n", quote(c.name))
		b.WriteString("\t\tcommands=(")
		for _, child := range c.children {
			b.WriteString(" " + described(child.last(), brief(child.help)))
		}
		b.WriteString(" )\n\t\tflags=(")
		for _, f := range c.typed() {
			b.WriteString(" " + described("--"+f.name, brief(f.help)))
		}
		fmt.Fprintf(&b, " )\n\t\tvalued=( %s )\n", flagNames(c, true))
		if len(c.arguments) > 0 {
			fmt.Fprintf(&b, "\t\targuments=%s\n", quote(shellValues(c.arguments[0])))
		}
		b.WriteString("\t\t;;\n")
	}
	b.WriteString("\tesac\n}\n\n" + takesFunction(root))
	fmt.Fprintf(&b, `
_%[1]s_offer() {
	case $1 in
	:files) _files ;;
	:directories) _files -/ ;;
	?*) compadd -- ${=1} ;;
	esac
}

_%[1]s() {
	local -a commands flags valued
	local arguments path_of=%[1]s word i
	_%[1]s_has $path_of
	for ((i = 2; i < CURRENT; i++)); do
		word=$words[i]
		if [[ $word == -- ]]; then
			_files
			return
		elif (( ${valued[(Ie)$word]} )); then
			(( i++ ))
		elif (( ${commands[(I)$word:*]} )); then
			path_of+=" $word"
			_%[1]s_has $path_of
		fi
	done
	word=$words[CURRENT-1]
	if [[ $PREFIX == --*=* ]]; then
		word=${PREFIX%%%%=*}
		compset -P '*='
		_%[1]s_takes $path_of $word
		_%[1]s_offer $arguments
	elif (( CURRENT > 2 && ${valued[(Ie)$word]} )); then
		_%[1]s_takes $path_of $word
		_%[1]s_offer $arguments
	elif [[ $PREFIX == -* ]]; then
		_describe -o flag flags
	elif (( $#commands )); then
		_describe command commands
	else
		_%[1]s_offer $arguments
	fi
}

if [[ $funcstack[1] == _%[1]s ]]; then
	_%[1]s "$@"
else
	compdef _%[1]s %[1]s
fi
`, root.name)
	return b.String()
}

// described is an entry of _describe: a colon ends the word.
func described(word, help string) string {
	return quote(word + ":" + strings.ReplaceAll(help, `\`, `\\`))
}
