package gamelift

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
)

// CreatePlayerSession reserves a seat for a player.
func (s *Service) CreatePlayerSession(ctx context.Context, in *gamelift.CreatePlayerSessionInput) (*gamelift.CreatePlayerSessionOutput, error) {
	player := hosting.NewPlayer{ID: domain.PlayerSessionID(newID()), Player: *in.PlayerId, Data: value(in.PlayerData)}
	reserved, err := s.reserve(ctx, *in.GameSessionId, []hosting.NewPlayer{player})
	if err != nil {
		return nil, err
	}
	return &gamelift.CreatePlayerSessionOutput{PlayerSession: new(playerSessionToWire(&reserved[0]))}, nil
}

// CreatePlayerSessions reserves a seat for each of several players, or none; see B040.
func (s *Service) CreatePlayerSessions(ctx context.Context, in *gamelift.CreatePlayerSessionsInput) (*gamelift.CreatePlayerSessionsOutput, error) {
	players := make([]hosting.NewPlayer, len(in.PlayerIds))
	for i, id := range in.PlayerIds {
		players[i] = hosting.NewPlayer{ID: domain.PlayerSessionID(newID()), Player: id, Data: in.PlayerDataMap[id]}
	}
	reserved, err := s.reserve(ctx, *in.GameSessionId, players)
	return &gamelift.CreatePlayerSessionsOutput{PlayerSessions: wires(reserved, playerSessionToWire)}, err
}

func (s *Service) reserve(ctx context.Context, arn string, players []hosting.NewPlayer) ([]hosting.PlayerSession, error) {
	id, err := s.gameSessionID(ctx, arn)
	if err != nil {
		return nil, err
	}
	cmd := hosting.ReservePlayers{Game: id, Players: players, By: callerOf(ctx).Maker()}
	if err := s.engine.Do(ctx, &cmd); err != nil {
		return nil, s.gameRefusal(ctx, id, err)
	}
	return cmd.Reserved, nil
}

// ReleasePlayerSession frees the seat of a player who will not connect, instead of waiting for its deadline. It names one
// player session and returns its new state; an ended one is not changed.
func (s *Service) ReleasePlayerSession(ctx context.Context, in *gamelift.DescribePlayerSessionsInput) (*gamelift.DescribePlayerSessionsOutput, error) {
	if in.PlayerSessionId == nil || in.GameSessionId != nil || in.PlayerId != nil || in.PlayerSessionStatusFilter != nil {
		return nil, invalid("want PlayerSessionId and nothing else")
	}
	known, err := s.playerSession(ctx, *in.PlayerSessionId)
	if err != nil {
		return nil, err
	}
	if known.Status.Live() { // otherwise it may be in the archive, which the core does not read
		cmd := hosting.ReleasePlayer{Player: known.ID, By: callerOf(ctx).Maker()}
		if err := s.engine.Do(ctx, &cmd); err != nil {
			return nil, err
		}
		known = cmd.Released
	}
	return &gamelift.DescribePlayerSessionsOutput{PlayerSessions: wires([]hosting.PlayerSession{known}, playerSessionToWire)}, nil
}

// DescribePlayerSessions shows one player session, those of a game session, or those of a player everywhere, which helps to
// find a friend. It shows live and ended ones, in creation order.
func (s *Service) DescribePlayerSessions(ctx context.Context, in *gamelift.DescribePlayerSessionsInput) (*gamelift.DescribePlayerSessionsOutput, error) {
	named := 0
	for _, member := range []*string{in.PlayerSessionId, in.GameSessionId, in.PlayerId} {
		if member != nil {
			named++
		}
	}
	if named != 1 {
		return nil, invalid("want exactly one of PlayerSessionId, GameSessionId and PlayerId, got %d of them", named)
	}
	status, err := playerStatus(in.PlayerSessionStatusFilter)
	if err != nil {
		return nil, err
	}
	if in.PlayerSessionId != nil {
		p, err := s.playerSession(ctx, *in.PlayerSessionId)
		if err != nil {
			return nil, err
		}
		return &gamelift.DescribePlayerSessionsOutput{PlayerSessions: wires([]hosting.PlayerSession{p}, playerSessionToWire)}, nil
	}
	cursor, err := pagePlace("DescribePlayerSessions", in, in.NextToken)
	if err != nil {
		return nil, err
	}
	from, _ := domain.ParseUUID(cursor.id)
	after := engine.PlayerPlace{Created: domain.Time(cursor.created), ID: domain.PlayerSessionID(from)}
	if maker := callerOf(ctx).Maker(); maker != 0 {
		return s.ownPlayerSessions(ctx, in, status, maker)
	}
	page, more, err := s.playerPage(ctx, in, status, after, pageSize(in.Limit, pageMax))
	if err != nil {
		return nil, err
	}
	out := &gamelift.DescribePlayerSessionsOutput{PlayerSessions: wires(page, playerSessionToWire)}
	if more {
		last := page[len(page)-1]
		out.NextToken = pageToken("DescribePlayerSessions", in, place{int64(last.Created), domain.UUID(last.ID).String()}.String())
	}
	return out, nil
}

