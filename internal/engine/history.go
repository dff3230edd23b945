package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
)

// Ended records leave memory for the archive after a while. The functions here merge both. They read memory first: a record is in the
// archive before it leaves memory, so it may be read twice but never missed.

// doClaim executes a command whose caller chose an id. It looks up the id in the archive first, and again if the archive has grown
// meanwhile.
func (e *Engine) doClaim(ctx context.Context, cmd kernel.Command, claim kernel.Claim) error {
	if game, ok := claim.(*hosting.CreateGameSession); ok {
		if err := e.pinFleet(ctx, game); err != nil {
			return err
		}
	}
	for {
		kind, id := claim.Claimed()
		if kind == kernel.Nothing {
			return e.submit(ctx, cmd)
		}
		e.stateLock.RLock()
		at := e.seq.Cell().Forgotten()
		e.stateLock.RUnlock()
		record, found, err := e.archived(ctx, archiveKinds[kind], id)
		// A damaged or incomplete archive may hide that the id is taken, and perhaps no node with the missing records can be reached. Most ids are
		// new, and refusing all of them would stop every creation.
		if err = ignoreDamage(err); err != nil && !domain.IsRefused(err, domain.Overloaded) {
			return err
		}
		var data []byte
		if found {
			data = record.Data
		}
		if err := claim.SetArchived(data, at); err != nil {
			return err
		}
		if err := e.submit(ctx, cmd); !domain.IsRefused(err, domain.Stale) {
			return err
		}
	}
}

// pinFleet chooses the fleet of a CreateGameSession that names an alias and an idempotency token, because the id to look up in the archive contains
// the fleet. It is the fleet in which an earlier request with the token created its game session, else the next one by the weights of the alias's
// rollout.
func (e *Engine) pinFleet(ctx context.Context, cmd *hosting.CreateGameSession) error {
	if cmd.Alias == "" || cmd.Parameters == 0 {
		return nil
	}
	var both []string
	var next string
	if err := e.Read(ctx, func(v *cell.View) error { both, next = v.AliasFleets(cmd.Alias, cmd.Location); return nil }); err != nil {
		return err
	}
	for _, id := range both {
		_, err := e.GameSession(ctx, session.MakeID(id, cmd.Location, cmd.Name))
		if err == nil {
			cmd.Fleet = id
			return nil
		}
		if err = ignoreDamage(err); err != nil && !domain.IsRefused(err, domain.NotFound, domain.Overloaded) {
			return err
		}
	}
	cmd.Fleet = cmp.Or(next, cmd.Fleet)
	return nil
}

// ignoreDamage drops the error of a damaged archive, so that the caller continues with the readable part. The archive has logged the damage.
func ignoreDamage(err error) error {
	if _, ok := errors.AsType[*archive.Damaged](err); ok && !errors.Is(err, archive.ErrFailed) {
		return nil
	}
	return err
}

// archiveKinds maps the cell's kinds of ended records to the archive's.
var archiveKinds = map[kernel.ClaimKind]archive.Kind{
	kernel.AGameSession: archive.GameSession, kernel.APlayerSession: archive.PlayerSession, kernel.APlacement: archive.Placement,
	kernel.ATicket: archive.Ticket, kernel.AChange: archive.PlayerChange, kernel.AnAuditEntry: archive.AuditEntry,
}

// GameSession finds a game session, live or ended. It refuses with NotFound.
func (e *Engine) GameSession(ctx context.Context, id session.ID) (session.GameSession, error) {
	var g session.GameSession
	var ok bool
	err := e.Read(ctx, func(v *cell.View) error { g, ok = v.GameSession(id); return nil })
	if err != nil || ok {
		return g, err
	}
	record, ok, err := e.archived(ctx, archive.GameSession, string(id))
	if err != nil {
		return g, err
	}
	if !ok {
		return g, domain.Refuse(domain.NotFound, "game session %s not found", id)
	}
	return hosting.DecodeGameSession(record.Data)
}

