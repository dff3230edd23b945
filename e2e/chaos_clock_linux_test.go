package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

// wrongClock sets the clock of a node an hour ahead or behind, and makes the node lose and take the leadership. Waits of seconds end, those of minutes do not.
func (x *chaos) wrongClock(victim *clusterNode, r *rand.Rand) error {
	ctx, api := x.t.Context(), x.api
	ahead := time.Hour
	if r.IntN(2) == 0 {
		ahead = -ahead
	}
	x.c.note(fmt.Sprintf("the clock of node %d is %s ahead", victim.no+1, ahead))
	name := fmt.Sprintf("clock-%d", r.Uint64())
	begin := func(queue string, seconds int32) (string, error) {
		id := name + "-" + queue
		_, err := untilAnswered(ctx, func(ctx context.Context) (*gamelift.CreateGameSessionQueueOutput, error) {
			out, err := api[0].CreateGameSessionQueue(ctx, &gamelift.CreateGameSessionQueueInput{Name: &id, TimeoutInSeconds: &seconds})
			if isError[*types.ConflictException](err) { // an attempt without an answer has created it
				err = nil
			}
			return out, err
		})
		if err != nil {
			return "", err
		}
		_, err = untilAnswered(ctx, func(ctx context.Context) (*gamelift.StartGameSessionPlacementOutput, error) {
			return api[0].StartGameSessionPlacement(ctx, &gamelift.StartGameSessionPlacementInput{PlacementId: &id, GameSessionQueueName: &id, MaximumPlayerSessionCount: aws.Int32(2)})
		})
		return id, err
	}
	state := func(id string, at int) (types.GameSessionPlacementState, error) {
		out, err := untilAnswered(ctx, func(ctx context.Context) (*gamelift.DescribeGameSessionPlacementOutput, error) {
			return api[at].DescribeGameSessionPlacement(ctx, &gamelift.DescribeGameSessionPlacementInput{PlacementId: &id})
		})
		if err != nil {
			return "", err
		}
		return out.GameSessionPlacement.Status, nil
	}
	long, err := begin("long", 600)
	if err != nil {
		return err
	}
	if err := victim.setClock(ahead); err != nil {
		return err
	}
	defer func() {
		if err := victim.setClock(0); err != nil {
			x.finding("the clock of node %d is not right again: %v", victim.no+1, err)
		}
	}()
	well := x.c.others(victim)[0] // commands have the clock of this machine, and a node refuses those whose clock is far from its own
	if err := well.seesClock(ahead); err != nil {
		return err
	}
	short, err := begin("short", 10)
	if err != nil {
		return err
	}
	for _, next := range []*clusterNode{well, victim} { // the office moves between clocks that are apart
		x.lead(next, well)
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		at, err := state(short, r.IntN(len(api)))
		if err != nil {
			return err
		}
		if at == types.GameSessionPlacementStateTimedOut {
			break
		}
		if time.Now().After(end) {
			x.finding("with a clock %s ahead a placement with a time-out of 10 s is still %s", ahead, at)
			break
		}
	}
	if at, err := state(long, r.IntN(len(api))); err != nil || at != types.GameSessionPlacementStatePending {
		x.finding("with a clock %s ahead a placement with a time-out of 10 minutes is %s: %v", ahead, at, err)
	}
	return nil
}

// setClock shifts the time of day of the node: 0 makes it right again. A restart does, too.
func (x *clusterNode) setClock(ahead time.Duration) error {
	cmd, _ := x.process()
	return setClock(cmd.Process, ahead)
}

// seesClock waits until the cluster's status shows that a clock is shifted, so that a patch without an effect does not look like a clock that did no harm.
func (x *clusterNode) seesClock(ahead time.Duration) error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		out, err := x.try("cluster", "status", "--json")
		var s struct {
			Members []struct {
				Clock int64 `json:"clock_off"` // against the leader's
			}
		}
		if err != nil || json.Unmarshal([]byte(out), &s) != nil {
			continue
		}
		for _, m := range s.Members {
			if off := (time.Duration(m.Clock) * time.Millisecond).Abs(); off > ahead.Abs()-time.Minute {
				return nil
			}
		}
	}
	return fmt.Errorf("node %d does not show a clock that is %s ahead", x.no+1, ahead)
}
