package sessionapi

import (
	"context"
	"net/http"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/session"
)

type joinSessionRequest struct {
	SessionID  string `json:"sessionId"`
	PlayerID   string `json:"playerId"`
	PlayerData string `json:"playerData"`
}

func (in *joinSessionRequest) check(c *checks) {
	if in.SessionID == "" {
		c.add(missing("sessionId", sessionWanted))
	}
	c.text("sessionId", in.SessionID, 512)
	c.required("playerId", in.PlayerID, playerMax)
	c.text("playerData", in.PlayerData, playerDataMax)
}

// joinSessionAnswer has the address of the game server and the ticket for it. The reservation of the seat lasts 60 s unless it is
// configured otherwise.
type joinSessionAnswer struct {
	Reserved        bool   `json:"reserved"`
	PlayerSessionID string `json:"playerSessionId"`
	IPAddress       string `json:"ipAddress"`
	DNSName         string `json:"dnsName"`
	Port            int    `json:"port"`
}

// joinSession reserves a seat. The script then connects; its node returns true only if the seat is reserved and the player connected.
func (d *Door) joinSession(ctx context.Context, r *request, in *joinSessionRequest) (*joinSessionAnswer, error) {
	id, err := gameSessionID(in.SessionID)
	if err != nil {
		return nil, err
	}
	cmd := hosting.ReservePlayers{Game: id, Players: []hosting.NewPlayer{{ID: domain.PlayerSessionID(newID()), Player: in.PlayerID, Data: in.PlayerData}}, By: r.principal.Maker()}
	if err := d.engine.Do(ctx, &cmd); err != nil {
		return nil, d.ended(ctx, id, err)
	}
	p := &cmd.Reserved[0]
	return &joinSessionAnswer{true, p.ID.String(), p.IPAddress, p.DNSName, int(p.Port)}, nil
}

// reservedEvent gives an asynchronous JoinSession the address to connect to.
const reservedEvent = "OnJoinSessionReserved"

// joinedAnswer completes an asynchronous JoinSession.
type joinedAnswer struct {
	Result          bool   `json:"result"`
	PlayerSessionID string `json:"playerSessionId"`
	Reason          string `json:"reason,omitempty"` // why Result is false
}

// joinAndWait reserves a seat, reports that, and returns when the outcome is known: the game server has accepted the player, the reservation
// has ended, or the script has reported whether it connected.
func (d *Door) joinAndWait(ctx context.Context, r *request, in *joinSessionRequest) (*joinedAnswer, error) {
	reserved, err := d.joinSession(ctx, r, in)
	if err != nil {
		return nil, err
	}
	out := &joinedAnswer{PlayerSessionID: reserved.PlayerSessionID}
	id, _ := playerSessionID(reserved.PlayerSessionID) // our own
	d.calls.tell(r.call, reservedEvent, reserved)
	err = d.news.until(ctx, id, r.call.connected, func() (bool, error) {
		if made := r.call.said(); made != nil {
			if out.Result = *made; !*made {
				out.Reason = "the script could not connect"
			}
			return true, nil
		}
		p, err := d.engine.PlayerSession(ctx, id)
		if err != nil {
			return false, err
		}
		switch p.Status {
		case session.Reserved:
			return false, nil
		case session.PlayerActive:
			out.Result = true
		case session.TimedOut:
			out.Reason = "the reservation was over before the player had connected"
		default:
			out.Reason = "the player session has ended"
		}
		return true, nil
	})
	return out, err
}

type connectedRequest struct {
	OK *bool `json:"ok"`
}

func (in *connectedRequest) check(c *checks) {
	if in.OK == nil {
		c.add(missing("ok", "true or false: whether the connection was made"))
	}
}

// connected is a script's report about the connection for an asynchronous JoinSession.
func (d *Door) connected(_ context.Context, r *request, in *connectedRequest) (*nothing, error) {
	c, problem := d.calls.find(r.principal.ID, r.path)
	if problem != nil {
		return nil, problem
	}
	if c.node.name != joinName {
		return nil, &Problem{status: http.StatusConflict, Name: "Conflict", Message: "call " + c.id + " is one of " + c.node.name + ", not of " + joinName}
	}
	c.say(*in.OK)
	return &nothing{}, nil
}

type leaveSessionRequest struct {
	PlayerSessionID string `json:"playerSessionId"`
}

const playerSessionWanted = "a player session id as JoinSession gives it: psess-…"

func (in *leaveSessionRequest) check(c *checks) {
	if in.PlayerSessionID == "" {
		c.add(missing("playerSessionId", playerSessionWanted))
	}
}

type leaveSessionAnswer struct {
	PlayerSessionID string `json:"playerSessionId"`
	Status          string `json:"status"`
}

// leaveSession frees a reserved seat. The game server frees the seat of a connected player when the player leaves, so in that case the
// node only reports that.
func (d *Door) leaveSession(ctx context.Context, r *request, in *leaveSessionRequest) (*leaveSessionAnswer, error) {
	id, err := playerSessionID(in.PlayerSessionID)
	if err != nil {
		return nil, err
	}
	cmd := hosting.ReleasePlayer{Player: id, By: r.principal.Maker()}
	err = d.engine.Do(ctx, &cmd)
	p := cmd.Released
	if domain.IsRefused(err, domain.WrongPlayerState, domain.NotFound) { // connected, or gone long ago
		p, err = d.engine.PlayerSession(ctx, id)
		if err == nil && !r.principal.Maker().MayTouch(p.Maker) {
			err = domain.Refuse(domain.NotFound, "player session %s not found", excerpt.Short(in.PlayerSessionID))
		}
	}
	if err != nil {
		return nil, err
	}
	return &leaveSessionAnswer{in.PlayerSessionID, p.Status.String()}, nil
}

func playerSessionID(text string) (domain.PlayerSessionID, error) {
	id, err := domain.ParseID[domain.PlayerSessionID](text)
	if err != nil {
		return id, invalid("playerSessionId", text, playerSessionWanted)
	}
	return id, nil
}
