package e2e

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/waittest"
)

var (
	curlLine  = regexp.MustCompile(`(?m)^    (curl (?:.*\\\n)*.*)$`)
	curlGives = map[string]*regexp.Regexp{
		"SESSION": regexp.MustCompile(`"result":"([^"]+)"`),
		"SEAT":    regexp.MustCompile(`"playerSessionId":"([^"]+)"`),
		"CALL":    regexp.MustCompile(`"callId":"([^"]+)"`),
	}
)

// curl runs the commands of a page unchanged, those that end, and returns their answers.
type curl struct {
	*service
	words map[string]string // in capitals, and what stands for them
}

func (c *curl) commands(page string) (lines []string) {
	text, err := os.ReadFile(page)
	must(c.t, err)
	for _, line := range curlLine.FindAllStringSubmatch(string(text), -1) {
		lines = append(lines, line[1])
	}
	if len(lines) < 3 {
		c.t.Fatalf("%s has %d commands", page, len(lines))
	}
	return lines
}

func (c *curl) run(line string) (answer string) {
	c.t.Helper()
	gives := givesID.FindStringSubmatch(line)
	line = c.fill(givesID.ReplaceAllString(line, ""))
	waittest.Until(c.t, "a free server process", func() bool { // the page assumes that one has been running for a while
		out, err := exec.CommandContext(c.t.Context(), "bash", "-c", line).Output()
		if err != nil {
			c.t.Fatalf("%s: %v: %s", line, err, out)
		}
		answer = string(out)
		return !strings.Contains(answer, `"NoFreeServer"`)
	})
	if !json.Valid([]byte(answer)) || strings.Contains(answer, `"error"`) {
		c.t.Fatalf("%s: %s", line, answer)
	}
	if gives != nil {
		found := curlGives[gives[1]].FindStringSubmatch(answer)
		if found == nil {
			c.t.Fatalf("%s gives no %s: %s", line, gives[1], answer)
		}
		c.words[gives[1]] = found[1]
	}
	return answer
}

// fill replaces the words with their values, and --json with its equivalent in curl before 7.82.
func (c *curl) fill(line string) string {
	for word, value := range c.words {
		line = regexp.MustCompile(`\b`+word+`\b`).ReplaceAllLiteralString(line, value)
	}
	line = strings.ReplaceAll(line, "--json ", "-H 'Content-Type: application/json' -d ")
	return strings.ReplaceAll(line, "http://127.0.0.1:8080", c.url())
}

// The page on session nodes, command by command, against the binary, with the arena's game server.
func TestScriptNodesGuide(t *testing.T) {
	t.Parallel()
	s := startService(t)
	hall := s.prepare()
	hall.startArena()
	c := &curl{s, map[string]string{"FLEET": hall.fleet}}
	var listening *bufio.Scanner
	for _, line := range c.commands("../docs/guide/script-nodes.md") {
		switch {
		case strings.Contains(line, "/events "):
			cmd := exec.CommandContext(t.Context(), "bash", "-c", "exec "+c.fill(line))
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			listening = bufio.NewScanner(out)
			listening.Scan() // connected
			continue
		case strings.Contains(line, "KEYID"):
			continue
		}
		answer := c.run(line)
		switch {
		case strings.Contains(line, "/CreateSession "):
			s.untilGameSession(c.words["SESSION"], types.GameSessionStatusActive)
		case strings.Contains(line, "/SearchSessions ") && !strings.Contains(answer, c.words["SESSION"]):
			t.Errorf("the search finds nothing: %s", answer)
		case strings.Contains(line, "/JoinSession ") && !strings.Contains(answer, `"ipAddress":"127.0.0.1"`):
			t.Errorf("nowhere to go: %s", answer)
		case strings.Contains(line, "/LeaveSession ") && !strings.Contains(answer, `"status":"COMPLETED"`):
			t.Errorf("the seat is not free: %s", answer)
		}
	}
	for heard := ""; heard != "event: OnSearchSessionsAsyncComplete"; heard = listening.Text() {
		if !listening.Scan() {
			t.Fatalf("the event stream ended: %v", listening.Err())
		}
	}
	if listening.Scan(); !strings.Contains(listening.Text(), c.words["SESSION"]) {
		t.Errorf("the event says %s", listening.Text())
	}
}

// The clock of `serve --dev --virtual-clock`, moved as on the page on testing.
func TestVirtualClockGuide(t *testing.T) {
	t.Parallel()
	s := startService(t, "--dev", "--virtual-clock")
	c := &curl{service: s}
	var at []time.Time
	for _, line := range c.commands("../docs/guide/testing.md") {
		var answer struct{ Now time.Time }
		must(t, json.Unmarshal([]byte(c.run(line)), &answer))
		at = append(at, answer.Now)
	}
	if len(at) != 3 || at[1].Sub(at[0]) != time.Minute || !at[2].Equal(at[1]) {
		t.Errorf("the clock showed %v", at)
	}
	s.kill()
	s.start()
	var again struct{ Now time.Time }
	must(t, json.Unmarshal([]byte(c.run("curl -s http://127.0.0.1:8080/dev/clock")), &again))
	if again.Now.Before(at[0]) {
		t.Errorf("after a restart the clock shows %s, before %s", again.Now, at[2])
	}
}

// Without the flag no client can move the clock.
func TestVirtualClockNeedsItsFlag(t *testing.T) {
	t.Parallel()
	s := startService(t)
	out, err := exec.Command("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", s.url()+"/dev/clock").Output()
	if err != nil || string(out) != "404" {
		t.Errorf("got %s %v", out, err)
	}
	if out, err := exec.Command(musterBinary, "serve", "--virtual-clock", "--data", t.TempDir(), "--listen", "127.0.0.1:0").CombinedOutput(); err == nil || !strings.Contains(string(out), "virtual-clock without dev") {
		t.Errorf("without dev: %v %s", err, out)
	}
}
