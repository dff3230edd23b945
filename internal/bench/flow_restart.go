package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/settings"
)

// flowRestart measures the start of the service with the records of many players, all logged in and in parties of two.
func (b *bench) flowRestart(ctx context.Context) error {
	dir, err := b.freshDir("flow-restart")
	if err != nil {
		return err
	}
	if err := b.fillFlow(ctx, dir); err != nil {
		return err
	}
	what := fmt.Sprintf("restart with %s players logged in, in parties of two", thousands(int64(b.sizes.flowRecords)))
	return b.startOn(ctx, dir, startAims{what, b.sizes.flowRecords, "player", "–", "–", "–"}, flowArguments(0)...)
}

// fillFlow logs players in and creates their parties, through the engine.
func (b *bench) fillFlow(ctx context.Context, dir string) error {
	began := time.Now()
	s := settings.Defaults()
	s.PlayerFlow = true
	c, err := openCellWith(ctx, dir, s.Cell(), 0, nil)
	if err != nil {
		return err
	}
	err = inParallel(b.sizes.flowRecords/2, filling, func(i int) error {
		party := flow.PartyID(randomID())
		for n := range 2 {
			login := &playerflow.Login{Player: "player-" + strconv.Itoa(2*i+n), LoginSessionID: flow.LoginSessionID(randomID()), Token: randomID(), Device: "PC", ClientVersion: "1.0"}
			if err := c.Do(ctx, login); err != nil {
				return err
			}
			caller := playerflow.Caller{Player: login.Player, LoginSessionID: login.LoginSessionID}
			var goes kernel.Command = &playerflow.CreateParty{Caller: caller, ID: party, Joinability: flow.Open}
			if n == 1 {
				goes = &playerflow.JoinParty{Caller: caller, Party: party}
			}
			if err := c.Do(ctx, goes); err != nil {
				return err
			}
		}
		return nil
	})
	err = errors.Join(err, c.close())
	b.progress("  the records of %d players written in %s", b.sizes.flowRecords, time.Since(began).Round(time.Millisecond))
	return err
}
