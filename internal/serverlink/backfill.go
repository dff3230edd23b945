package serverlink

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/frames"
	"github.com/musterhq/muster/internal/jsonbody"
)

// Backfill: a game server requests more players, and receives the result. docs/spec/server-sdk.md#backfill.

// backfillPlayer is a player in the form that SDKs send. encoding/json matches names case-insensitively, which is needed because SDKs
// spell them differently.
type backfillPlayer struct {
	PlayerID         string                       `json:"PlayerId"`
	Team             string                       `json:"Team"`
	PlayerAttributes map[string]backfillAttribute `json:"PlayerAttributes"`
	LatencyInMs      map[string]int32             `json:"LatencyInMs"`
}

type backfillAttribute struct {
	AttrType string
	S        string
	N        float64
	SL       []string
	SDM      map[string]float64
}

// Bounds of what a game server may send, in characters. Source: the API model.
const (
	backfillTextMax = 1024
	ticketIDMax     = 128
)

// startBackfill requests more players from the core. If the caller gives no ticket id, it is derived from the request's id, so that a
// repeat finds the ticket.
func (l *link) startBackfill(ctx context.Context, r *request) (ticket string, err error) {
	players, err := r.backfillPlayers()
	if err != nil {
		return "", err
	}
	key := l.process.key
	cmd := matchmaking.StartMatchBackfill{
		Configuration: lastPart(r.configuration), ID: r.ticket, Chosen: true, Players: players, Game: string(gameID(r.game)), Server: &key,
	}
	if cmd.ID == "" {
		cmd.ID = uuid.NewSHA1(uuid.NameSpaceOID, []byte(strings.Join([]string{key.Fleet, key.Compute, key.Process, r.id}, "\x00"))).String()
	} else if problem := ticketIDProblem(cmd.ID); problem != "" {
		return "", domain.Refuse(domain.Invalid, "TicketId: %s", problem)
	}
	err = l.process.server.engine.Do(ctx, &cmd)
	return cmd.ID, err
}

func lastPart(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }

func ticketIDProblem(id string) string {
	if len(id) > ticketIDMax {
		return "has " + strconv.Itoa(len(id)) + " characters, at most 128 are allowed"
	}
	for _, c := range id {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.') {
			return "may have letters, digits, '-' and '.' only"
		}
	}
	return ""
}

func (r *request) backfillPlayers() ([]matchmaking.Player, error) {
	var sent []backfillPlayer
	if len(r.players) > 0 {
		if err := jsonbody.Decode(r.players, &sent); err != nil {
			if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
				return nil, domain.Refuse(domain.Invalid, "Players: %s is a %s, want a %s", wrong.Field, excerpt.Short(wrong.Value), wrong.Type)
			}
			return nil, domain.Refuse(domain.Invalid, "Players: not a list of players")
		}
	}
	players := make([]matchmaking.Player, len(sent))
	for i := range sent {
		x, p := &sent[i], &players[i]
		if n := utf8.RuneCountInString(x.PlayerID); n < 1 || n > backfillTextMax {
			return nil, domain.Refuse(domain.Invalid, "Players[%d].PlayerId: %d characters; want 1 to %d", i, n, backfillTextMax)
		}
		if n := len(x.PlayerAttributes); n > ruleset.AttributesMax {
			return nil, domain.Refuse(domain.Invalid, "Players[%d].PlayerAttributes: %d attributes; at most %d are allowed", i, n, ruleset.AttributesMax)
		}
		p.ID, p.Team = x.PlayerID, x.Team
		for _, name := range slices.Sorted(maps.Keys(x.PlayerAttributes)) {
			v, problem := x.PlayerAttributes[name].value()
			if problem != "" {
				return nil, domain.Refuse(domain.Invalid, "Players[%d].PlayerAttributes[%.100s]: %s", i, name, problem)
			}
			if v.Kind != ruleset.None {
				p.Attributes = append(p.Attributes, ruleset.NamedValue{Name: name, Value: v})
			}
		}
		for _, region := range slices.Sorted(maps.Keys(x.LatencyInMs)) {
			p.Latencies = append(p.Latencies, matchmaking.Latency{Region: region, Milliseconds: x.LatencyInMs[region]})
		}
	}
	return players, nil
}

// value reads an attribute by its type: C# sends values of all types, of which only one is meaningful.
func (a backfillAttribute) value() (v ruleset.Value, problem string) {
	switch a.AttrType {
	case "", "NONE":
	case "STRING":
		v = ruleset.Value{Kind: ruleset.String, Text: a.S}
	case "DOUBLE":
		v = ruleset.Value{Kind: ruleset.Number, Number: a.N}
	case "STRING_LIST":
		v = ruleset.ListOf(a.SL)
	case "STRING_DOUBLE_MAP":
		v = ruleset.MapOf(a.SDM)
	default:
		return v, "AttrType is not one of STRING, DOUBLE, STRING_LIST, STRING_DOUBLE_MAP"
	}
	longKey := func(e ruleset.Entry) bool { return ruleset.TooLong(e.Key) }
	switch {
	case ruleset.TooLong(v.Text) || slices.ContainsFunc(v.List, ruleset.TooLong) || slices.ContainsFunc(v.Map, longKey):
		return v, "a text has more than 100 characters"
	case len(v.List) > ruleset.ListMax:
		return v, "more than 100 strings"
	case len(v.Map) > ruleset.PairsMax:
		return v, "more than 10 pairs"
	}
	return v, ""
}

