package cell_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/notice"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/sim"
	"github.com/musterhq/muster/internal/sim/canon"
)

// TestRestartsAreAlike: after random commands the cell that went on, the one that replayed the journal and the one that
// loaded a snapshot and replayed the rest are the same, with the same indexes and deadlines.
func TestRestartsAreAlike(t *testing.T) {
	config := cell.DefaultConfig()
	config.Notify = &notice.Notify{Bus: true, Topics: []string{"arn:aws:sns:us-east-1:1:lobby"}, Max: 20, Age: time.Hour}
	for seed := range uint64(12) {
		chance := rand.New(rand.NewPCG(seed, 0))
		wishes := sim.NewWishes(chance)
		wishes.AddRollouts()
		config := config
		if seed%2 == 1 {
			players := flow.DefaultConfig()
			players.Games.DirectCreate, players.Games.DirectJoin, players.Games.LaxPlayers = true, true, seed%4 == 1
			config.PlayerFlow.Flow = &players
			wishes.AddFlow()
			if seed%8 == 3 {
				players.Search.PlacementQueue, players.Games.Requeue = "queue-0", true
				wishes.AddWide()
			}
		}
		if seed%3 == 2 { // so that holders reach them
			config.Quotas = &quota.Quotas{}
			config.Quotas.Set(&quota.Table{Each: quota.Numbers{quota.GameSessions: 2, quota.PlayerSessions: 4, quota.Placements: 3, quota.Tickets: 3, quota.Queues: 1, quota.Aliases: 1, quota.Computes: 2, quota.Subscriptions: 1}})
		}
		live, now := cell.New(config), domain.Time(1_700_000_000_000)
		var journal [][]byte
		loaded := cell.New(config)
		frozen := freeze(t, live)
		for range 5000 {
			v := live.View()
			cmd := wishes.Next(&v, now)
			switch n := chance.IntN(1000); {
			case n < 2:
				now, cmd = now.Add(time.Duration(chance.IntN(200_000))*time.Millisecond), &kernel.Resume{Paused: chance.IntN(2) == 0}
			case n < 10:
				now, cmd = now.Add(time.Duration(chance.IntN(100_000))*time.Millisecond), &kernel.Tick{}
			case n < 100:
				now, cmd = now.Add(time.Duration(chance.IntN(1000))*time.Millisecond), &kernel.Tick{}
			case n < 110:
				cmd = &kernel.Forget{Count: chance.IntN(4)}
			case n == 110:
				cmd = &kernel.RaiseLevel{To: kernel.Level}
			case n < 120:
				if all := v.Notices("", 0, 5); len(all) > 0 {
					cmd = &notice.DeliverNotices{Nos: []uint64{all[chance.IntN(len(all))].No}}
				}
			}
			if cmd == nil {
				continue
			}
			env := kernel.Env{Now: now, Number: uint64(len(journal) + 1)}
			binary.LittleEndian.PutUint64(env.Seed[:], chance.Uint64())
			if emitted, _ := live.Execute(cmd, &env); !emitted {
				continue
			}
			journal = append(journal, env.Batch)
			if err := loaded.Replay(env.Number, env.Batch); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if len(journal)%300 == 0 {
				if err := frozen.unchanged(); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				frozen = freeze(t, live)
				loaded = reload(t, config, loaded)
			}
			if err := cell.CheckState(live); err != nil {
				t.Fatalf("seed %d, after entry %d, %T: %v", seed, len(journal), cmd, err)
			}
		}
		replayed := cell.New(config)
		for i, batch := range journal {
			if err := replayed.Replay(uint64(i+1), batch); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		if err := errors.Join(
			canon.Differ("the replayed cell", replayed.Freeze(), live.Freeze()), cell.CheckState(replayed),
			canon.Differ("the loaded cell", loaded.Freeze(), live.Freeze()), cell.CheckState(loaded),
		); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// frozenCell is a snapshot that was written once, and must say the same later, whatever the cell does meanwhile.
type frozenCell struct {
	snapshot *kernel.Snapshot
	dump     []byte
}

func freeze(t *testing.T, c *cell.Cell) frozenCell {
	f := frozenCell{snapshot: c.Freeze()}
	var err error
	if f.dump, err = canon.Dump(f.snapshot); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f frozenCell) unchanged() error {
	dump, err := canon.Dump(f.snapshot)
	if err == nil && !bytes.Equal(dump, f.dump) {
		err = errors.New("a frozen snapshot changed when the cell went on")
	}
	return err
}

// reload returns a cell that was loaded from c's snapshot.
func reload(t *testing.T, config cell.Config, c *cell.Cell) *cell.Cell {
	var snapshot bytes.Buffer
	if err := c.Freeze().Write(&snapshot); err != nil {
		t.Fatal(err)
	}
	loaded := cell.New(config)
	if err := loaded.Load(&snapshot); err != nil {
		t.Fatal(err)
	}
	return loaded
}
