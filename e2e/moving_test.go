package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/waittest"
)

// The guide from GameLift, command by command, from one installation to another.
func TestGuideFromGameLift(t *testing.T) {
	t.Parallel()
	cloud, here := startService(t), startService(t)
	dir := t.TempDir()
	env := append(newCLI(here).env, "HOME="+dir)
	shell := func(s *service, command string) string {
		t.Helper()
		aws := func(to *service) string {
			return fmt.Sprintf("%s --endpoint-url %s --region us-east-1 --output json gamelift \"$@\"", awsCLI(t), to.url())
		}
		script := fmt.Sprintf("set -eo pipefail\ncloud() { %s; }\ngl() { %s; }\nmuster() { %s \"$@\"; }\n%s", aws(cloud), aws(s), musterBinary, command)
		cmd := exec.Command("bash", "-c", script)
		cmd.Env, cmd.Dir = env, dir
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s%s", command, err, out, errs.String())
		}
		return string(out)
	}

	shell(cloud, `
		gl create-location --location-name custom-berlin
		gl create-location --location-name custom-paris
		fleet=$(gl create-fleet --name old --compute-type ANYWHERE --locations Location=custom-berlin Location=custom-paris --query FleetAttributes.FleetArn --output text)
		gl create-game-session-queue --name europe --timeout-in-seconds 300 --destinations DestinationArn=$fleet --custom-event-data 'eu live' \
			--player-latency-policies MaximumIndividualPlayerLatencyMilliseconds=50,PolicyDurationSeconds=20 MaximumIndividualPlayerLatencyMilliseconds=200 \
			--priority-configuration 'PriorityOrder=LATENCY,DESTINATION,COST,LOCATION,LocationOrder=custom-paris,custom-berlin'
		gl create-matchmaking-rule-set --name duel --rule-set-body '{"name": "duel", "ruleLanguageVersion": "1.0", "teams": [{"name": "all", "minPlayers": 2, "maxPlayers": 2}]}'
		gl create-matchmaking-configuration --name ranked --rule-set-name duel --request-timeout-seconds 60 --no-acceptance-required --custom-event-data x \
			--game-properties Key=map,Value=desert --game-session-queue-arns arn:aws:gamelift:us-east-1:000000000000:gamesessionqueue/europe
		gl create-matchmaking-configuration --name alone --rule-set-name duel --request-timeout-seconds 60 --no-acceptance-required --flex-match-mode STANDALONE`)

	page, err := os.ReadFile("../docs/guide/from-gamelift.md")
	must(t, err)
	ran, fenced := 0, false // a fenced block is no command
	for line := range strings.Lines(string(page)) {
		command, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "    ")
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		switch {
		case fenced || !ok || strings.HasPrefix(command, "alias "):
			continue
		case strings.HasPrefix(command, "arena-server "):
			args := strings.Fields(shell(here, "echo "+strings.TrimPrefix(strings.ReplaceAll(command, "ws://127.0.0.1:8080", here.ws()), "arena-server ")))
			server := exec.Command(arenaServerBinary, append(args, "-port", "0", "-bind", "127.0.0.1")...)
			server.Env = cleanEnvironment(hurried...)
			run(t, server).until("ready for a game session")
		default:
			shell(here, command)
		}
		ran++
	}
	if ran < 15 {
		t.Errorf("the page has %d commands, want at least 15", ran)
	}

	// The new installation has the same resources as the old one.
	const queues = `describe-game-session-queues | jq -cS '.GameSessionQueues[] | {Name, TimeoutInSeconds, PlayerLatencyPolicies, PriorityConfiguration, CustomEventData}'`
	if got, want := shell(here, "gl "+queues), shell(here, "cloud "+queues); got != want || !strings.Contains(got, "custom-paris") {
		t.Errorf("the queues are\n%swant\n%s", got, want)
	}
	const configurations = `describe-matchmaking-configurations | jq -cS '.Configurations | sort_by(.Name)[] | {Name, RuleSetName, RequestTimeoutSeconds, AcceptanceRequired, FlexMatchMode, GameProperties, CustomEventData}'`
	if got, want := shell(here, "gl "+configurations), shell(here, "cloud "+configurations); got != want || !strings.Contains(got, "desert") {
		t.Errorf("the configurations are\n%swant\n%s", got, want)
	}
	waittest.Until(t, "the placement to be fulfilled", func() bool {
		return strings.Contains(shell(here, "gl describe-game-session-placement --placement-id first"), "FULFILLED")
	})
}
