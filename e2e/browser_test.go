package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// browse runs a script of the directory console, which drives a real browser. answer gets each line that the script prints, and returns the line for which the script waits;
// ok is false for a line that is only for the log.
func browse(t *testing.T, script string, env []string, answer func(line string) (reply string, ok bool)) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", script)
	cmd.Dir = "console"
	cmd.Env = cleanEnvironment(append(env, "HOME="+t.TempDir(), "SHOTS="+os.Getenv("CONSOLE_SHOTS"))...)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	var problems strings.Builder
	cmd.Stderr = &problems
	must(t, cmd.Start())
	for lines := bufio.NewScanner(out); lines.Scan(); {
		reply, ok := answer(lines.Text())
		if !ok {
			t.Log(lines.Text())
			continue
		}
		_, err := in.Write([]byte(reply + "\n"))
		must(t, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, problems.String())
	}
}

// needBrowser fails the test early if the browser's scripts are not installed.
func needBrowser(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("console/node_modules"); err != nil {
		t.Fatal("console/node_modules is missing: run scripts/test-needs.sh")
	}
}
