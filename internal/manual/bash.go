package manual

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// Bash is the completion for bash, from version 4 on. It needs no other package.
func Bash(app *kong.Application) string {
	root := read(app.Node)
	var b strings.Builder
	fmt.Fprintf(&b, `# Completion of %[1]s for bash, from version 4 on.

# _%[1]s_has sets what may follow a command: its commands, all of its flags, those of them that take a value, and what it takes as arguments.
_%[1]s_has() {
	commands='' flags='' valued='' arguments=''
	case $1 in
`, root.name)
	for _, c := range root.all() {
		fmt.Fprintf(&b, "\t%s)\n\t\tcommands=%s\n\t\tflags=%s\n\t\tvalued=%s\n", quote(c.name), quote(strings.Join(c.names(), " ")), quote(flagNames(c, false)), quote(flagNames(c, true)))
		if len(c.arguments) > 0 {
			fmt.Fprintf(&b, "\t\targuments=%s\n", quote(shellValues(c.arguments[0])))
		}
		b.WriteString("\t\t;;\n")
	}
	b.WriteString("\tesac\n}\n\n" + takesFunction(root))
	fmt.Fprintf(&b, `
_%[1]s_offer() {
	case $1 in
	:files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
	:directories) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
	*) mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2") ;;
	esac
}

_%[1]s() {
	local commands flags valued arguments path=%[1]s i word current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
	COMPREPLY=()
	_%[1]s_has "$path"
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in
		--) return ;;
		-*)
			if [[ " $valued " == *" $word "* ]]; then
				if [[ ${COMP_WORDS[i+1]} == '=' ]]; then ((i += 2)); else ((i++)); fi
			fi
			;;
		*)
			if [[ " $commands " == *" $word "* ]]; then
				path+=" $word"
				_%[1]s_has "$path"
			fi
			;;
		esac
	done
	if [[ $current == '=' ]]; then # bash makes words of their own of the = and of what follows
		current=''
	elif [[ $before == '=' ]]; then
		before=${COMP_WORDS[COMP_CWORD-2]}
	fi
	if [[ " $valued " == *" $before "* ]]; then
		_%[1]s_takes "$path" "$before"
		_%[1]s_offer "$arguments" "$current"
	elif [[ $current == -* ]]; then
		_%[1]s_offer "$flags" "$current"
	elif [[ -n $commands ]]; then
		_%[1]s_offer "$commands" "$current"
	else
		_%[1]s_offer "$arguments" "$current"
	fi
}

complete -F _%[1]s %[1]s
`, root.name)
	return b.String()
}
