// Package export writes ended records as JSON lines, for a studio's analysts. It writes each record exactly once over any number of runs, even if
// runs are interrupted. docs/formats/export.md lists the columns. They are stable: columns may be added, but none is renamed or changes its meaning.
package export

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/keyvalue"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/domain/ruleset"
	"github.com/musterhq/muster/internal/domain/session"
)

// Kinds are the kinds of records, in the order in which help shows them. The audit log has its own export.
var Kinds = []string{"game_sessions", "player_sessions", "placements", "tickets", "player_changes"}

var archived = map[archive.Kind]string{
	archive.GameSession: Kinds[0], archive.PlayerSession: Kinds[1], archive.Placement: Kinds[2], archive.Ticket: Kinds[3], archive.PlayerChange: Kinds[4],
}

// instant is a time in UTC with milliseconds; the zero one is null.
type instant domain.Time

func (t instant) MarshalJSON() ([]byte, error) {
	if t == 0 {
		return []byte("null"), nil
	}
	return domain.Time(t).Std().UTC().AppendFormat(nil, `"2006-01-02T15:04:05.000Z"`), nil
}

type gameSession struct {
	Kind         string            `json:"kind"`
	ID           string            `json:"id"`
	Fleet        string            `json:"fleet"`
	Location     string            `json:"location"`
	Name         string            `json:"name"`
	Creator      string            `json:"creator"`
	Compute      string            `json:"compute"`
	Process      string            `json:"process"`
	IPAddress    string            `json:"ip_address"`
	DNSName      string            `json:"dns_name"`
	Port         uint16            `json:"port"`
	PlayersMax   int32             `json:"players_max"`
	Players      int32             `json:"player_sessions"`
	Status       string            `json:"status"`
	StatusReason string            `json:"status_reason"`
	Cause        string            `json:"cause"`
	Placement    string            `json:"placement"`
	Properties   map[string]string `json:"properties"`
	Created      instant           `json:"created_at"`
	Activated    instant           `json:"activated_at"`
	Ended        instant           `json:"ended_at"`
}

type playerSession struct {
	Kind        string  `json:"kind"`
	ID          string  `json:"id"`
	GameSession string  `json:"game_session"`
	Fleet       string  `json:"fleet"`
	Player      string  `json:"player"`
	Status      string  `json:"status"`
	Created     instant `json:"created_at"`
	Connected   instant `json:"connected_at"`
	Ended       instant `json:"ended_at"`
}

type placementRecord struct {
	Kind        string            `json:"kind"`
	ID          string            `json:"id"`
	Queue       string            `json:"queue"`
	Status      string            `json:"status"`
	PlayersMax  int32             `json:"players_max"`
	Players     []string          `json:"players"`
	Latencies   []playerLatency   `json:"latencies"`
	Name        string            `json:"name"`
	Properties  map[string]string `json:"properties"`
	GameSession string            `json:"game_session"`
	Location    string            `json:"location"`
	Attempts    []attempt         `json:"attempts"`
	Started     instant           `json:"started_at"`
	Ended       instant           `json:"ended_at"`
}

type playerLatency struct {
	Player       string  `json:"player"`
	Location     string  `json:"location"`
	Milliseconds float32 `json:"ms"`
}

type attempt struct {
	At       instant `json:"at"`
	Fleet    string  `json:"fleet"`
	Location string  `json:"location"`
	Outcome  string  `json:"outcome"`
	Detail   string  `json:"detail"`
}

type ticket struct {
	Kind          string         `json:"kind"`
	ID            string         `json:"id"`
	Configuration string         `json:"configuration"`
	Backfill      bool           `json:"backfill"`
	Status        string         `json:"status"`
	Reason        string         `json:"reason"`
	Players       []ticketPlayer `json:"players"`
	Match         string         `json:"match"`
	GameSession   string         `json:"game_session"`
	Started       instant        `json:"started_at"`
	Ended         instant        `json:"ended_at"`
}

type ticketPlayer struct {
	Player        string           `json:"player"`
	Team          string           `json:"team"`
	Accepted      *bool            `json:"accepted"`
	PlayerSession string           `json:"player_session"`
	Attributes    map[string]any   `json:"attributes"`
	Latencies     map[string]int32 `json:"latencies_ms"`
}

type playerChange struct {
	Kind     string  `json:"kind"`
	Player   string  `json:"player"`
	At       instant `json:"at"`
	Entry    uint64  `json:"entry"`
	Part     uint32  `json:"part"`
	Revision uint64  `json:"revision"`
	Party    string  `json:"party"`
	Ticket   string  `json:"ticket"`
	Game     string  `json:"game_instance"`
	Cause    string  `json:"cause"`
	By       string  `json:"by"`
	ByID     string  `json:"by_id"`
}

var statusReasons = map[session.StatusReason]string{
	session.TriggeredOnProcessTerminate: "TRIGGERED_ON_PROCESS_TERMINATE", session.ForceTerminated: "FORCE_TERMINATED", session.Interrupted: "INTERRUPTED",
}

