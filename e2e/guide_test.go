package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/waittest"
)

// guideToQueues runs the commands of docs/guide/queues.md unchanged, and checks the page's statements about them.
func guideToQueues(t *testing.T, c *cli) {
	g := &guide{cli: c, ids: map[string]string{}, answers: map[string]object{}}
	for _, command := range commandsOf(t, "../docs/guide/queues.md") {
		g.do(command)
	}

	match := g.answers["describe-game-session-placement"]
	c.expect(match, map[string]any{"GameSessionPlacement.Status": "FULFILLED", "GameSessionPlacement.IpAddress": "127.0.0.1"})
	if n := match.count("GameSessionPlacement", "PlacedPlayerSessions"); n != 4 {
		t.Errorf("%d players have seats, want 4", n)
	}
	if at := match.text("GameSessionPlacement", "GameSessionArn"); !strings.Contains(at, g.ids["SOUTH"]+"/custom-rome/") {
		t.Errorf("the match is at %s, want it in Rome", at)
	}
	c.expect(g.answers["stop-game-session-placement"], map[string]any{"GameSessionPlacement.Status": "CANCELLED"})
	c.expect(g.answers["resolve-alias"], map[string]any{"FleetId": g.ids["NEXT"]})
	c.expect(g.answers["search-game-sessions"], map[string]any{"GameSessions.Location": "custom-paris", "GameSessions.FleetId": g.ids["NORTH"]})
}

// guide is a page whose commands are being run.
type guide struct {
	*cli
	ids     map[string]string // by the word in capitals
	answers map[string]object // by the CLI's command
}

// commandsOf returns the commands of a page: indented lines that begin with one, and their continuations.
func commandsOf(t *testing.T, page string) (commands []string) {
	text, err := os.ReadFile(page)
	must(t, err)
	open := false
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\r", "")) {
		code, indented := strings.CutPrefix(strings.TrimRight(line, "\n"), "    ")
		switch {
		case open:
			commands[len(commands)-1] += "\n" + code
		case indented && isCommand.MatchString(code):
			commands = append(commands, code)
		}
		open = indented && (open || isCommand.MatchString(code)) && strings.HasSuffix(code, `\`)
	}
	return commands
}

var (
	isCommand = regexp.MustCompile(`^(gl|for|muster|arena-server) `)
	givesID   = regexp.MustCompile(`# gives ([A-Z]+)$`)
	inAnswer  = regexp.MustCompile(`"(?:FleetId|AliasId|GameSessionArn)": "([^"]+)"`)
	answersOf = map[string]*regexp.Regexp{ // of words that stand for something else
		"TOKEN": regexp.MustCompile(`"AuthToken": "([^"]+)"`), "ARN": regexp.MustCompile(`"GameSessionId": "([^"]+)"`),
	}
	idWord    = regexp.MustCompile(`\b[A-Z]{3,}\b`)
	glCommand = regexp.MustCompile(`\bgl ([a-z-]+)`)
)

func (g *guide) do(command string) {
	g.t.Helper()
	gives := givesID.FindStringSubmatch(command)
	command = idWord.ReplaceAllStringFunc(givesID.ReplaceAllString(command, ""), func(word string) string {
		if id, ok := g.ids[word]; ok {
			return id
		}
		return word
	})
	command = strings.ReplaceAll(command, "ws://127.0.0.1:8080", g.ws())
	switch name := glCommand.FindStringSubmatch(command); {
	case strings.HasPrefix(command, "arena-server "):
		args := strings.Fields(g.shell("echo " + strings.TrimSuffix(strings.TrimPrefix(command, "arena-server "), "&")))
		cmd := exec.Command(arenaServerBinary, append(args, "-port", "0", "-bind", "127.0.0.1")...)
		cmd.Env = cleanEnvironment(hurried...)
		run(g.t, cmd).until("ready for a game session")
	case strings.HasPrefix(command, "muster explain placement"):
		wantAll(g.t, g.shell(command), "placement match-2 is PENDING", "custom-berlin", "NO_FREE_PROCESS", "a player has 90 ms", "a player has 80 ms; the cap is 50 ms now")
	default:
		switch {
		case name[1] == "describe-game-session-placement": // "a moment later"
			g.untilPlaced("match-1")
		case strings.Contains(command, "--name north-2"): // "after 20 seconds"
			g.advance(20 * time.Second)
			g.untilPlaced("match-2")
		}
		out := g.shell(command)
		g.calls.note(operationName(name[1]), "")
		answer := object{}
		if !strings.HasPrefix(command, "for ") && out != "" {
			must(g.t, json.Unmarshal([]byte(out), &answer))
		}
		g.answers[name[1]] = answer
		if gives != nil {
			found := cmp.Or(answersOf[gives[1]], inAnswer).FindStringSubmatch(out)
			if found == nil {
				g.t.Fatalf("%s gives no id: %s", command, out)
			}
			g.ids[gives[1]] = found[1]
		}
	}
}

// shell runs a command with gl and muster as on the page.
func (g *guide) shell(command string) string {
	g.t.Helper()
	script := fmt.Sprintf("set -e\ngl() { %s --endpoint-url %s --region %s --output json gamelift \"$@\"; }\nmuster() { %s \"$@\" --listen %s; }\n%s",
		awsCLI(g.t), g.url(), region, musterBinary, g.address, command)
	cmd := exec.Command("bash", "-c", script)
	cmd.Env = g.env
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		g.t.Fatalf("%s: %v\n%s%s", command, err, out, errs.String())
	}
	return string(out)
}

func (g *guide) untilPlaced(id string) {
	g.t.Helper()
	waittest.Until(g.t, id+" to be placed", func() bool {
		out, err := g.api().DescribeGameSessionPlacement(g.t.Context(), &gamelift.DescribeGameSessionPlacementInput{PlacementId: &id})
		must(g.t, err)
		p := out.GameSessionPlacement
		if slices.Contains([]types.GameSessionPlacementState{"TIMED_OUT", "FAILED", "CANCELLED"}, p.Status) {
			g.t.Fatalf("%s is %s", id, p.Status)
		}
		return p.Status == types.GameSessionPlacementStateFulfilled
	})
}
