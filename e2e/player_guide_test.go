package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// fenced returns the commands in a page's shell blocks, each with the output on the page; "" if the page shows none.
func fenced(t *testing.T, page, from, to string) (blocks [][2]string) {
	t.Helper()
	text, err := os.ReadFile(page)
	must(t, err)
	_, story, ok := strings.Cut(string(text), from)
	story, _, ends := strings.Cut(story, to)
	if !ok || !ends {
		t.Fatalf("%s: want a story from %q to %q", page, from, to)
	}
	for _, found := range regexp.MustCompile("(?s)```(sh)?\n(.*?)```").FindAllStringSubmatch(story, -1) {
		switch {
		case found[1] == "sh":
			blocks = append(blocks, [2]string{found[2], ""})
		case len(blocks) > 0:
			blocks[len(blocks)-1][1] = found[2]
		}
	}
	return blocks
}

// The page on player flow, command by command, in one shell: a party, a search, a match, the address, a crash and the return, with
// curl and a WebSocket by hand, and the example game.
func TestGuideToPlayerFlow(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("jq"); err != nil {
		t.Fatal("jq is missing: run scripts/test-needs.sh")
	}
	s := startService(t, "--player-flow", "--virtual-clock")                                                         // whatever the machine takes for a command
	blocks := fenced(t, "../docs/guide/player-flow.md", "## Two friends, by hand", "## Notices to game servers")[1:] // the service runs
	const mark = "== block "
	script := new(bytes.Buffer)
	fmt.Fprintf(script, "set -eo pipefail\ntrap 'echo \"%sthe end: $?\"' EXIT\n", mark)
	fmt.Fprintf(script, "gl() { %s --endpoint-url %s --region %s --output json gamelift \"$@\"; }\n", awsCLI(t), s.url(), region)
	for i, block := range blocks {
		fmt.Fprintf(script, "echo '%s%d'\n%s", mark, i, strings.ReplaceAll(block[0], "127.0.0.1:8080", s.address))
	}
	cmd := exec.Command("bash", "-c", script.String())
	cmd.Dir = t.TempDir()
	cmd.Env = append(awsEnvironment(s.url()), append([]string{"PATH=" + filepath.Dir(musterBinary) + ":" + os.Getenv("PATH")}, hurried...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its child processes end with it
	out, errs := newOutput(), newOutput()
	cmd.Stdout, cmd.Stderr = out, errs
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() })                        // killed
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience) // for all of the page
	defer cancel()
	end, err := out.until(ctx, mark+"the end: ")
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its listeners would run for ever
	if err != nil || end != mark+"the end: 0" {
		t.Fatalf("%s%v\n%s\n%s", end, err, out, errs)
	}
	for i, block := range blocks {
		_, got, _ := strings.Cut(out.String(), fmt.Sprintf("%s%d\n", mark, i))
		got, _, _ = strings.Cut(got, mark)
		want := "(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(block[1])), "…", ".*") + "$"
		if block[1] != "" && !regexp.MustCompile(want).MatchString(strings.TrimSpace(got)) {
			t.Errorf("the page says that\n%s\nprints\n%s\nand it prints\n%s", block[0], block[1], got)
		}
	}
	s.noViolations(t)
}
