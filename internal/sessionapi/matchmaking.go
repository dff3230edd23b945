package sessionapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/domain/session"
)

const ticketPlayersMax = 200

var (
	ticketForm        = regexp.MustCompile(`^[a-zA-Z0-9.-]{1,128}$`)
	configurationForm = regexp.MustCompile(`^([a-zA-Z0-9.-]{1,128}|arn:.*:matchmakingconfiguration/[a-zA-Z0-9.-]+)$`)
)

const ticketWanted = "1 to 128 letters, digits, dots and dashes"

type startMatchmakingRequest struct {
	ConfigurationName string        `json:"configurationName"`
	TicketID          string        `json:"ticketId"` // generated if empty
	Players           []matchPlayer `json:"players"`

	players []matchmaking.Player
}

type matchPlayer struct {
	PlayerID         string                     `json:"playerId"`
	Team             string                     `json:"team"`
	LatencyInMs      map[string]int32           `json:"latencyInMs"`
	PlayerAttributes map[string]json.RawMessage `json:"playerAttributes"` // {"S":"x"} and so on, as an object or as its text
}

func (in *startMatchmakingRequest) check(c *checks) {
	const wanted = "the name or the ARN of a matchmaking configuration"
	if in.ConfigurationName == "" {
		c.add(missing("configurationName", wanted))
	}
	c.form("configurationName", in.ConfigurationName, configurationForm, wanted)
	c.form("ticketId", in.TicketID, ticketForm, ticketWanted)
	if n := len(in.Players); n < 1 || n > ticketPlayersMax {
		c.add(invalid("players", fmt.Sprintf("%d players", n), "at least one"))
		return
	}
	in.players = make([]matchmaking.Player, len(in.Players))
	for i := range in.Players {
		in.Players[i].check(c, fmt.Sprintf("players[%d].", i), &in.players[i])
	}
}

func (in *matchPlayer) check(c *checks, field string, p *matchmaking.Player) {
	c.required(field+"playerId", in.PlayerID, playerMax)
	c.text(field+"team", in.Team, textMax)
	p.ID, p.Team = in.PlayerID, in.Team
	if n := len(in.PlayerAttributes); n > ruleset.AttributesMax {
		c.add(invalid(field+"playerAttributes", fmt.Sprintf("%d attributes", n), fmt.Sprintf("at most %d", ruleset.AttributesMax)))
	}
	for _, name := range slices.Sorted(maps.Keys(in.PlayerAttributes)) {
		value, expected := readAttribute(in.PlayerAttributes[name])
		switch at := field + "playerAttributes." + excerpt.Short(name); {
		case name == "" || utf8.RuneCountInString(name) > textMax:
			c.add(invalid(at, name, "a name of 1 to 1024 characters"))
		case expected != "":
			c.add(invalid(at, string(in.PlayerAttributes[name]), expected))
		}
		p.Attributes = append(p.Attributes, ruleset.NamedValue{Name: name, Value: value})
	}
	for _, region := range slices.Sorted(maps.Keys(in.LatencyInMs)) {
		ms := in.LatencyInMs[region]
		switch at := field + "latencyInMs." + excerpt.Short(region); {
		case region == "":
			c.add(invalid(at, region, "the name of a region or location"))
		case ms < 1:
			c.add(invalid(at, ms, "a whole number of milliseconds, 1 or more"))
		}
		p.Latencies = append(p.Latencies, matchmaking.Latency{Region: region, Milliseconds: ms})
	}
}

const attributeWanted = `exactly one of {"S":"x"}, {"N":23}, {"SL":["a"]} and {"SDM":{"k":1.5}}`

// readAttribute decodes a value, or returns what was expected. Script nodes send it as a text that contains JSON.
func readAttribute(raw json.RawMessage) (v ruleset.Value, expected string) {
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && raw[0] == '"' {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return v, attributeWanted
		}
		raw = json.RawMessage(text)
	}
	var wire struct {
		S   *string
		N   *float64
		SL  []string
		SDM map[string]float64
	}
	if decode(raw, &wire) != nil {
		return v, attributeWanted
	}
	given := 0
	var texts []string
	if wire.S != nil {
		v, texts = ruleset.Value{Kind: ruleset.String, Text: *wire.S}, []string{*wire.S}
		given++
	}
	if wire.N != nil {
		v = ruleset.Value{Kind: ruleset.Number, Number: *wire.N}
		given++
	}
	if wire.SL != nil {
		v, texts = ruleset.ListOf(wire.SL), wire.SL
		given++
	}
	if wire.SDM != nil {
		v, texts = ruleset.MapOf(wire.SDM), slices.Collect(maps.Keys(wire.SDM))
		given++
	}
	invalidText := func(s string) bool { return s == "" || ruleset.TooLong(s) }
	switch {
	case given != 1:
		return v, attributeWanted
	case len(wire.SL) > ruleset.ListMax:
		return v, fmt.Sprintf("a list of at most %d strings", ruleset.ListMax)
	case len(wire.SDM) > ruleset.PairsMax:
		return v, fmt.Sprintf("a map of at most %d pairs", ruleset.PairsMax)
	case slices.ContainsFunc(texts, invalidText):
		return v, fmt.Sprintf("strings of 1 to %d characters", ruleset.TextMax)
	}
	return v, ""
}

type ticketAnswer struct {
	TicketID string `json:"ticketId"`
}

