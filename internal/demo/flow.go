package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

// friendsRules matches one party of two.
const friendsRules = `{"ruleLanguageVersion":"1.0","teams":[{"name":"friends","minPlayers":2,"maxPlayers":2}]}`

// friends plays two friends who log in, search together and play. The client of one is killed, and returns to the running game.
func (d *Demo) friends(ctx context.Context) error {
	name := "friends-" + strings.TrimPrefix(d.fleet, "fleet-")[:8] // an earlier demo on this service used other names
	if err := d.createMatchmaking(ctx, name); err != nil {
		return err
	}
	if err := d.secondServer(ctx); err != nil {
		return err
	}
	playing, stop := context.WithTimeout(ctx, patience)
	defer stop() // ends the players' programs
	if err := d.crashAndReturn(playing, name); err != nil {
		return err
	}
	return d.serverReplaced(ctx)
}

func (d *Demo) createMatchmaking(ctx context.Context, name string) error {
	if _, err := d.api.CreateGameSessionQueue(ctx, &gamelift.CreateGameSessionQueueInput{
		Name: &name, Destinations: []types.GameSessionQueueDestination{{DestinationArn: d.session.FleetArn}},
	}); err != nil {
		return fmt.Errorf("create-game-session-queue: %w", err)
	}
	if _, err := d.api.CreateMatchmakingRuleSet(ctx, &gamelift.CreateMatchmakingRuleSetInput{Name: &name, RuleSetBody: aws.String(friendsRules)}); err != nil {
		return fmt.Errorf("create-matchmaking-rule-set: %w", err)
	}
	out, err := d.api.CreateMatchmakingConfiguration(ctx, &gamelift.CreateMatchmakingConfigurationInput{
		Name: &name, RuleSetName: &name, AcceptanceRequired: aws.Bool(false), RequestTimeoutSeconds: aws.Int32(60),
		GameSessionQueueArns: []string{"arn:aws:gamelift:" + region + "::gamesessionqueue/" + name},
	})
	if err != nil {
		return fmt.Errorf("create-matchmaking-configuration: %w", err)
	}
	d.show("aws gamelift create-game-session-queue …, create-matchmaking-rule-set …, create-matchmaking-configuration …",
		"%s: parties of two", *out.Configuration.Name)
	return nil
}

func (d *Demo) crashAndReturn(ctx context.Context, match string) error {
	ann, err := d.terminal(ctx, "Ann", "wait left Bob; wait joined Bob; say welcome back; leave", "-match", match, "-party", "2")
	if err != nil {
		return err
	}
	line, err := ann.until("party ")
	if err != nil {
		return err
	}
	code := strings.TrimPrefix(line, "party ")
	d.show("arena-client -flow "+d.config.Endpoint+" -name Ann -match "+match+" -party 2", "%s", line)
	bob, err := d.terminal(ctx, "Bob", "wait over", "-code", code)
	if err != nil {
		return err
	}
	for _, player := range []*terminal{bob, ann} {
		if _, err := player.until("welcome "); err != nil {
			return err
		}
	}
	d.show("arena-client -flow "+d.config.Endpoint+" -name Bob -code "+code, "%s", strings.Join(bob.seen, "\n      "))

	_ = bob.cmd.Process.Kill() // the other player's output shows the effect
	_ = bob.cmd.Wait()
	if line, err = ann.until("left Bob"); err != nil {
		return err
	}
	d.show("kill -9 BOB", "Ann sees: %s", line)
	again, err := d.terminal(ctx, "Bob", "wait said Ann; leave")
	if err != nil {
		return err
	}
	if err := again.end(); err != nil {
		return err
	}
	if len(again.seen) == 0 || !strings.HasPrefix(again.seen[0], "returning to ") {
		return fmt.Errorf("player Bob did not return to the game: %q", again.seen)
	}
	d.show("arena-client -flow "+d.config.Endpoint+" -name Bob", "%s", strings.Join(again.seen, "\n      "))
	return ann.end()
}

// terminal is a player's program.
type terminal struct {
	name  string
	cmd   *exec.Cmd
	lines *bufio.Scanner
	seen  []string
}

func (d *Demo) terminal(ctx context.Context, name, script string, flags ...string) (*terminal, error) {
	t := &terminal{name: name}
	t.cmd = d.clientCommand(ctx, append([]string{"-flow", d.config.Endpoint, "-name", name, "-script", script}, flags...)...)
	t.cmd.Stderr = os.Stderr
	out, err := t.cmd.StdoutPipe()
	if err == nil {
		err = t.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start player %s: %w", name, err)
	}
	t.lines = bufio.NewScanner(out)
	return t, nil
}

// until reads up to a line with a prefix.
func (t *terminal) until(prefix string) (string, error) {
	for t.lines.Scan() {
		t.seen = append(t.seen, t.lines.Text())
		if strings.HasPrefix(t.lines.Text(), prefix) {
			return t.lines.Text(), nil
		}
	}
	return "", errors.Join(fmt.Errorf("player %s ended before %q", t.name, prefix), t.cmd.Wait())
}

// end reads the rest of the output.
func (t *terminal) end() error {
	for t.lines.Scan() {
		t.seen = append(t.seen, t.lines.Text())
	}
	if err := errors.Join(t.lines.Err(), t.cmd.Wait()); err != nil {
		return fmt.Errorf("player %s: %w", t.name, err)
	}
	return nil
}
