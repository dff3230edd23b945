package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestGuideToSimulate runs the guide's four hours. The table in the guide and the page beside it are what the code gives now; after a
// change of the matcher run the guide's command again and put its output there.
func TestGuideToSimulate(t *testing.T) {
	if testing.Short() {
		t.Skip("it simulates four hours twice")
	}
	t.Chdir("../..")
	guide := strings.ReplaceAll(get(t, "docs/guide/simulate.md"), "\r", "")
	_, from, _ := strings.Cut(guide, "    muster simulate examples/matchmaking/ranked.json --compare")
	command, rest, _ := strings.Cut("simulate examples/matchmaking/ranked.json --compare"+from, "\n\n")
	shown, _, _ := strings.Cut(rest, "\n\n")
	page := filepath.Join(t.TempDir(), "page.html")
	args := strings.Fields(strings.ReplaceAll(command, "\\", ""))
	for i := range args {
		if args[i] == "docs/examples/simulation.html" {
			args[i] = page
		}
	}
	made := mustRun(t, nil, args...)
	var lines []string
	for line := range strings.Lines(shown) {
		lines = append(lines, strings.TrimPrefix(strings.TrimRight(line, "\n"), "    "))
	}
	if want := strings.Join(lines, "\n"); strings.TrimRight(made, "\n") != want {
		t.Errorf("the guide shows\n%s\nthe command gives\n%s", want, made)
	}
	if get(t, page) != strings.ReplaceAll(get(t, "docs/examples/simulation.html"), "\r", "") {
		t.Error("docs/examples/simulation.html is not the page of this run")
	}
}
