package serverlink

import (
	"context"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
)

// pageMax is the largest number of player sessions in one answer: Unreal's build of the SDK stores 50 and drops the rest.
// docs/spec/server-sdk.md#describe.
const pageMax = 50

var playerStatuses = map[string]session.PlayerStatus{
	"": 0, "RESERVED": session.Reserved, "ACTIVE": session.PlayerActive, "COMPLETED": session.Completed, "TIMEDOUT": session.TimedOut,
}

// describePlayers answers DescribePlayerSessions: one page of the player sessions of a game session, of a player in this
// fleet, or a single one. A process can read only its own game session.
func (l *link) describePlayers(ctx context.Context, b []byte, r *request) ([]byte, error) {
	p := l.process
	status, ok := playerStatuses[r.status]
	if !ok {
		return b, domain.Refuse(domain.Invalid, "PlayerSessionStatusFilter is %.40q, must be RESERVED, ACTIVE, COMPLETED or TIMEDOUT", r.status)
	}
	given := 0
	for _, id := range []string{r.gameSession, r.playerSession, r.player} {
		if id != "" {
			given++
		}
	}
	if given != 1 {
		return b, domain.Refuse(domain.Invalid, "%d of GameSessionId, PlayerSessionId and PlayerId are given, must be exactly one", given)
	}
	if r.playerSession != "" { // Limit and NextToken are ignored
		one, err := l.onePlayer(ctx, r.playerSession)
		if err != nil || status != 0 && one.Status != status {
			return appendPlayerSessions(b, r, nil, ""), err
		}
		return appendPlayerSessions(b, r, toPlayerSessions(one), ""), nil
	}
	limit := r.limit
	switch {
	case limit < 0:
		return b, domain.Refuse(domain.Invalid, "Limit is %d, must not be negative", limit)
	case limit == 0 || limit > pageMax:
		limit = pageMax
	}
	after, err := parsePlace(r.nextToken)
	if err != nil {
		return b, err
	}
	var page []hosting.PlayerSession
	var more bool
	if r.gameSession != "" {
		g, err := p.server.engine.GameSession(ctx, gameID(r.gameSession))
		if err == nil && !hosts(p, &g) {
			err = domain.Refuse(domain.NotYours, "game session %s is not hosted by server process %s", g.ID, p.key.Process)
		}
		if err != nil {
			return b, err
		}
		page, more, err = p.server.engine.PlayersIn(ctx, g.ID, status, after, limit)
		if err != nil {
			return b, err
		}
	} else {
		page, more, err = p.playersNamed(ctx, r.player, status, after, limit)
		if err != nil {
			return b, err
		}
	}
	next := ""
	if more {
		next = placeText(page[len(page)-1])
	}
	return appendPlayerSessions(b, r, toPlayerSessions(page...), next), nil
}

func (l *link) onePlayer(ctx context.Context, text string) (one hosting.PlayerSession, err error) {
	p := l.process
	id, err := playerID(text)
	if err == nil {
		one, err = p.server.engine.PlayerSession(ctx, id)
	}
	if err != nil {
		return one, err
	}
	g, err := p.server.engine.GameSession(ctx, one.GameID)
	if err == nil && !hosts(p, &g) {
		err = domain.Refuse(domain.NotYours, "PlayerSession (%s) is not in a game session of server process %s", text, p.key.Process)
	}
	return one, err
}

// playersNamed lists the player sessions of a player in this process's fleet.
func (p *process) playersNamed(ctx context.Context, player string, status session.PlayerStatus, after engine.PlayerPlace, limit int) (page []hosting.PlayerSession, more bool, err error) {
	for {
		some, rest, err := p.server.engine.PlayersNamed(ctx, player, after, limit+1)
		if err != nil {
			return nil, false, err
		}
		for _, one := range some {
			after = engine.PlayerPlace{Created: one.Created, ID: one.ID}
			if one.FleetID != p.key.Fleet || status != 0 && one.Status != status {
				continue
			}
			if len(page) == limit {
				return page, true, nil
			}
			page = append(page, one)
		}
		if !rest {
			return page, false, nil
		}
	}
}

func toPlayerSessions(page ...hosting.PlayerSession) []playerSession {
	out := make([]playerSession, len(page))
	for i := range page {
		p := &page[i]
		out[i] = playerSession{
			player: p.Player, id: p.ID.String(), gameSession: p.GameID.ARN(p.Region), fleet: p.FleetID, data: p.Data,
			ipAddress: p.IPAddress, dnsName: p.DNSName, port: int(p.Port), created: p.Created, ended: p.Ended, status: p.Status.String(),
		}
	}
	return out
}

// placeText makes a NextToken: the place after which the next page begins.
func placeText(last hosting.PlayerSession) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(int64(last.Created), 36) + "." + domain.UUID(last.ID).String()))
}

func parsePlace(token string) (engine.PlayerPlace, error) {
	if token == "" {
		return engine.PlayerPlace{}, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	created, id, _ := strings.Cut(string(text), ".")
	at, err2 := strconv.ParseInt(created, 36, 64)
	uuid, ok := domain.ParseUUID(id)
	if err != nil || err2 != nil || !ok {
		return engine.PlayerPlace{}, domain.Refuse(domain.Invalid, "NextToken %.60q is not one that an answer gave", token)
	}
	return engine.PlayerPlace{Created: domain.Time(at), ID: domain.PlayerSessionID(uuid)}, nil
}
