package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// shown returns the words that people may type after a command, according to the parser's model: commands and flags.
func shown(t *testing.T) map[string][]string {
	t.Helper()
	env := newEnvironment(nil)
	parser, err := newParser(t.Context(), io.Discard, env, newSources(env))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	var visit func(node *kong.Node)
	visit = func(node *kong.Node) {
		names := []string{}
		for _, flags := range node.AllFlags(true) {
			for _, f := range flags {
				names = append(names, "--"+f.Name)
			}
		}
		if node.DefaultCmd != nil { // its flags follow the name of the command around it, too
			for _, f := range node.DefaultCmd.Flags {
				if !f.Hidden {
					names = append(names, "--"+f.Name)
				}
			}
		}
		for _, child := range node.Children {
			if !child.Hidden {
				names = append(names, child.Name)
				visit(child)
			}
		}
		all[node.FullPath()] = names
	}
	visit(parser.Model.Node)
	if len(all) < 60 || !slices.Contains(all["muster serve"], "--cluster-advertise") {
		t.Fatalf("the model has %d commands, and %d words behind serve: the test reads it wrongly", len(all), len(all["muster serve"]))
	}
	return all
}

// installed skips the test without the shell or tool, which `make packages` installs.
func installed(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("PACKAGE_TOOLS") != "" || name == "bash" {
			t.Fatal(err)
		}
		t.Skipf("no %s; make packages installs it", name)
	}
	return path
}

// shells ask a shell for what follows a line. Each ask is a line of the script: the words before the cursor, and the word at the cursor.
var shells = map[string]struct {
	before string // sources the script $1
	ask    func(words []string, at string) string
}{
	"bash": {
		before: `source "$1"; complete -p muster >/dev/null; ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _muster; echo "${COMPREPLY[*]}"; }`,
		ask:    func(words []string, at string) string { return "ask " + strings.Join(words, " ") + " '" + at + "'" },
	},
	// The completion functions of zsh work in its editor only; these stand for those that the script calls.
	"zsh": {
		before: `compdef() {}; offered=(); _describe() { offered+=(${(@)${(P@)@[-1]}%%:*}) }; compadd() { shift; offered+=($@) }; _files() { offered+=(files $@) }; compset() { PREFIX=${PREFIX#*=} }
source $1; ask() { words=("$@"); CURRENT=$#; PREFIX=$words[CURRENT]; offered=(); _muster; for x in $offered; do [[ $x == $PREFIX* || $PREFIX == '' ]] && print -n -- "$x "; done; print }`,
		ask: func(words []string, at string) string { return "ask " + strings.Join(words, " ") + " '" + at + "'" },
	},
	"fish": {
		before: `source $argv[1]; function ask; set -l offered (complete -C "$argv" | string replace -r '\t.*' ''); echo "$offered"; end`,
		ask:    func(words []string, at string) string { return "ask '" + strings.Join(words, " ") + " " + at + "'" },
	},
}