// line returns a record as one line, without the newline.
func line(r *archive.Record) ([]byte, error) {
	x, err := row(r)
	if err != nil {
		return nil, fmt.Errorf("%s %q, which ended at %s: %w", archived[r.Kind], r.ID, time.UnixMilli(r.Ended).UTC().Format(time.RFC3339), err)
	}
	return json.Marshal(x)
}

func row(r *archive.Record) (any, error) {
	switch r.Kind {
	case archive.GameSession:
		g, err := hosting.DecodeGameSession(r.Data)
		return gameSession{
			"game_session", string(g.ID), g.FleetID, g.Location, g.Name, g.Creator, g.ComputeName, g.ProcessID, g.IPAddress, g.DNSName, g.Port, g.PlayersMax, g.Players,
			g.Status.String(), statusReasons[g.StatusReason], g.Cause.String(), g.Placement, pairs(g.Properties), instant(g.Created), instant(g.ActivatedAt), instant(g.Ended),
		}, err
	case archive.PlayerSession:
		p, err := hosting.DecodePlayerSession(r.Data)
		return playerSession{"player_session", p.ID.String(), string(p.GameID), p.FleetID, p.Player, p.Status.String(), instant(p.Created), instant(p.Accepted), instant(p.Ended)}, err
	case archive.Placement:
		p, err := hosting.DecodePlacement(r.Data)
		x := placementRecord{
			Kind: "placement", ID: p.ID, Queue: p.Queue, Status: p.Status.String(), PlayersMax: p.PlayersMax, Players: []string{}, Latencies: []playerLatency{}, Name: p.Name,
			Properties: pairs(p.Properties), GameSession: p.Game, Location: p.Location, Attempts: []attempt{}, Started: instant(p.Start), Ended: instant(p.End),
		}
		for _, y := range p.Players {
			x.Players = append(x.Players, y.Player)
		}
		for _, y := range p.Latencies {
			x.Latencies = append(x.Latencies, playerLatency(y))
		}
		for _, y := range p.Tried {
			x.Attempts = append(x.Attempts, attempt{instant(y.At), y.Fleet, y.Location, y.Outcome.String(), y.Detail})
		}
		return x, err
	case archive.Ticket:
		return ticketRow(r.Data)
	case archive.PlayerChange:
		c, err := playerflow.DecodeChange(r.Data)
		return playerChange{"player_change", c.Player, instant(c.At), c.Commit, c.Part, c.Rev, idText(c.Keys.Party), idText(c.Keys.Ticket), idText(c.Keys.Game), c.Cause, c.By.Kind.String(), c.By.ID}, err
	}
	return nil, fmt.Errorf("record kind %d is not exported", r.Kind)
}

func ticketRow(data []byte) (any, error) {
	t, err := matchmaking.DecodeTicket(data)
	if err != nil {
		return nil, err
	}
	x := ticket{
		Kind: "ticket", ID: t.ID, Configuration: t.Configuration, Backfill: t.Backfill, Status: t.Status.String(), Reason: t.Reason.Code(), Players: []ticketPlayer{},
		GameSession: t.Game, Started: instant(t.Start), Ended: instant(t.End),
	}
	if t.Outcome != nil {
		x.Match = t.Outcome.Match
		if t.Outcome.Game != "" {
			x.GameSession = t.Outcome.Game
		}
	}
	for i, p := range matchmaking.DecodeRoster(t.Roster) {
		y := ticketPlayer{Player: p.ID, Team: p.Team, Attributes: map[string]any{}, Latencies: map[string]int32{}}
		for _, a := range p.Attributes {
			y.Attributes[a.Name] = attributeOf(&a.Value)
		}
		for _, l := range p.Latencies {
			y.Latencies[l.Region] = l.Milliseconds
		}
		if o := t.Outcome; o != nil {
			if o.Team != "" {
				y.Team = o.Team
			}
			if answer := o.Answer(i); answer != matchmaking.NoAnswer {
				y.Accepted = new(bool)
				*y.Accepted = answer == matchmaking.Accepted
			}
			if i < len(o.Sessions) {
				y.PlayerSession = o.Sessions[i].String()
			}
		}
		x.Players = append(x.Players, y)
	}
	return x, nil
}

func attributeOf(v *ruleset.Value) any {
	switch v.Kind {
	case ruleset.String:
		return v.Text
	case ruleset.List:
		return v.List
	case ruleset.Map:
		all := map[string]float64{}
		for _, e := range v.Map {
			all[e.Key] = e.Number
		}
		return all
	}
	return v.Number
}

func pairs(all []keyvalue.Pair) map[string]string {
	m := map[string]string{}
	for _, p := range all {
		m[p.Key] = p.Value
	}
	return m
}

// idText returns an id as clients see it; empty for a zero id.
func idText[T interface {
	comparable
	String() string
}](id T) string {
	var none T
	if id == none {
		return ""
	}
	return id.String()
}
