package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

// whereIsMyFriend lets PlayerTwo join and looks them up by name only, while they are connected.
func (d *Demo) whereIsMyFriend(ctx context.Context) error {
	out, err := d.api.CreatePlayerSession(ctx, &gamelift.CreatePlayerSessionInput{GameSessionId: d.session.GameSessionId, PlayerId: aws.String("PlayerTwo")})
	if err != nil {
		return fmt.Errorf("create-player-session: %w", err)
	}
	p := out.PlayerSession
	client := d.clientCommand(ctx, "-address", address(p.IpAddress, p.Port),
		"-player-session", *p.PlayerSessionId, "-name", "PlayerTwo", "-script", "west; say where is everybody?; wait joined PlayerThree; leave")
	stdout, err := client.StdoutPipe()
	if err != nil {
		return err
	}
	client.Stderr = os.Stderr
	if err := client.Start(); err != nil {
		return fmt.Errorf("start a player: %w", err)
	}
	lines := bufio.NewReader(stdout)
	if _, err := lines.ReadString('\n'); err != nil { // the welcome: the server has accepted the player
		return errors.Join(fmt.Errorf("player PlayerTwo was not let in: %w", err), client.Wait())
	}
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		_ = client.Wait() // the player session shows how it ended
	}()
	friend, err := d.api.DescribePlayerSessions(ctx, &gamelift.DescribePlayerSessionsInput{PlayerId: aws.String("PlayerTwo")})
	if err != nil {
		return fmt.Errorf("describe-player-sessions: %w", err)
	}
	// After an earlier demo, the service also has earlier player sessions of this name.
	at := slices.IndexFunc(friend.PlayerSessions, func(x types.PlayerSession) bool { return *x.PlayerSessionId == *p.PlayerSessionId })
	if at < 0 {
		return fmt.Errorf("describe-player-sessions: %d player sessions, none is %s", len(friend.PlayerSessions), *p.PlayerSessionId)
	}
	found := friend.PlayerSessions[at]
	d.show("aws gamelift describe-player-sessions --player-id PlayerTwo", "where is my friend? %s, in %s at %s",
		found.Status, *found.GameSessionId, address(found.IpAddress, found.Port))
	return expect("player session", found.Status, types.PlayerSessionStatusActive)
}

func (d *Demo) secondPlayer(ctx context.Context) error {
	_, err := d.join(ctx, "PlayerThree", "say found you; wait said PlayerThree; leave")
	return err
}

// describeGameSession waits until all players have left again.
func (d *Demo) describeGameSession(ctx context.Context) error {
	err := d.until(ctx, "all players have left", func() (bool, error) {
		out, err := d.api.DescribeGameSessions(ctx, &gamelift.DescribeGameSessionsInput{GameSessionId: d.session.GameSessionId})
		return err == nil && len(out.GameSessions) == 1 && aws.ToInt32(out.GameSessions[0].CurrentPlayerSessionCount) == 0, err
	})
	if err != nil {
		return err
	}
	return d.awaitStatus(ctx, types.GameSessionStatusActive)
}

// Finish ends the game session through the API.
func (d *Demo) Finish(ctx context.Context) error {
	out, err := d.api.TerminateGameSession(ctx, &gamelift.TerminateGameSessionInput{
		GameSessionId: d.session.GameSessionId, TerminationMode: types.TerminationModeTriggerOnProcessTerminate,
	})
	if err != nil {
		return fmt.Errorf("terminate-game-session: %w", err)
	}
	d.show("aws gamelift terminate-game-session --game-session-id ARN --termination-mode TRIGGER_ON_PROCESS_TERMINATE", "%s", out.GameSession.Status)
	return d.awaitStatus(ctx, types.GameSessionStatusTerminated)
}

// GoOn prints what a person can type next.
func (d *Demo) GoOn() {
	fmt.Fprintf(d.config.Out, `
The game session is ACTIVE and the service stays up until Ctrl-C. Look at it in a browser: %[1]s/console
Or go on by hand, for example:

  export AWS_ACCESS_KEY_ID=demo AWS_SECRET_ACCESS_KEY=demo
  alias gl='aws --endpoint-url %[1]s --region %[2]s gamelift'
  gl describe-game-sessions --fleet-id %[3]s
  gl create-player-session --game-session-id %[4]s --player-id Ann
  %[5]s -address %[6]s:%[7]d -player-session PSESS -name Ann
  gl describe-player-sessions --player-id Ann
  gl list-fleets; gl describe-fleet-events --fleet-id %[3]s
  %[8]s hosts --server %[1]s
  %[8]s logs %[4]s --server %[1]s
`, d.config.Endpoint, region, d.fleet, *d.session.GameSessionId, strings.Join(d.config.GameClient, " "), *d.session.IpAddress, *d.session.Port, os.Args[0])
}

// until waits until a condition holds.
func (d *Demo) until(ctx context.Context, what string, holds func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		ok, err := holds()
		if ok {
			return nil
		}
		if err != nil {
			return fmt.Errorf("waiting until %s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// ignore drops an error that only means "not yet".
func ignore(err error, notYet bool) error {
	if notYet {
		return nil
	}
	return err
}

func expect[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("the %s is %v, want %v", what, got, want)
	}
	return nil
}