// PlayerSession finds a player session, live or ended. It refuses with NotFound.
func (e *Engine) PlayerSession(ctx context.Context, id domain.PlayerSessionID) (hosting.PlayerSession, error) {
	var p hosting.PlayerSession
	var ok bool
	err := e.Read(ctx, func(v *cell.View) error { p, ok = v.PlayerSession(id); return nil })
	if err != nil || ok {
		return p, err
	}
	record, ok, err := e.archived(ctx, archive.PlayerSession, string(id[:]))
	if err != nil {
		return p, err
	}
	if !ok {
		return p, domain.Refuse(domain.NotFound, "player session %s not found", id)
	}
	return hosting.DecodePlayerSession(record.Data)
}

// Placement finds a placement, pending or ended. It refuses with NotFound.
func (e *Engine) Placement(ctx context.Context, id string) (placement.Placement, error) {
	var p placement.Placement
	var ok bool
	err := e.Read(ctx, func(v *cell.View) error { p, ok = v.Placement(id); return nil })
	if err != nil || ok {
		return p, err
	}
	record, ok, err := e.archived(ctx, archive.Placement, id)
	if err != nil {
		return p, err
	}
	if !ok {
		return p, domain.Refuse(domain.NotFound, "placement %s not found", id)
	}
	return hosting.DecodePlacement(record.Data)
}

// Ticket finds a ticket of matchmaking, active or ended. It refuses with NotFound.
func (e *Engine) Ticket(ctx context.Context, id string) (matchmaking.TicketView, error) {
	var t matchmaking.TicketView
	var ok bool
	err := e.Read(ctx, func(v *cell.View) error { t, ok = v.Ticket(id); return nil })
	if err != nil || ok {
		return t, err
	}
	record, ok, err := e.archived(ctx, archive.Ticket, id)
	if err != nil {
		return t, err
	}
	if !ok {
		return t, domain.Refuse(domain.NotFound, matchmaking.TicketNotFound)
	}
	t.Ticket, err = matchmaking.DecodeTicket(record.Data)
	return t, err
}

// scanStep bounds the records that one read of the state examines.
const scanStep = 256

// GameSessions lists the game sessions of a fleet, live and ended, in creation order, starting after `after`. more reports whether others follow the
// last one.
func (e *Engine) GameSessions(ctx context.Context, fleetID string, f hosting.GameFilter, after hosting.GamePlace, limit int) (page []session.GameSession, more bool, err error) {
	for at, done := after, false; !done && len(page) <= limit; {
		err = e.Read(ctx, func(v *cell.View) error {
			var some []session.GameSession
			some, at, done = v.GameSessions(fleetID, f, at.Created, at.ID, scanStep)
			page = append(page, some...)
			return nil
		})
		if err != nil {
			return nil, false, err
		}
	}
	if f.Status == 0 || f.Status == session.Terminated {
		page, err = e.addArchivedGames(ctx, page, fleetID, f, after, limit)
		if err != nil {
			return nil, false, err
		}
	}
	slices.SortFunc(page, func(a, b session.GameSession) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID, b.ID))
	})
	page = slices.CompactFunc(page, func(a, b session.GameSession) bool { return a.ID == b.ID })
	more = len(page) > limit
	return page[:min(limit, len(page))], more, nil
}

func (e *Engine) addArchivedGames(ctx context.Context, page []session.GameSession, fleetID string, f hosting.GameFilter, after hosting.GamePlace, limit int) ([]session.GameSession, error) {
	at := archive.Cursor{Created: int64(after.Created), ID: string(after.ID)}
	for found := 0; found <= limit; {
		records, err := e.archivedList(ctx, archive.GameSession, archive.ByFleet, fleetID, at, limit+1)
		if err = ignoreDamage(err); err != nil {
			return nil, err
		}
		var some []session.GameSession
		for _, r := range records {
			g, err := hosting.DecodeGameSession(r.Data)
			if err != nil {
				return nil, err
			}
			if f.Matches(&g) {
				some = append(some, g)
			}
			at = archive.Cursor{Created: r.Created, ID: r.ID}
		}
		if some, err = e.withoutReplaced(ctx, some); err != nil {
			return nil, err
		}
		page, found = append(page, some...), found+len(some)
		if len(records) <= limit {
			break
		}
	}
	return page, nil
}