// TestCompletions: in the shells themselves, every command and flag is offered, and no other.
func TestCompletions(t *testing.T) {
	all := shown(t)
	for shell, with := range shells {
		t.Run(shell, func(t *testing.T) {
			path := installed(t, shell)
			script := filepath.Join(t.TempDir(), "muster")
			put(t, script, mustRun(t, nil, "completion", shell))
			lines := []string{with.before}
			type asked struct {
				line string
				want []string
			}
			var asks []asked
			ask := func(want []string, at string, words ...string) {
				lines = append(lines, with.ask(words, at))
				asks = append(asks, asked{strings.Join(append(words, at), " "), want})
			}
			for command, names := range all {
				flags := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasPrefix(name, "-") })
				ask(flags, "--", strings.Fields(command)...)
				if commands := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return strings.HasPrefix(name, "-") }); len(commands) > 0 {
					ask(commands, "", strings.Fields(command)...)
				}
			}
			ask([]string{"--tls-cert", "--tls-key", "--tls-acme-email", "--tls-acme-directory", "--tls-release-buffers"}, "--tls", "muster", "serve")
			ask([]string{"status"}, "st", "muster", "--config", "cluster", "cluster")
			ask([]string{"debug"}, "d", "muster", "agent", "--server", "serve", "--log-level")
			ask([]string{"bash", "zsh", "fish"}, "", "muster", "completion")
			ask([]string{"text", "json"}, "", "muster", "serve", "--log-format")
			ask([]string{"auto"}, "a", "muster", "config", "show", "--require-tls")
			ask([]string{"REPORT_ONLY"}, "R", "muster", "serve", "--player-penalties")
			ask([]string{"admin", "backend", "client", "readonly"}, "", "muster", "keys", "create", "--role")
			ask([]string{"party", "placement", "player", "process"}, "p", "muster", "events")
			ask(nil, "", "muster", "agent", "--server")
			ask(nil, "", "muster", "backup", "--to")

			commands := filepath.Join(t.TempDir(), "ask")
			put(t, commands, strings.Join(lines, "\n")+"\ntrue\n")
			args := map[string][]string{"bash": {"--norc", "--noprofile"}, "zsh": {"-f"}, "fish": {"--no-config"}}[shell]
			run := exec.Command(path, append(args, commands, script)...)
			run.Dir = t.TempDir() // no files to offer
			out, err := run.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			answers := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
			if len(answers) != len(asks) {
				t.Fatalf("%d answers to %d questions; the first are %q", len(answers), len(asks), answers[:min(len(answers), 5)])
			}
			for i, a := range asks {
				got := strings.Fields(answers[i])
				slices.Sort(got)
				slices.Sort(a.want)
				if !slices.Equal(got, a.want) {
					t.Errorf("%q: offered %q, want %q", a.line, got, a.want)
				}
			}
		})
	}
}

// TestManualPages: every command and flag is on its page, and the tools that format pages find nothing to complain about.
func TestManualPages(t *testing.T) {
	dir := t.TempDir()
	out := mustRun(t, []string{"SOURCE_DATE_EPOCH=1700000000"}, "man", dir)
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || !strings.HasPrefix(out, fmt.Sprintf("%d pages", len(pages))) {
		t.Fatalf("%d pages: %s", len(pages), out)
	}
	plain := strings.NewReplacer(`\-`, "-", `\fB`, "", `\fR`, "")
	for command, names := range shown(t) {
		words := strings.Fields(command)
		page := get(t, filepath.Join(dir, strings.Join(words[:min(len(words), 2)], "-")+".1"))
		if !strings.Contains(page, `"2023-11-14"`) {
			t.Errorf("%s: the page has no date", command)
		}
		text := plain.Replace(page)
		if len(words) > 2 { // a part of a page
			if _, text, _ = strings.Cut(text, "\n.SS "+command+"\n"); text == "" {
				t.Errorf("%s has no part of its page", command)
			}
			text, _, _ = strings.Cut(text, "\n.SS ")
		}
		for _, name := range names {
			if len(words) > 1 && (name == "--help" || name == "--config") {
				continue // muster(1) has them
			}
			if !strings.Contains(text, "\n"+name+"\n") && !strings.Contains(text, "\n"+name+"=") && !strings.Contains(text, "\n.SS "+command+" "+name+"\n") && !strings.Contains(text, " "+name+"\n") {
				t.Errorf("%s: %s is not on its page", command, name)
			}
		}
	}
	if _, err := runForTest(t, []string{"SOURCE_DATE_EPOCH=now"}, "man", dir); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
		t.Errorf("with a date that is no number: %v", err)
	}
	t.Run("mandoc", func(t *testing.T) {
		if out, err := exec.Command(installed(t, "mandoc"), append([]string{"-Tlint", "-W", "warning"}, pages...)...).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%v: %s", err, out)
		}
	})
	t.Run("man", func(t *testing.T) {
		for _, page := range pages {
			run := exec.Command(installed(t, "man"), "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page)
			run.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
			var complaints strings.Builder
			run.Stderr = &complaints
			if err := run.Run(); err != nil || complaints.Len() > 0 {
				t.Errorf("%s: %v: %s", filepath.Base(page), err, complaints.String())
			}
		}
	})
}
