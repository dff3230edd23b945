package operators

import (
	"context"
	"os"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain"
	domainaudit "github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/playerapi/problem"
)

// DrainRequest drains players' clients, or admits them again.
type DrainRequest struct {
	Why
	Node             string `json:"node,omitempty" maxLength:"255" doc:"The machine; absent: the one that answers."`
	Drain            *bool  `json:"drain,omitempty" doc:"false admits clients again; absent: true."`
	ReconnectAfterMS int64  `json:"reconnect_after_ms,omitempty" minimum:"0" maximum:"86400000" doc:"When clients should try again; 0: ten seconds. They add a random delay by themselves."`
	HoldMS           int64  `json:"hold_ms,omitempty" minimum:"0" maximum:"86400000" doc:"How long players who cannot come back keep their parties, searches and games; 0: an hour."`
}

// DrainAnswer is the state of the drain.
type DrainAnswer struct {
	Node     string `json:"node"`
	Draining bool   `json:"draining"`
	Closed   int    `json:"streams_closed"`
}

// AnnounceMaintenanceRequest announces downtime to players.
type AnnounceMaintenanceRequest struct {
	Why
	StartsAt string `json:"starts_at" format:"date-time"`
	Message  string `json:"message" maxLength:"1024" doc:"For players."`
}

// AnnounceMaintenanceAnswer has the number of players who got the announcement.
type AnnounceMaintenanceAnswer struct {
	PlayersTold int `json:"players_told"`
}

const (
	defaultAway = 10 * time.Second
	defaultHold = time.Hour
	// announceStep is the maximum number of players in one transaction.
	announceStep = 256
)

func (d *door) declareDrain() {
	operatorCall(d, "Operator.Drain", "Drains players' clients before maintenance of this machine, or admits them again. No player loses a key.", d.drain)
	operatorCall(d, "Operator.AnnounceMaintenance", "Announces downtime of the service to all online players.", d.announceMaintenance)
}

func (d *door) drain(ctx context.Context, body *DrainRequest) (*DrainAnswer, error) {
	node, err := os.Hostname()
	if err != nil {
		node = "localhost"
	}
	if body.Node != "" && body.Node != node {
		return nil, problem.Invalid("node", "%q, want %q, the node that answers", body.Node, node)
	}
	if body.Drain != nil && !*body.Drain {
		err := d.Streams.Readmit(audit.Without(ctx))
		if err == nil {
			d.recordDrain(ctx, node, "true", "")
		}
		return &DrainAnswer{Node: node}, err
	}
	after, hold := defaultAway, defaultHold
	if body.ReconnectAfterMS > 0 {
		after = time.Duration(body.ReconnectAfterMS) * time.Millisecond
	}
	if body.HoldMS > 0 {
		hold = time.Duration(body.HoldMS) * time.Millisecond
	}
	closed, err := d.Streams.SendAway(audit.Without(ctx), after, hold)
	if err != nil {
		return nil, err
	}
	d.recordDrain(ctx, node, "", "true")
	return &DrainAnswer{Node: node, Draining: true, Closed: closed}, nil
}

func (d *door) recordDrain(ctx context.Context, node, before, after string) {
	d.Audit.Record(ctx, "node", node, domainaudit.Change{Field: "Draining", Before: before, After: after})
}

func (d *door) announceMaintenance(ctx context.Context, body *AnnounceMaintenanceRequest) (*AnnounceMaintenanceAnswer, error) {
	at, err := time.Parse(time.RFC3339, body.StartsAt)
	if err != nil {
		return nil, problem.Invalid("starts_at", "%.40q, want a time such as 2030-01-02T03:04:05Z", body.StartsAt)
	}
	answer := &AnnounceMaintenanceAnswer{}
	cmd := playerflow.AnnounceMaintenance{StartsAt: domain.TimeOf(at), Text: body.Message, Limit: announceStep}
	// If the operator's connection breaks, the announcement still goes to all players, unless the service stops.
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
		ctx = audit.Without(ctx) // one entry stands for all
	}
}