// stopBackfill cancels a backfill. It succeeds if the backfill has already ended, even if only the archive has it.
func (l *link) stopBackfill(ctx context.Context, r *request) error {
	key := l.process.key
	err := l.process.server.engine.Do(ctx, &matchmaking.StopMatchmaking{ID: r.ticket, Server: &key})
	if !domain.IsRefused(err, domain.NotFound) {
		return err
	}
	old, lookErr := l.process.server.engine.Ticket(ctx, r.ticket)
	if lookErr == nil && old.Backfill && !old.Status.Active() {
		return nil
	}
	return err
}

func appendTicket(b []byte, r *request, ticket string) []byte {
	return append(appendMember(appendAnswer(b, r, 200), `,"TicketId":`, ticket), '}')
}

// hostedChanged sends the result of a backfill to the game session's process, if the process is connected to this node.
func (s *Server) hostedChanged(e *matchmaking.HostedChanged) {
	h := e.Hosted
	if h.Updates <= h.Told {
		return
	}
	var g session.GameSession
	err := s.engine.ReadHere(s.ctx, func(v *cell.View) error { g, _ = v.GameSession(session.ID(h.Game)); return nil })
	if err != nil || !g.Live() {
		return // it has ended, or the engine has stopped
	}
	key := fleet.Key{Fleet: g.FleetID, Compute: g.ComputeName, Process: g.ProcessID}
	s.task(key, func(l *link) { l.pushUpdate(&h) })
}

// pushUpdate pushes an update that the process has not received yet. The update is recorded after it was sent: at worst the process
// receives it twice, which is harmless.
func (l *link) pushUpdate(h *matchmaking.Hosted) {
	p := l.process
	s := p.server
	var now matchmaking.Hosted
	var g session.GameSession
	err := s.engine.ReadHere(s.ctx, func(v *cell.View) error {
		now, _ = v.Hosted(session.ID(h.Game))
		g, _ = v.GameSession(session.ID(h.Game))
		return nil
	})
	if err != nil || now.Told >= h.Updates || !g.Live() {
		return
	}
	on := p.currentLink()
	if on == nil {
		return // still owed; the next connection receives it
	}
	b := newFrame()
	*b = appendUpdateGameSession(*b, &g, h.Why.String(), h.Ticket)
	s.counters.pushes.Add(1)
	on.send(b, frames.Text)
	cmd := matchmaking.TellHosted{Game: g.ID, Update: h.Updates}
	if !on.node.IsZero() { // the process may by now be connected to another node, which read what is owed before this
		cmd.Link = on.id
	}
	if err := s.engine.Do(s.ctx, &cmd); err != nil {
		s.log.Debug("the update of a game session could not be recorded as sent; it will be sent again", "process", p.key, "game_session", g.ID, "error", err)
	}
}

// appendUpdateGameSession appends the push with a game session's new state. docs/spec/server-sdk.md#update-game-session.
func appendUpdateGameSession(b []byte, g *session.GameSession, reason, ticket string) []byte {
	b = slices.Grow(b, 768+len(g.Data)+len(g.MatchmakerData))
	b = append(b, `{"Action":"`+pushUpdateGameSession+`"`...)
	b = appendMember(b, `,"GameSession":{"GameSessionId":`, g.ID.ARN(g.Region))
	b = appendMember(b, `,"Name":`, g.Name)
	b = appendMember(b, `,"FleetId":`, g.FleetID)
	b = appendNumber(b, `,"MaximumPlayerSessionCount":`, int64(g.PlayersMax))
	b = appendMember(b, `,"IpAddress":`, g.IPAddress)
	b = appendMember(b, `,"DnsName":`, g.DNSName)
	b = appendNumber(b, `,"Port":`, int64(g.Port))
	b = appendMember(b, `,"GameSessionData":`, g.Data)
	b = appendMember(b, `,"MatchmakerData":`, g.MatchmakerData)
	b = appendMember(b, `,"Location":`, g.Location)
	b = appendMember(b, `,"Status":`, g.Status.String())
	b = append(b, `,"GameProperties":{`...)
	for i, p := range g.Properties {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, p.Key), ':')
		b = appendText(b, p.Value)
	}
	b = appendMember(b, `}},"UpdateReason":`, reason)
	b = appendMember(b, `,"BackfillTicketId":`, ticket)
	return append(b, '}')
}