// ownScanMax is how many player sessions a list for a client key examines, and ownListMax how many it shows: the newest. Such a
// list has one page, because the token for the next one would reveal a player session's id.
const (
	ownScanMax = 10 * pageMax
	ownListMax = pageMax
)

// ownPlayerSessions lists, for a client key, those of the requested player sessions that were created with it. All players
// of a game may share the key, so the list omits their ids, which are the credentials for a game session.
func (s *Service) ownPlayerSessions(ctx context.Context, in *gamelift.DescribePlayerSessionsInput, status session.PlayerStatus, maker domain.Maker) (*gamelift.DescribePlayerSessionsOutput, error) {
	out := &gamelift.DescribePlayerSessionsOutput{PlayerSessions: []types.PlayerSession{}}
	most := pageSize(in.Limit, ownListMax)
	after := engine.PlayerPlace{}
	for looked := 0; looked < ownScanMax; looked += pageMax {
		page, more, err := s.playerPage(ctx, in, status, after, pageMax)
		if err != nil {
			return nil, err
		}
		for i := range page {
			if !maker.MayTouch(page[i].Maker) {
				continue
			}
			wire := playerSessionToWire(&page[i])
			wire.PlayerSessionId = nil
			out.PlayerSessions = append(out.PlayerSessions, wire)
		}
		if older := len(out.PlayerSessions) - most; older > 0 {
			out.PlayerSessions = slices.Delete(out.PlayerSessions, 0, older)
		}
		if !more {
			break
		}
		last := page[len(page)-1]
		after = engine.PlayerPlace{Created: last.Created, ID: last.ID}
	}
	return out, nil
}

func (s *Service) playerPage(ctx context.Context, in *gamelift.DescribePlayerSessionsInput, status session.PlayerStatus, after engine.PlayerPlace, size int) ([]hosting.PlayerSession, bool, error) {
	if in.PlayerId != nil { // the status filter applies only to game sessions
		return s.engine.PlayersNamed(ctx, *in.PlayerId, after, size)
	}
	id, err := s.gameSessionID(ctx, *in.GameSessionId)
	if err != nil {
		return nil, false, err
	}
	page, more, err := s.engine.PlayersIn(ctx, id, status, after, size)
	if err == nil && len(page) == 0 {
		_, err = s.engine.GameSession(ctx, id) // without players, or does it not exist?
	}
	return page, more, err
}

func (s *Service) playerSession(ctx context.Context, id string) (hosting.PlayerSession, error) {
	parsed, err := domain.ParseID[domain.PlayerSessionID](id)
	if err != nil {
		return hosting.PlayerSession{}, domain.Refuse(domain.NotFound, "player session %s not found", excerpt.Short(id))
	}
	p, err := s.engine.PlayerSession(ctx, parsed)
	if err == nil && !callerOf(ctx).Maker().MayTouch(p.Maker) {
		return hosting.PlayerSession{}, domain.Refuse(domain.NotFound, "player session %s not found", excerpt.Short(id))
	}
	return p, err
}

func playerStatus(filter *string) (session.PlayerStatus, error) {
	if filter == nil {
		return 0, nil
	}
	for s := session.Reserved; s <= session.TimedOut; s++ {
		if s.String() == *filter {
			return s, nil
		}
	}
	return 0, invalid("PlayerSessionStatusFilter: '%s' is not one of RESERVED, ACTIVE, COMPLETED, TIMEDOUT", excerpt.Short(*filter))
}

func playerSessionToWire(p *hosting.PlayerSession) types.PlayerSession {
	id, created, port := p.ID.String(), p.Created.Std(), int32(p.Port)
	wire := types.PlayerSession{
		PlayerSessionId: &id, PlayerId: &p.Player, GameSessionId: gameSessionARN(p.Region, p.GameID),
		FleetId: &p.FleetID, FleetArn: makeARN(p.Region, p.Account, "fleet/", p.FleetID),
		CreationTime: &created, Status: types.PlayerSessionStatus(p.Status.String()),
		IpAddress: text(p.IPAddress), DnsName: text(p.DNSName), Port: &port, PlayerData: text(p.Data),
	}
	if p.Ended != 0 {
		wire.TerminationTime = new(p.Ended.Std())
	}
	return wire
}
