package e2e

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/internal/waittest"
)

// flowClient starts the example client as a player who logs in, without any AWS configuration.
func (s *service) flowClient(t *testing.T, name, script string, flags ...string) *program {
	t.Helper()
	cmd := exec.Command(arenaClientBinary, append([]string{"-flow", s.url(), "-name", name, "-script", script, "-timeout", patience.String()}, flags...)...)
	cmd.Env = cleanEnvironment()
	return run(t, cmd)
}

// matchOf makes a matchmaking configuration for one team of n players.
func (p *place) matchOf(name, players string) {
	p.t.Helper()
	rules := `{"ruleLanguageVersion":"1.0","teams":[{"name":"all","minPlayers":` + players + `,"maxPlayers":` + players + `}]}`
	_, err := p.api().CreateMatchmakingRuleSet(p.t.Context(), &gamelift.CreateMatchmakingRuleSetInput{Name: &name, RuleSetBody: &rules})
	must(p.t, err)
	_, err = p.api().CreateMatchmakingConfiguration(p.t.Context(), &gamelift.CreateMatchmakingConfigurationInput{
		Name: &name, RuleSetName: &name, AcceptanceRequired: aws.Bool(true), AcceptanceTimeoutSeconds: aws.Int32(60), RequestTimeoutSeconds: aws.Int32(600),
		GameSessionQueueArns: []string{"arn:aws:gamelift:us-east-1::gamesessionqueue/" + name},
	})
	must(p.t, err)
}

// regexpUntil waits for a line.
func regexpUntil(p *program, pattern string) {
	p.t.Helper()
	line := regexp.MustCompile(pattern)
	waittest.Until(p.t, "a line "+pattern, func() bool { return line.MatchString(p.logs.String()) })
}

// Four terminals: a party, a search that all accept, a game. One client is killed, is started again, and returns to the
// running game with its coin. The game server is the example's, without code for player flow.
func TestKilledClientComesBackIntoTheGame(t *testing.T) {
	t.Parallel()
	s := startService(t, "--player-flow")
	p := s.prepare()
	p.queue("four")
	p.matchOf("four", "4")
	p.untilFree(p.startArena().program)

	const stays = "wait left Bob; wait joined Bob; wait said Bob; leave"
	ann := s.flowClient(t, "Ann", stays, "-match", "four", "-party", "4")
	_, code, _ := strings.Cut(strings.TrimSpace(ann.until("party ")), "party ")
	bob := s.flowClient(t, "Bob", "coin; wait joined Nobody", "-code", code)
	friends := []*program{ann, s.flowClient(t, "Cyd", stays, "-code", code), s.flowClient(t, "Dan", stays, "-code", code)}
	for _, client := range append(friends, bob) {
		client.until("searching in four")
		client.until("match found")
		client.until("welcome ")
	}
	regexpUntil(bob, `moved Bob at=\d+,\d+ coins=1 `) // the others see it or come later
	bob.kill()
	for _, client := range friends {
		client.until("left Bob")
	}
	back := s.flowClient(t, "Bob", "say back again; wait said Bob; leave")
	back.until("returning to gi-")
	back.until("welcome Bob 16x8 players=4 coins=1")
	for _, client := range friends {
		regexpUntil(client, `joined Bob at=\d+,\d+ coins=1 `)
	}
	back.endsWell()
	for _, client := range friends {
		client.endsWell()
	}
	s.noViolations(t)
}
