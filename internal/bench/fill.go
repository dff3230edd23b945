package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"

	"github.com/musterhq/muster/internal/datadir"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/settings"
)

// localCell is a cell in this process: with the real engine, journal and archive, but without real connections of game servers, because a
// machine does not have a hundred thousand sockets.
type localCell struct {
	*engine.Engine
	dir *datadir.Dir
}

// openCell opens the cell of a data directory as the service does.
func openCell(ctx context.Context, data string, snapshotEvery int64, log *slog.Logger) (*localCell, error) {
	return openCellWith(ctx, data, settings.Defaults().Cell(), snapshotEvery, log)
}

func openCellWith(ctx context.Context, data string, config cell.Config, snapshotEvery int64, log *slog.Logger) (*localCell, error) {
	d, err := datadir.Open(datadir.Options{Dir: data, Program: "muster bench"})
	if err != nil {
		return nil, err
	}
	c := &localCell{dir: d}
	c.Engine, err = engine.Open(ctx, engine.Config{
		Journal: d.Journal, Archive: d.Archive, Cell: config, SnapshotEvery: snapshotEvery, Log: log, Loaded: d.CheckState,
	})
	if err == nil {
		err = d.Commit(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *localCell) close() error {
	var errs []error
	if c.Engine != nil {
		errs = append(errs, c.Engine.Close())
	}
	return errors.Join(append(errs, c.dir.Close())...)
}

// localGame is an ACTIVE game session with its simulated game server.
type localGame struct {
	id      session.ID
	process fleet.Key
	players []domain.PlayerSessionID
}

const (
	localFleet    = "fleet-5f1c0c9e-6d0a-4a7b-9a55-0e2b7c3d1f00"
	localComputes = 10
	filling       = 512 // concurrent commands while a cell is filled

	seatsInCommand = 25 // the API's limit for CreatePlayerSessions
)

// do executes a command: an engine's Do, or a cell's Execute.
type do func(kernel.Command) error

// fillHosts creates a location, a fleet and computes.
func fillHosts(do do) error {
	commands := []kernel.Command{
		&hosting.CreateLocation{Name: location, Region: region, Account: "000000000000"},
		&hosting.CreateFleet{Fleet: fleet.Fleet{ID: localFleet, Region: region, Account: "000000000000", Name: "bench"}, Locations: []string{location}},
	}
	for i := range localComputes {
		commands = append(commands, &hosting.RegisterCompute{Compute: fleet.Compute{
			FleetID: localFleet, Name: "host-" + strconv.Itoa(i), Location: location, IPAddress: "127.0.0.1",
		}})
	}
	for _, cmd := range commands {
		if err := do(cmd); err != nil {
			return fmt.Errorf("%T: %w", cmd, err)
		}
	}
	return nil
}

// fillGame creates a game session with connected players.
func fillGame(do do, i, players int) (localGame, error) {
	key := fleet.Key{Fleet: localFleet, Compute: "host-" + strconv.Itoa(i%localComputes), Process: randomID().String()}
	create := &hosting.CreateGameSession{Fleet: localFleet, Location: location, Name: session.NameID(randomID()).String(), PlayersMax: seatsMax}
	for _, cmd := range []kernel.Command{
		&hosting.ConnectProcess{Process: key, Link: uint64(i) + 1, SDK: "Go 5.5.0"},
		&hosting.ActivateProcess{Process: key, Link: uint64(i) + 1, Port: 7777, SDK: "Go 5.5.0", Request: uint64(i) + 1},
		&hosting.ReportHealth{Process: key, Healthy: true},
		create,
	} {
		if err := do(cmd); err != nil {
			return localGame{}, fmt.Errorf("%T: %w", cmd, err)
		}
	}
	made := &create.Game // perhaps on the process of another caller
	g := localGame{id: made.ID, process: fleet.Key{Fleet: made.FleetID, Compute: made.ComputeName, Process: made.ProcessID}}
	for _, cmd := range []kernel.Command{
		&hosting.PromptGameSession{Process: g.process, Game: g.id},
		&hosting.ActivateGameSession{Process: g.process, Game: g.id},
	} {
		if err := do(cmd); err != nil {
			return g, fmt.Errorf("%T: %w", cmd, err)
		}
	}
	for len(g.players) < players {
		reserve := &hosting.ReservePlayers{Game: g.id}
		for range min(seatsInCommand, players-len(g.players)) {
			id := domain.PlayerSessionID(randomID())
			g.players = append(g.players, id)
			reserve.Players = append(reserve.Players, hosting.NewPlayer{ID: id, Player: playerOf(i, len(g.players))})
		}
		if err := do(reserve); err != nil {
			return g, err
		}
	}
	for _, id := range g.players { // connected players have no deadlines, so the state does not change
		if err := do(&hosting.AcceptPlayer{Process: g.process, Game: g.id, Player: id, Request: rand.Uint64() | 1}); err != nil {
			return g, err
		}
	}
	return g, nil
}

// playerOf returns the id of the n-th player in a game session, from 1.
func playerOf(game, n int) string { return "player-" + strconv.Itoa(game) + "-" + strconv.Itoa(n) }

// fill fills a cell through its engine.
func fill(ctx context.Context, e *engine.Engine, games, players int) ([]localGame, error) {
	through := func(cmd kernel.Command) error { return e.Do(ctx, cmd) }
	if err := fillHosts(through); err != nil {
		return nil, err
	}
	all := make([]localGame, games)
	err := inParallel(games, filling, func(i int) (err error) {
		all[i], err = fillGame(through, i, players/games)
		return err
	})
	return all, err
}

func randomID() (id domain.UUID) {
	binary.LittleEndian.PutUint64(id[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(id[8:], rand.Uint64())
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id
}