func (d *Door) startMatchmaking(ctx context.Context, r *request, in *startMatchmakingRequest) (*ticketAnswer, error) {
	cmd := matchmaking.StartMatchmaking{
		Configuration: lastPart(in.ConfigurationName), ID: in.TicketID, Chosen: in.TicketID != "", Players: in.players,
		By: r.principal.Maker(),
	}
	if !cmd.Chosen {
		cmd.ID = newID().String()
	}
	if err := d.engine.Do(ctx, &cmd); err != nil {
		return nil, err
	}
	return &ticketAnswer{cmd.ID}, nil
}

type stopMatchmakingRequest struct {
	TicketID string `json:"ticketId"`
}

func (in *stopMatchmakingRequest) check(c *checks) { c.ticket(in.TicketID) }

func (c *checks) ticket(id string) {
	if id == "" {
		c.add(missing("ticketId", ticketWanted))
	}
	c.form("ticketId", id, ticketForm, ticketWanted)
}

func (d *Door) stopMatchmaking(ctx context.Context, r *request, in *stopMatchmakingRequest) (*nothing, error) {
	err := d.engine.Do(ctx, &matchmaking.StopMatchmaking{ID: in.TicketID, By: r.principal.Maker()})
	return &nothing{}, d.endedTicket(ctx, r, in.TicketID, err, matchmaking.TicketCannotStop)
}

type acceptMatchRequest struct {
	TicketID    string   `json:"ticketId"`
	AcceptMatch *bool    `json:"acceptMatch"`
	PlayerIDs   []string `json:"playerIds"`
}

func (in *acceptMatchRequest) check(c *checks) {
	c.ticket(in.TicketID)
	if in.AcceptMatch == nil {
		c.add(missing("acceptMatch", "true or false"))
	}
	if n := len(in.PlayerIDs); n < 1 || n > ticketPlayersMax {
		c.add(invalid("playerIds", fmt.Sprintf("%d players", n), "at least one player of the ticket"))
	}
	for i, id := range in.PlayerIDs {
		c.required(fmt.Sprintf("playerIds[%d]", i), id, playerMax)
	}
}

func (d *Door) acceptMatch(ctx context.Context, r *request, in *acceptMatchRequest) (*nothing, error) {
	err := d.engine.Do(ctx, &matchmaking.AcceptMatch{Ticket: in.TicketID, Players: in.PlayerIDs, Accept: *in.AcceptMatch, By: r.principal.Maker()})
	return &nothing{}, d.endedTicket(ctx, r, in.TicketID, err, matchmaking.TicketCannotAnswer)
}

// endedTicket reports that a ticket has ended where the core, which no longer has archived ones, reports that it does not exist.
func (d *Door) endedTicket(ctx context.Context, r *request, id string, refused error, because func(matchmaking.Status) error) error {
	if !domain.IsRefused(refused, domain.NotFound) {
		return refused
	}
	t, err := d.ticket(ctx, r, id)
	if err != nil {
		return err // NotFound as well, or worse
	}
	return because(t.Status)
}

// ticketState is a ticket for scripts. It contains the game session's address once it is COMPLETED.
type ticketState struct {
	TicketID          string         `json:"ticketId"`
	ConfigurationName string         `json:"configurationName"`
	Status            string         `json:"status"`
	StatusReason      string         `json:"statusReason,omitempty"`
	StatusMessage     string         `json:"statusMessage,omitempty"`
	StartTime         int64          `json:"startTime"`
	EndTime           int64          `json:"endTime"`
	EstimatedWaitTime int32          `json:"estimatedWaitTime,omitempty"` // seconds
	SessionID         string         `json:"sessionId"`
	IPAddress         string         `json:"ipAddress"`
	DNSName           string         `json:"dnsName"`
	Port              int            `json:"port"`
	Players           []placedPlayer `json:"players"`
}

func stateOf(t *matchmaking.TicketView) ticketState {
	s := ticketState{
		TicketID: t.ID, ConfigurationName: t.Configuration, Status: t.Status.String(), StartTime: int64(t.Start), EndTime: int64(t.End),
		Players: []placedPlayer{},
	}
	if t.WaitKnown {
		s.EstimatedWaitTime = t.EstimatedWait
	}
	completed := t.Status == matchmaking.Completed && t.Outcome != nil && t.Outcome.Game != ""
	if completed {
		s.SessionID = session.ID(t.Outcome.Game).ARN(t.Outcome.GameRegion)
		s.IPAddress, s.DNSName, s.Port = t.Outcome.IPAddress, t.Outcome.DNSName, int(t.Outcome.Port)
	}
	s.StatusReason, s.StatusMessage = t.Reason.Code(), t.Reason.Message(s.SessionID)
	n := 0
	for player := range t.EachPlayer {
		p := placedPlayer{PlayerID: player}
		if completed && n < len(t.Outcome.Sessions) {
			p.PlayerSessionID = t.Outcome.Sessions[n].String()
		}
		s.Players = append(s.Players, p)
		n++
	}
	return s
}

// ticket finds a ticket that the caller may see.
func (d *Door) ticket(ctx context.Context, r *request, id string) (matchmaking.TicketView, error) {
	t, err := d.engine.Ticket(ctx, id)
	if err == nil && !r.principal.Maker().MayTouch(t.Maker) {
		return matchmaking.TicketView{}, domain.Refuse(domain.NotFound, matchmaking.TicketNotFound)
	}
	return t, err
}

// describeTicket returns a ticket to scripts that poll.
func (d *Door) describeTicket(ctx context.Context, r *request, _ *nothing) (*ticketState, error) {
	t, err := d.ticket(ctx, r, r.path)
	if err != nil {
		return nil, err
	}
	s := stateOf(&t)
	return &s, nil
}
