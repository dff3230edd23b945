package gamelift

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/session"
)

// StartMatchmaking starts the search for a match and returns at once.
func (s *Service) StartMatchmaking(ctx context.Context, in *gamelift.StartMatchmakingInput) (*gamelift.StartMatchmakingOutput, error) {
	players, err := playersFromWire(in.Players)
	if err != nil {
		return nil, err
	}
	cmd := matchmaking.StartMatchmaking{Configuration: lastPart(*in.ConfigurationName), Players: players, By: callerOf(ctx).Maker()}
	cmd.ID, cmd.Chosen = ticketID(in.TicketId)
	err = s.engine.Do(ctx, &cmd)
	return &gamelift.StartMatchmakingOutput{MatchmakingTicket: new(ticketToWire(&cmd.Ticket))}, undeclared(err, domain.TokenMismatch)
}

// StartMatchBackfill starts the search for more players for a running game session.
func (s *Service) StartMatchBackfill(ctx context.Context, in *gamelift.StartMatchBackfillInput) (*gamelift.StartMatchBackfillOutput, error) {
	players, err := playersFromWire(in.Players)
	if err != nil {
		return nil, err
	}
	cmd := matchmaking.StartMatchBackfill{Configuration: lastPart(*in.ConfigurationName), Players: players}
	cmd.ID, cmd.Chosen = ticketID(in.TicketId)
	if cmd.Game, err = s.backfilled(ctx, cmd.Configuration, in.GameSessionArn); err != nil {
		return nil, err
	}
	err = s.engine.Do(ctx, &cmd)
	return &gamelift.StartMatchBackfillOutput{MatchmakingTicket: new(ticketToWire(&cmd.Ticket))}, undeclared(err, domain.TokenMismatch)
}

// backfilled returns the game session of a backfill. With STANDALONE the service does not host it, and the given ARN is
// only a name.
func (s *Service) backfilled(ctx context.Context, configuration string, arn *string) (game string, err error) {
	if arn == nil {
		return "", nil
	}
	standalone := false
	err = s.engine.Read(ctx, func(v *cell.View) error {
		c, ok := v.Configuration(configuration)
		standalone = ok && c.Standalone
		return nil
	})
	if err != nil || standalone {
		return *arn, err
	}
	id, err := s.gameSessionID(ctx, *arn)
	return string(id), err
}

// ticketID returns the caller's id for a ticket, or a new one.
func ticketID(given *string) (id string, chosen bool) {
	if given == nil || *given == "" {
		return newID().String(), false
	}
	return *given, true
}