// withoutReplaced removes archived game sessions whose id a later one in memory has taken: earlier attempts of the same placement, or one to which
// the caller of CreateGameSession gave the placement's name. Once the later one is archived, it replaces them there.
func (e *Engine) withoutReplaced(ctx context.Context, archived []session.GameSession) (left []session.GameSession, err error) {
	err = e.Read(ctx, func(v *cell.View) error {
		left = slices.DeleteFunc(archived, func(g session.GameSession) bool {
			later, ok := v.GameSession(g.ID)
			return ok && later.Created != g.Created
		})
		return nil
	})
	return left, err
}

// PlayerPlace is a position in the creation order of player sessions.
type PlayerPlace struct {
	Created domain.Time
	ID      domain.PlayerSessionID
}

// PlayersIn lists the player sessions of a game session, live and ended, in creation order, starting after `after`. Status 0 selects all.
func (e *Engine) PlayersIn(ctx context.Context, game session.ID, status session.PlayerStatus, after PlayerPlace, limit int) ([]hosting.PlayerSession, bool, error) {
	var page []hosting.PlayerSession
	archivedAfter := after
	err := e.Read(ctx, func(v *cell.View) error {
		page = v.PlayersIn(game, status, after.Created, after.ID, limit+1)
		if g, ok := v.GameSession(game); ok && after.Created < g.Created { // earlier ones belong to a game session whose id this one has taken
			archivedAfter = PlayerPlace{Created: g.Created}
		}
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	if status.Live() {
		return page[:min(limit, len(page))], len(page) > limit, nil
	}
	return e.withArchivedPlayers(ctx, page, archive.ByGroup, string(game), status, archivedAfter, limit)
}

// PlayersNamed lists the player sessions of a player, live and ended, like PlayersIn.
func (e *Engine) PlayersNamed(ctx context.Context, player string, after PlayerPlace, limit int) ([]hosting.PlayerSession, bool, error) {
	var page []hosting.PlayerSession
	err := e.Read(ctx, func(v *cell.View) error {
		page = v.PlayersNamed(player, after.Created, after.ID, limit+1)
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	return e.withArchivedPlayers(ctx, page, archive.ByPlayer, player, 0, after, limit)
}

func (e *Engine) withArchivedPlayers(ctx context.Context, page []hosting.PlayerSession, index archive.Index, key string, status session.PlayerStatus, after PlayerPlace, limit int) ([]hosting.PlayerSession, bool, error) {
	at := archive.Cursor{Created: int64(after.Created)}
	if !after.ID.IsZero() {
		at.ID = string(after.ID[:])
	}
	for found := 0; found <= limit; {
		records, err := e.archivedList(ctx, archive.PlayerSession, index, key, at, limit+1)
		if err = ignoreDamage(err); err != nil {
			return nil, false, err
		}
		for _, r := range records {
			p, err := hosting.DecodePlayerSession(r.Data)
			if err != nil {
				return nil, false, err
			}
			if status == 0 || p.Status == status {
				page = append(page, p)
				found++
			}
			at = archive.Cursor{Created: r.Created, ID: r.ID}
		}
		if len(records) <= limit {
			break
		}
	}
	slices.SortFunc(page, func(a, b hosting.PlayerSession) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), strings.Compare(string(a.ID[:]), string(b.ID[:])))
	})
	page = slices.CompactFunc(page, func(a, b hosting.PlayerSession) bool { return a.ID == b.ID })
	return page[:min(limit, len(page))], len(page) > limit, nil
}
