package gameserver

import (
	"encoding/json"
	"errors"
	"fmt"
)

// MatchData is what the matchmaker says about a session that it made: Session.MatchmakerData, read.
type MatchData struct {
	MatchID              string
	ConfigurationARN     string
	Teams                []Team
	AutoBackfillTicketID string // the open ticket of a configuration that fills up by itself
	AutoBackfill         bool
}

// Team is a team of a match.
type Team struct {
	Name    string
	Players []MatchPlayer
}

// MatchPlayer is a player as a matchmaker sees one.
type MatchPlayer struct {
	ID   string
	Team string

	// Attributes are what the rules look at: a string, a number (int or float64), []string or map[string]float64 each.
	Attributes map[string]any

	LatencyMilliseconds map[string]int // by location; the matchmaker's data has none
}

// ParseMatchData reads the JSON of Session.MatchmakerData.
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

// attribute is one value with its type. Both the long and the short names of types are in use.
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
