package gameclient

import (
	"context"
	"errors"
	"testing"
	"time"
)

// An answer without a player session is not a seat.
func TestAnswerWithoutSeat(t *testing.T) {
	c := newCloud(t)
	c.answer("CreatePlayerSession", members{})
	if seat, err := c.client(nil).Reserve(t.Context(), JoinSessionRequest{SessionID: testGame, PlayerID: "ann"}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("got %+v, %v", seat, err)
	}
}

// An answer without a placement ends the wait instead of the pauses between polls.
func TestAnswerWithoutPlacement(t *testing.T) {
	c := newCloud(t)
	c.answer("StartGameSessionPlacement", members{})
	c.answer("DescribeGameSessionPlacement", members{})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for name, wait := range map[string]func() (Placement, error){
		"AwaitPlacement": func() (Placement, error) { return c.client(nil).AwaitPlacement(ctx, "p-1") },
		"CreateSessionOnQueue": func() (Placement, error) {
			return c.client(nil).CreateSessionOnQueue(ctx, CreateSessionOnQueueRequest{Queue: "q", PlacementID: "p-1", MaxPlayers: 2})
		},
	} {
		_, err := wait()
		pending, ok := errors.AsType[*PlacementError](err)
		if !ok || pending.PlacementID != "p-1" || pending.Status != PlacementPending || !errors.Is(err, ErrUnavailable) || ctx.Err() != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.asked); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}