// DescribeMatchmaking shows tickets, active or ended. It skips unknown ones.
func (s *Service) DescribeMatchmaking(ctx context.Context, in *gamelift.DescribeMatchmakingInput) (*gamelift.DescribeMatchmakingOutput, error) {
	if n := len(in.TicketIds); n < 1 || n > ticketsDescribedMax {
		return nil, invalid("TicketIds: %d ids; want 1 to %d", n, ticketsDescribedMax)
	}
	out := &gamelift.DescribeMatchmakingOutput{TicketList: []types.MatchmakingTicket{}}
	seen := map[string]bool{}
	for _, id := range in.TicketIds {
		if seen[id] || id == "" {
			continue
		}
		seen[id] = true
		t, err := s.ticket(ctx, id)
		if domain.IsRefused(err, domain.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out.TicketList = append(out.TicketList, ticketToWire(&t))
	}
	return out, nil
}

// ticket finds a ticket that the caller may see.
func (s *Service) ticket(ctx context.Context, id string) (matchmaking.TicketView, error) {
	t, err := s.engine.Ticket(ctx, id)
	if err == nil && !callerOf(ctx).Maker().MayTouch(t.Maker) {
		return matchmaking.TicketView{}, domain.Refuse(domain.NotFound, matchmaking.TicketNotFound)
	}
	return t, err
}

// ticketsDescribedMax is the documented bound of DescribeMatchmaking.
const ticketsDescribedMax = 10

// StopMatchmaking cancels a ticket that has no game session yet. After a success, the ticket cannot be matched any more.
func (s *Service) StopMatchmaking(ctx context.Context, in *gamelift.StopMatchmakingInput) (*gamelift.StopMatchmakingOutput, error) {
	if err := s.engine.Do(ctx, &matchmaking.StopMatchmaking{ID: *in.TicketId, By: callerOf(ctx).Maker()}); err != nil {
		return nil, s.ticketRefusal(ctx, *in.TicketId, err)
	}
	return &gamelift.StopMatchmakingOutput{}, nil
}

// ticketRefusal converts NotFound, which the core reports for archived tickets, to the error that the ticket has ended.
func (s *Service) ticketRefusal(ctx context.Context, id string, refused error) error {
	if r, ok := errors.AsType[*domain.Refusal](refused); !ok || r.Reason != domain.NotFound {
		return refused
	}
	t, err := s.ticket(ctx, id)
	if err != nil {
		return err // also NotFound, or another error
	}
	return matchmaking.TicketCannotStop(t.Status)
}

// AcceptMatch records the answers of players of a ticket to its proposed match.
func (s *Service) AcceptMatch(ctx context.Context, in *gamelift.AcceptMatchInput) (*gamelift.AcceptMatchOutput, error) {
	cmd := matchmaking.AcceptMatch{Ticket: *in.TicketId, Players: in.PlayerIds, Accept: in.AcceptanceType == types.AcceptanceTypeAccept, By: callerOf(ctx).Maker()}
	if err := s.engine.Do(ctx, &cmd); err != nil {
		if domain.IsRefused(err, domain.NotFound) {
			if t, lookErr := s.ticket(ctx, cmd.Ticket); lookErr == nil {
				return nil, matchmaking.TicketCannotAnswer(t.Status)
			}
		}
		return nil, err
	}
	return &gamelift.AcceptMatchOutput{}, nil
}

func ticketToWire(t *matchmaking.TicketView) types.MatchmakingTicket {
	arn := "arn:aws:gamelift:" + t.Region + ":" + t.Account + ":matchmakingconfiguration/" + t.Configuration
	game := ticketGame(&t.Ticket)
	wire := types.MatchmakingTicket{
		TicketId: &t.ID, ConfigurationName: &t.Configuration, ConfigurationArn: &arn, Status: types.MatchmakingConfigurationStatus(t.Status.String()),
		StatusReason: text(t.Reason.Code()), StatusMessage: text(t.Reason.Message(value(game))), StartTime: new(t.Start.Std()),
		Players: playersToWire(t.PlayersOf()),
	}
	if t.End != 0 {
		wire.EndTime = new(t.End.Std())
	}
	if t.WaitKnown {
		wire.EstimatedWaitTime = &t.EstimatedWait
	}
	if game != nil {
		wire.GameSessionConnectionInfo = connectionToWire(t, game)
	}
	return wire
}

// ticketGame returns the ARN of a ticket's game session: a backfill ticket has one from the start, others once they are
// placed.
func ticketGame(t *matchmaking.Ticket) *string {
	switch {
	case t.Outcome != nil && t.Outcome.Game != "":
		return gameSessionARN(t.Outcome.GameRegion, session.ID(t.Outcome.Game))
	case t.Game != "" && t.GameRegion != "":
		return gameSessionARN(t.GameRegion, session.ID(t.Game))
	default:
		return text(t.Game)
	}
}

func connectionToWire(t *matchmaking.TicketView, game *string) *types.GameSessionConnectionInfo {
	wire := &types.GameSessionConnectionInfo{GameSessionArn: game}
	o := t.Outcome
	if t.Status != matchmaking.Completed || o == nil || o.Game == "" {
		return wire
	}
	wire.IpAddress, wire.DnsName, wire.Port = text(o.IPAddress), text(o.DNSName), new(int32(o.Port))
	n := 0
	for player := range t.EachPlayer {
		if n < len(o.Sessions) {
			wire.MatchedPlayerSessions = append(wire.MatchedPlayerSessions, types.MatchedPlayerSession{
				PlayerId: &player, PlayerSessionId: new(o.Sessions[n].String()),
			})
		}
		n++
	}
	return wire
}
