package gameserver

import (
	"encoding/json"
	"errors"
	"fmt"
)

// MatchData is the content of Session.MatchmakerData: the match that created the session.
type MatchData struct {
	MatchID              string // unique
	ConfigurationARN     string // of the matchmaking configuration
	Teams                []Team // in the order of the rule set
	AutoBackfillTicketID string // the open ticket of automatic backfill; empty if there is none
	AutoBackfill         bool   // the configuration has automatic backfill: do not call StartMatchBackfill
}

// Team is a team of a match.
type Team struct {
	Name    string        // as in the rule set
	Players []MatchPlayer // at least one
}

// MatchPlayer is a player of a match.
type MatchPlayer struct {
	ID   string // 1 to 1,024 characters
	Team string // name of the player's team

	// Attributes are the values that the rules evaluate: a string, a number (int or float64), []string or map[string]float64 each.
	Attributes map[string]any

	LatencyMilliseconds map[string]int // round-trip times by location, from 1; the matchmaker's data contains none
}

// ParseMatchData reads the JSON of Session.MatchmakerData. It fails for an empty string, for other text than JSON, and for JSON without a
// configuration or teams.
func ParseMatchData(data string) (MatchData, error) {
	if data == "" {
		return MatchData{}, errors.New("the session has no matchmaker data")
	}
	var read struct {
		MatchID          string `json:"matchId"`
		ConfigurationARN string `json:"matchmakingConfigurationArn"`
		Teams            []struct {
			Name    string `json:"name"`
			Players []struct {
				ID         string               `json:"playerId"`
				Attributes map[string]attribute `json:"attributes"`
			} `json:"players"`
		} `json:"teams"`
		AutoBackfillTicketID string `json:"autoBackfillTicketId"`
		AutoBackfillMode     string `json:"autoBackfillMode"`
	}
	if err := json.Unmarshal([]byte(data), &read); err != nil {
		return MatchData{}, fmt.Errorf("matchmaker data: %w", err)
	}
	switch {
	case read.ConfigurationARN == "":
		return MatchData{}, errors.New("matchmaker data: matchmakingConfigurationArn is missing")
	case read.Teams == nil:
		return MatchData{}, errors.New("matchmaker data: teams is missing")
	}
	m := MatchData{
		MatchID: read.MatchID, ConfigurationARN: read.ConfigurationARN,
		AutoBackfillTicketID: read.AutoBackfillTicketID, AutoBackfill: read.AutoBackfillMode == "AUTOMATIC",
	}
	for _, t := range read.Teams {
		team := Team{Name: t.Name}
		for _, p := range t.Players {
			player := MatchPlayer{ID: p.ID, Team: t.Name, Attributes: make(map[string]any, len(p.Attributes))}
			for name, a := range p.Attributes {
				value, err := a.value()
				if err != nil {
					return MatchData{}, fmt.Errorf("matchmaker data: attribute %s of player %s: %w", name, p.ID, err)
				}
				player.Attributes[name] = value
			}
			team.Players = append(team.Players, player)
		}
		m.Teams = append(m.Teams, team)
	}
	return m, nil
}

// attribute is one value with its type. Services use both the long and the short names of types.
type attribute struct {
	Type  string          `json:"attributeType"`
	Value json.RawMessage `json:"valueAttribute"`
}

func (a attribute) value() (any, error) {
	switch a.Type {
	case "S", "STRING":
		return read[string](a.Value)
	case "N", "DOUBLE":
		return read[float64](a.Value)
	case "SL", "STRING_LIST":
		return read[[]string](a.Value)
	case "SDM", "STRING_DOUBLE_MAP":
		return read[map[string]float64](a.Value)
	}
	return nil, fmt.Errorf("attributeType is %q: want STRING, DOUBLE, STRING_LIST or STRING_DOUBLE_MAP", a.Type)
}

func read[T any](raw json.RawMessage) (any, error) {
	var value T
	err := json.Unmarshal(raw, &value)
	return value, err
}
