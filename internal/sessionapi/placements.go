package sessionapi

import (
	"cmp"
	"context"
	"fmt"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/identity"
)

// listMax bounds the players and latencies of a placement.
const listMax = 10_000

type createOnQueueRequest struct {
	QueueName         string            `json:"queueName"`
	PlacementID       string            `json:"placementId"` // generated if empty
	CreatorID         string            `json:"creatorId"`   // ignored: placements have no creator, but every create request has this field
	SessionName       string            `json:"sessionName"`
	SessionProperties map[string]string `json:"sessionProperties"`
	SessionData       string            `json:"sessionData"`
	MaxPlayer         *int32            `json:"maxPlayer"`
	Players           []placedPlayer    `json:"players"`
	Latencies         []playerLatency   `json:"latencies"`
	Wait              *bool             `json:"wait"` // answer when the placement has ended; missing: only asynchronously

	properties []session.Property
}

type placedPlayer struct {
	PlayerID        string `json:"playerId"`
	PlayerData      string `json:"playerData,omitempty"`
	PlayerSessionID string `json:"playerSessionId,omitempty"` // only in the answer
}

type playerLatency struct {
	PlayerID     string  `json:"playerId"`
	Location     string  `json:"location"`
	Milliseconds float32 `json:"milliseconds"`
}

func (in *createOnQueueRequest) check(c *checks) {
	const queueWanted = "the name or the ARN of a queue"
	if in.QueueName == "" {
		c.add(missing("queueName", queueWanted))
	}
	c.form("queueName", in.QueueName, queueForm, queueWanted)
	c.form("placementId", in.PlacementID, idForm, idWanted)
	c.text("sessionName", in.SessionName, textMax)
	in.properties = c.properties("sessionProperties", in.SessionProperties)
	c.text("sessionData", in.SessionData, dataMax)
	c.maxPlayer(in.MaxPlayer)
	if n := len(in.Players); n > listMax {
		c.add(invalid("players", fmt.Sprintf("%d players", n), fmt.Sprintf("at most %d", listMax)))
	}
	for i, p := range in.Players {
		field := fmt.Sprintf("players[%d].", i)
		c.required(field+"playerId", p.PlayerID, playerMax)
		c.text(field+"playerData", p.PlayerData, playerDataMax)
		if p.PlayerSessionID != "" {
			c.add(invalid(field+"playerSessionId", p.PlayerSessionID, "nothing: the placement makes it"))
		}
	}
	for i, l := range in.Latencies {
		field := fmt.Sprintf("latencies[%d].", i)
		c.required(field+"playerId", l.PlayerID, playerMax)
		c.required(field+"location", l.Location, textMax)
		if !(l.Milliseconds >= 0) {
			c.add(invalid(field+"milliseconds", l.Milliseconds, "0 or more"))
		}
	}
}

type createOnQueueAnswer struct {
	Result    string          `json:"result"` // the placement id
	Placement placementAnswer `json:"placement"`
}

// placementAnswer is a placement for scripts. It contains the game session's address once it is FULFILLED.
type placementAnswer struct {
	PlacementID string         `json:"placementId"`
	QueueName   string         `json:"queueName"`
	Status      string         `json:"status"` // PENDING, FULFILLED, CANCELLED, TIMED_OUT or FAILED
	StartTime   int64          `json:"startTime"`
	EndTime     int64          `json:"endTime"`
	SessionID   string         `json:"sessionId"`
	IPAddress   string         `json:"ipAddress"`
	DNSName     string         `json:"dnsName"`
	Port        int            `json:"port"`
	Players     []placedPlayer `json:"players"`
}

