package penalties

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/state"
	"github.com/musterhq/muster/internal/playerhooks"
	"github.com/musterhq/muster/internal/rate"
)

// PenaltyConfig has the parts of a desk.
type Config struct {
	State  *state.State
	Hooks  *playerhooks.Hooks // nil: no hook for penalties
	Panics *panics.Guard
}

// PenaltyDesk asks the studio to decide about each penalty. The commit that gives the penalty cannot wait, so the computed penalty holds
// until the answer comes, and stays if none comes or the service crashes before.
type Desk struct {
	Config
	asked    chan offence
	unfollow func()
	cancel   context.CancelFunc
	done     sync.WaitGroup

	// Only the follower uses these.
	seen map[offenceKey]domain.Time // recent penalties, which other changes of the player repeat
	told rate.Lines                 // for penalties without a hook call
}

type offence struct {
	player  string
	penalty flow.Penalty
}

type offenceKey struct {
	player string
	kind   flow.PenaltyKind
}

const (
	penaltiesWaiting = 1024
	penaltiesAtOnce  = 8
	offenceFresh     = 10 * time.Second // from an offence to its first event
)

func Open(c Config) *Desk {
	if !c.Hooks.On(playerhooks.DecidePenalty) {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	x := &Desk{Config: c, asked: make(chan offence, penaltiesWaiting), cancel: cancel, seen: map[offenceKey]domain.Time{}, told: rate.Lines{Most: 1, Period: 10 * time.Second}}
	for range penaltiesAtOnce {
		x.done.Go(func() { x.work(ctx) })
	}
	x.unfollow = c.State.Follow(kernel.Kinds(new(playerflow.PlayerChanged)), x.committed)
	return x
}

func (x *Desk) Close() {
	if x == nil {
		return
	}
	x.unfollow()
	x.cancel()
	x.done.Wait()
}

// committed finds new penalties.
func (x *Desk) committed(c engine.Committed) {
	for _, e := range c.Events {
		e, ok := e.Event.(*playerflow.PlayerChanged)
		if !ok {
			continue
		}
		for _, p := range e.Penalties {
			key := offenceKey{e.Player, p.Kind}
			if p.Reason == flow.ByTheOperator || c.At.Sub(p.Since) > offenceFresh || x.seen[key] == p.Since {
				continue
			}
			x.remember(key, p.Since)
			select {
			case x.asked <- offence{e.Player, p}:
			default:
				x.drop()
			}
		}
	}
}

func (x *Desk) remember(key offenceKey, since domain.Time) {
	if len(x.seen) >= penaltiesWaiting {
		for old, at := range x.seen {
			if since.Sub(at) > offenceFresh {
				delete(x.seen, old)
			}
		}
	}
	x.seen[key] = since
}

func (x *Desk) drop() {
	if write, before := x.told.Note(time.Now()); write {
		x.State.Log.Warn("penalties hold as they were computed: too many wait for the studio's decision", "count", before+1)
	}
}

func (x *Desk) work(ctx context.Context) {
	for {
		select {
		case o := <-x.asked:
			x.decide(ctx, &o)
		case <-ctx.Done():
			return
		}
	}
}

func (x *Desk) decide(ctx context.Context, o *offence) {
	defer x.Panics.Confine(state.PanicDoor, nil) // the computed penalty holds
	p := &o.penalty
	answer, err := playerhooks.Ask[playerhooks.PenaltyAnswer](ctx, x.Hooks, playerhooks.DecidePenalty, playerhooks.Penalty{
		PlayerID: o.player, Kind: p.Kind.String(), Level: p.Step(), Since: objects.Stamp(p.Since), Until: objects.Stamp(p.Until), Reason: p.Reason.String(),
		GameInstanceID: objects.ID(p.Instance),
	})
	decision := &playerflow.DecidePenalty{Player: o.player, Kind: p.Kind, Since: p.Since}
	_, silent := errors.AsType[*playerhooks.Silent](err)
	switch {
	case silent: // on_timeout DENY: no penalty without the studio's word
		decision.Clear = true
	case err != nil || answer.Decision == "" || answer.Decision == "KEEP":
		return
	case answer.Decision == "CLEAR":
		decision.Clear = true
	default:
		decision.Level, decision.Lock = flow.LevelAt(p.Kind, answer.Level), time.Duration(answer.LockMS)*time.Millisecond
	}
	if err := x.State.Do(ctx, decision); err != nil && ctx.Err() == nil {
		x.State.Log.Warn("the studio's decision about a penalty was not written down", "player", o.player, "error", err)
	}
}
