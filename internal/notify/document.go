package notify

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

// document is an event in the format of the event bus, with the detail of its kind. The members are in the order of the
// documentation; its examples of matchmaking use several orders.
type document[D any] struct {
	Version    string   `json:"version"`
	ID         string   `json:"id"`
	DetailType string   `json:"detail-type"`
	Source     string   `json:"source"`
	Account    string   `json:"account"`
	Time       string   `json:"time"`
	Region     string   `json:"region"`
	Resources  []string `json:"resources"`
	Detail     D        `json:"detail"`
}

// detail of a placement event. The port is a string here, unlike in the API.
type detail struct {
	Type                 string   `json:"type"`
	PlacementID          string   `json:"placementId"`
	Port                 string   `json:"port,omitempty"`
	GameSessionARN       string   `json:"gameSessionArn,omitempty"`
	IPAddress            string   `json:"ipAddress,omitempty"`
	DNSName              string   `json:"dnsName,omitempty"`
	StartTime            string   `json:"startTime"`
	EndTime              string   `json:"endTime"`
	GameSessionRegion    string   `json:"gameSessionRegion,omitempty"`
	PlacedPlayerSessions []placed `json:"placedPlayerSessions,omitempty"`
	CustomEventData      string   `json:"customEventData,omitempty"`
}

type placed struct {
	PlayerID        string `json:"playerId"`
	PlayerSessionID string `json:"playerSessionId"`
}

var eventTypes = map[placement.Status]string{
	placement.Fulfilled: "PlacementFulfilled", placement.Cancelled: "PlacementCancelled",
	placement.TimedOut: "PlacementTimedOut", placement.Failed: "PlacementFailed",
}

// placementDocument encodes the event of an ended placement. Source: docs/spec/events.md#placement. Receivers parse
// exactly these formats of the times.
func placementDocument(n *notice.Notice, p *placement.Placement) []byte {
	d := document[detail]{
		Version: "0", ID: n.ID.String(), DetailType: "GameLift Queue Placement Event", Source: "aws.gamelift",
		Account: p.Account, Time: n.At.Std().Format("2006-01-02T15:04:05Z"), Region: p.Region,
		Resources: []string{"arn:aws:gamelift:" + p.Region + ":" + p.Account + ":gamesessionqueue/" + p.Queue},
		Detail: detail{
			Type: eventTypes[p.Status], PlacementID: p.ID, StartTime: milliseconds(p.Start), EndTime: milliseconds(p.End),
			CustomEventData: n.CustomEventData,
		},
	}
	if p.Status == placement.Fulfilled {
		x := &d.Detail
		x.Port, x.IPAddress, x.DNSName, x.GameSessionRegion = strconv.Itoa(int(p.Port)), p.IPAddress, p.DNSName, p.Location
		x.GameSessionARN = session.ID(p.Game).ARN(p.GameRegion)
		for _, player := range p.Players {
			x.PlacedPlayerSessions = append(x.PlacedPlayerSessions, placed{player.Player, player.ID.String()})
		}
	}
	return encode(d)
}

func milliseconds(t domain.Time) string { return t.Std().Format("2006-01-02T15:04:05.000Z") }

// encode writes JSON without escaping <, > and &.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("notify: " + err.Error()) // strings always marshal
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