func placementOf(p *placement.Placement) placementAnswer {
	a := placementAnswer{
		PlacementID: p.ID, QueueName: p.Queue, Status: p.Status.String(), StartTime: int64(p.Start), EndTime: int64(p.End),
		Players: []placedPlayer{},
	}
	fulfilled := p.Status == placement.Fulfilled
	if fulfilled {
		a.SessionID = session.ID(p.Game).ARN(p.GameRegion)
		a.IPAddress, a.DNSName, a.Port = p.IPAddress, p.DNSName, int(p.Port)
	}
	for _, x := range p.Players {
		placed := placedPlayer{PlayerID: x.Player}
		if fulfilled {
			placed.PlayerSessionID = x.ID.String()
		}
		a.Players = append(a.Players, placed)
	}
	return a
}

// createOnQueueNode is CreateSessionOnQueue. A synchronous call starts a placement and answers at once. An asynchronous one completes when the
// placement ends, because a script cannot use a pending placement.
func createOnQueueNode() *node {
	n := waiting(serve("CreateSessionOnQueue", "OnCreateSessionAsyncComplete", identity.MayPlay, (*Door).createSessionOnQueue))
	n.begin = func(d *Door, ctx context.Context, r *request, in any) (any, error) {
		if x := in.(*createOnQueueRequest); x.Wait == nil {
			x.Wait = new(true)
		}
		return d.createSessionOnQueue(ctx, r, in.(*createOnQueueRequest))
	}
	return n
}

// startedEvent gives an asynchronous CreateSessionOnQueue the id of its placement.
const startedEvent = "OnCreateSessionOnQueueStarted"

// createSessionOnQueue starts a placement. Like the script interface's own node, it answers with the placement's id; with
// wait it answers when the placement has ended.
func (d *Door) createSessionOnQueue(ctx context.Context, r *request, in *createOnQueueRequest) (*createOnQueueAnswer, error) {
	if most := d.engine.CellConfig().Hosting.PlayersInGameMax; *in.MaxPlayer > most {
		return nil, invalid("maxPlayer", *in.MaxPlayer, fmt.Sprintf("at most %d", most))
	}
	if n := len(in.Players); n > int(*in.MaxPlayer) {
		return nil, invalid("players", fmt.Sprintf("%d players", n), fmt.Sprintf("at most maxPlayer, which is %d", *in.MaxPlayer))
	}
	p := placement.Placement{
		ID: in.PlacementID, Queue: lastPart(in.QueueName), PlayersMax: *in.MaxPlayer, Name: in.SessionName, Data: in.SessionData,
		Properties: in.properties, Maker: r.principal.Maker(),
	}
	p.ID = cmp.Or(p.ID, newID().String())
	for _, x := range in.Players {
		p.Players = append(p.Players, placement.Player{Player: x.PlayerID, Data: x.PlayerData, ID: domain.PlayerSessionID(newID())})
	}
	for _, l := range in.Latencies {
		p.Latencies = append(p.Latencies, placement.Latency{Player: l.PlayerID, Location: l.Location, Milliseconds: l.Milliseconds})
	}
	cmd := hosting.StartPlacement{Placement: p}
	if err := d.engine.Do(ctx, &cmd); err != nil {
		return nil, err
	}
	if in.Wait != nil && *in.Wait {
		if r.call != nil {
			d.calls.tell(r.call, startedEvent, &createOnQueueAnswer{p.ID, placementOf(&cmd.Placement)})
		}
		err := d.news.until(ctx, p.ID, nil, func() (done bool, err error) {
			cmd.Placement, err = d.engine.Placement(ctx, p.ID)
			return cmd.Placement.Status != placement.Pending, err
		})
		if err != nil {
			return nil, err
		}
	}
	return &createOnQueueAnswer{p.ID, placementOf(&cmd.Placement)}, nil
}

// describePlacement returns a placement to scripts that poll.
func (d *Door) describePlacement(ctx context.Context, r *request, _ *nothing) (*placementAnswer, error) {
	p, err := d.engine.Placement(ctx, r.path)
	if err == nil && !r.principal.Maker().MayTouch(p.Maker) {
		err = domain.Refuse(domain.NotFound, "placement %s not found", excerpt.Short(r.path))
	}
	if err != nil {
		return nil, err
	}
	a := placementOf(&p)
	return &a, nil
}
