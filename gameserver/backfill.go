package gameserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model"
	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model/request"
	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/model/result"
)

// StartMatchBackfill requests players from the matchmaker for the free seats of a session that a match created, and returns the ticket's
// id. The players are those who play now, with their teams. If players is nil, they are the players whose player session is ACTIVE, with
// the teams and attributes of the matchmaker's data and without latencies. OnUpdateSessionBegin reports the result. A request replaces
// an earlier one. The ticketID has up to 128 letters, digits, hyphens and periods; if it is empty, the service chooses one.
//
// Call it for manual backfill only, not for configurations with automatic backfill. It fails with ErrNoMatch if no match created the
// session, with ErrRefused for an impossible request, with ErrNoSession, ErrEnded or ErrUnavailable.
func (s *Server) StartMatchBackfill(ctx context.Context, ticketID string, players []MatchPlayer) (string, error) {
	const call = "StartMatchBackfill"
	data, session, err := s.match(call)
	if err != nil {
		return "", err
	}
	if players == nil {
		if players, err = s.roster(ctx, data); err != nil {
			return "", err
		}
	}
	wanted := request.NewStartMatchBackfill(session.ID, data.ConfigurationARN, nil)
	wanted.TicketID = ticketID
	for i, p := range players {
		player, err := p.model()
		if err != nil {
			return "", &Error{call, ErrRefused, fmt.Errorf("player %d of %d: %w", i+1, len(players), err)}
		}
		wanted.Players = append(wanted.Players, player)
	}
	answer, err := fetch(ctx, s, call, func() (result.StartMatchBackfillResult, error) { return s.sdk.StartMatchBackfill(wanted) })
	return answer.TicketID, err
}

// StopMatchBackfill cancels a request for players. It fails as StartMatchBackfill does.
func (s *Server) StopMatchBackfill(ctx context.Context, ticketID string) error {
	const call = "StopMatchBackfill"
	data, session, err := s.match(call)
	if err != nil {
		return err
	}
	stop := request.NewStopMatchBackfill()
	stop.GameSessionArn, stop.MatchmakingConfigurationArn, stop.TicketID = session.ID, data.ConfigurationARN, ticketID
	return s.call(ctx, call, func() error { return s.sdk.StopMatchBackfill(stop) })
}

// match returns the matchmaker's data about this session.
func (s *Server) match(call string) (MatchData, Session, error) {
	if err := s.hosting(call); err != nil {
		return MatchData{}, Session{}, err
	}
	session, _ := s.Session()
	data, err := ParseMatchData(session.MatchmakerData)
	if err != nil {
		return MatchData{}, Session{}, &Error{call, ErrNoMatch, err}
	}
	return data, session, nil
}

// roster lists the connected players with the matchmaker's data about them. Players who joined without a match have no team
// and are left out.
func (s *Server) roster(ctx context.Context, data MatchData) ([]MatchPlayer, error) {
	known := map[string]MatchPlayer{}
	for _, t := range data.Teams {
		for _, p := range t.Players {
			known[p.ID] = p
		}
	}
	var roster []MatchPlayer
	for ps, err := range s.PlayerSessions(ctx, PlayerActive) {
		if err != nil {
			return nil, err
		}
		if p, ok := known[ps.PlayerID]; ok {
			roster = append(roster, p)
			delete(known, ps.PlayerID) // lists a player with two seats once
		}
	}
	return roster, nil
}

// model converts the player to the SDK's type.
func (p MatchPlayer) model() (model.Player, error) {
	player := model.Player{PlayerID: p.ID, Team: p.Team, LatencyInMS: p.LatencyMilliseconds}
	if p.ID == "" {
		return player, errors.New("the ID is empty")
	}
	for _, name := range slices.Sorted(maps.Keys(p.Attributes)) {
		value := p.Attributes[name]
		if n, ok := value.(int); ok {
			value = float64(n)
		}
		switch value.(type) {
		case string, float64, []string, map[string]float64:
		default:
			return player, fmt.Errorf("attribute %s is a %T: want a string, a number, []string or map[string]float64", name, value)
		}
		if player.PlayerAttributes == nil {
			player.PlayerAttributes = map[string]model.AttributeValue{}
		}
		player.PlayerAttributes[name] = model.MakeAttributeValue(value)
	}
	return player, nil
}

// fetch is Server.call for a call with a result. A channel carries the result, because the SDK may still return one after a
// cancelled call.
func fetch[T any](ctx context.Context, s *Server, call string, do func() (T, error)) (T, error) {
	results := make(chan T, 1)
	err := s.call(ctx, call, func() error {
		got, err := do()
		results <- got
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return <-results, nil
}
