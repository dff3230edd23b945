package operators

import (
	"context"
	"os"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/playerapi/problem"
)

// DrainRequest sends players' clients away, or lets them come again.
type DrainRequest struct {
	Why
	Node             string `json:"node,omitempty" maxLength:"255" doc:"The machine that is meant; absent: the one that answers."`
	Drain            *bool  `json:"drain,omitempty" doc:"false lets clients come again; absent: true."`
	ReconnectAfterMS int64  `json:"reconnect_after_ms,omitempty" minimum:"0" maximum:"86400000" doc:"When clients are told to come again; 0: ten seconds. They spread it by themselves."`
	HoldMS           int64  `json:"hold_ms,omitempty" minimum:"0" maximum:"86400000" doc:"How long players who cannot come back keep all that they have; 0: an hour."`
}

// DrainAnswer is how it stands.
type DrainAnswer struct {
	Node     string `json:"node"`
	Draining bool   `json:"draining"`
	Closed   int    `json:"streams_closed"`
}

// AnnounceMaintenanceRequest tells players that the service will be down.
type AnnounceMaintenanceRequest struct {
	Why
	StartsAt string `json:"starts_at" format:"date-time"`
	Message  string `json:"message" maxLength:"1024" doc:"For players."`
}

// AnnounceMaintenanceAnswer is how many players were told.
type AnnounceMaintenanceAnswer struct {
	PlayersTold int `json:"players_told"`
}

const (
	defaultAway = 10 * time.Second
	defaultHold = time.Hour
	// announceStep is how many players are told in one transaction.
	announceStep = 256
)

func (d *door) declareDrain() {
	operatorCall(d, "Operator.Drain", "Sends players' clients away before work on this machine, or lets them come again. No player loses a key.", d.drain)
	operatorCall(d, "Operator.AnnounceMaintenance", "Tells all players who are online that the service will be down.", d.announceMaintenance)
}

func (d *door) drain(ctx context.Context, body *DrainRequest) (*DrainAnswer, error) {
	node, err := os.Hostname()
	if err != nil {
		node = "localhost"
	}
	if body.Node != "" && body.Node != node {
		return nil, problem.New(flow.InvalidArgument, "node %q: want %q, the only one there is", body.Node, node)
	}
	if body.Drain != nil && !*body.Drain {
		return &DrainAnswer{Node: node}, d.Streams.Readmit(ctx)
	}
	after, hold := defaultAway, defaultHold
	if body.ReconnectAfterMS > 0 {
		after = time.Duration(body.ReconnectAfterMS) * time.Millisecond
	}
	if body.HoldMS > 0 {
		hold = time.Duration(body.HoldMS) * time.Millisecond
	}
	closed, err := d.Streams.SendAway(ctx, after, hold)
	if err != nil {
		return nil, err
	}
	return &DrainAnswer{Node: node, Draining: true, Closed: closed}, nil
}

func (d *door) announceMaintenance(ctx context.Context, body *AnnounceMaintenanceRequest) (*AnnounceMaintenanceAnswer, error) {
	at, err := time.Parse(time.RFC3339, body.StartsAt)
	if err != nil {
		return nil, problem.New(flow.InvalidArgument, "starts_at: %.40q, want a time such as 2030-01-02T03:04:05Z", body.StartsAt)
	}
	answer := &AnnounceMaintenanceAnswer{}
	cmd := playerflow.AnnounceMaintenance{StartsAt: domain.TimeOf(at), Text: body.Message, Limit: announceStep}
	// An operator whose connection breaks has told all players, or the service has gone.
	ctx = context.WithoutCancel(ctx)
	for {
		if err := d.State.Do(ctx, &cmd); err != nil {
			return nil, err
		}
		answer.PlayersTold += cmd.Told
		if cmd.Next == 0 {
			return answer, nil
		}
		cmd.After = cmd.Next
	}
}
