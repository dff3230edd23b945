package penalties

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

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

// Config has the dependencies of a desk.
type Config struct {
	State  *state.State
	Hooks  *playerhooks.Hooks // nil: no hook for penalties
	Panics *panics.Guard
}

// Desk asks the studio to decide about each penalty, at the leader. The commit that imposes the penalty cannot wait. The computed penalty
// therefore holds until the answer comes. It stays if no answer comes, if the service crashes first, or if a new leader missed the event.
//
// Each node remembers recent penalties from the events. A new leader asks again about those that the events do not show as decided. The
// question may be asked twice, and has one effect (playerflow.DecidePenalty).
type Desk struct {
	Config
	unfollow func()
	told     rate.Lines // limits log lines about penalties without a hook call; only the follower uses it

	mu    sync.Mutex
	seen  map[offenceKey]*offence // recent penalties, which later changes of the player repeat
	sweep int                     // number of them at which the old ones are forgotten
	asked chan offence            // nil while another node leads

	cancel context.CancelFunc
	done   sync.WaitGroup
}

type offence struct {
	player  string
	penalty flow.Penalty // as computed
	settled bool         // decided, or asked about by this node with the answer to keep it
}

type offenceKey struct {
	player string
	kind   flow.PenaltyKind
}

const (
	penaltiesWaiting = 1024
	penaltiesAtOnce  = 8
	offenceFresh     = 10 * time.Second // the longest time from an offence to its first event
	offenceOwed      = time.Minute      // the age from which a new leader does not ask about an offence
	leadAgain        = 100 * time.Millisecond
)

// Open begins to follow penalties. It returns nil if no hook decides about them.
func Open(c Config) *Desk {
	if !c.Hooks.On(playerhooks.DecidePenalty) {
		return nil
	}
	x := &Desk{Config: c, seen: map[offenceKey]*offence{}, told: rate.Lines{Most: 1, Period: 10 * time.Second}}
	x.unfollow = c.State.Follow(kernel.Kinds(new(playerflow.PlayerChanged)), x.committed)
	return x
}

// Close ends the desk.
func (x *Desk) Close() {
	if x == nil {
		return
	}
	x.Rest()
	x.unfollow()
}

// Lead starts to ask, also about recent undecided penalties.
func (x *Desk) Lead() {
	if x == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	x.mu.Lock()
	defer x.mu.Unlock()
	x.cancel, x.asked = cancel, make(chan offence, penaltiesWaiting)
	for _, o := range x.seen {
		if !o.settled && x.State.Instant().Sub(o.penalty.Since) <= offenceOwed {
			x.ask(o)
		}
	}
	asked := x.asked
	for range penaltiesAtOnce {
		x.done.Go(func() { x.work(ctx, asked) })
	}
}

// Rest stops asking. The next leader asks again.
func (x *Desk) Rest() {
	if x == nil {
		return
	}
	x.mu.Lock()
	cancel := x.cancel
	x.asked, x.cancel = nil, nil
	x.mu.Unlock()
	if cancel != nil {
		cancel()
		x.done.Wait()
	}
}

// committed notes new and decided penalties.
func (x *Desk) committed(c engine.Committed) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range c.Events {
		e, ok := e.Event.(*playerflow.PlayerChanged)
		if !ok {
			continue
		}
		for _, kind := range []flow.PenaltyKind{flow.Dodge, flow.Leave, flow.AFK} {
			if was := x.seen[offenceKey{e.Player, kind}]; was != nil && !slices.Contains(e.Penalties, was.penalty) {
				was.settled = true
			}
		}
		for _, p := range e.Penalties {
			key := offenceKey{e.Player, p.Kind}
			if was := x.seen[key]; was != nil && was.penalty.Since == p.Since || p.Reason == flow.ByTheOperator || c.At.Sub(p.Since) > offenceFresh {
				continue
			}
			o := &offence{player: e.Player, penalty: p}
			x.remember(key, o)
			if x.asked != nil {
				x.ask(o)
			}
		}
	}
}

// remember adds a penalty. It looks for old ones only once their number has doubled, because when many players are penalised within a minute,
// as after an outage, all of them are recent.
func (x *Desk) remember(key offenceKey, o *offence) {
	if len(x.seen) >= max(penaltiesWaiting, x.sweep) {
		for old, was := range x.seen {
			age := o.penalty.Since.Sub(was.penalty.Since)
			if age > offenceOwed || was.settled && age > offenceFresh {
				delete(x.seen, old)
			}
		}
		x.sweep = 2 * len(x.seen)
	}
	x.seen[key] = o
}

// ask queues a penalty for the workers.
func (x *Desk) ask(o *offence) {
	select {
	case x.asked <- *o:
	default:
		if write, before := x.told.Note(time.Now()); write {
			x.State.Log.Warn("penalties stay as they were computed: too many wait for the studio's decision", "count", before+1)
		}
	}
}

// settle notes that the studio has decided.
func (x *Desk) settle(o *offence) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if was := x.seen[offenceKey{o.player, o.penalty.Kind}]; was != nil && was.penalty.Since == o.penalty.Since {
		was.settled = true
	}
}

func (x *Desk) work(ctx context.Context, asked <-chan offence) {
	for {
		select {
		case o := <-asked:
			x.decide(ctx, &o)
		case <-ctx.Done():
			return
		}
	}
}

func (x *Desk) decide(ctx context.Context, o *offence) {
	defer x.Panics.Confine(state.PanicDoor, nil) // the computed penalty holds
	for x.State.Decides(ctx) != nil {
		select {
		case <-time.After(leadAgain):
		case <-ctx.Done():
			return
		}
	}
	p := &o.penalty
	answer, err := playerhooks.Ask[playerhooks.PenaltyAnswer](ctx, x.Hooks, playerhooks.DecidePenalty, playerhooks.Penalty{
		PlayerID: o.player, Kind: p.Kind.String(), Level: p.Step(), Since: objects.Stamp(p.Since), Until: objects.Stamp(p.Until), Reason: p.Reason.String(),
		GameInstanceID: objects.ID(p.Instance),
	})
	if ctx.Err() != nil {
		return
	}
	decision := &playerflow.DecidePenalty{Player: o.player, Kind: p.Kind, Since: p.Since, Given: p.Level, Until: p.Until}
	_, silent := errors.AsType[*playerhooks.Silent](err)
	switch {
	case silent: // on_timeout DENY: no penalty without the studio's answer
		decision.Clear = true
	case err != nil || answer.Decision == "" || answer.Decision == "KEEP":
		x.settle(o)
		return
	case answer.Decision == "CLEAR":
		decision.Clear = true
	default:
		decision.Level, decision.Lock = flow.LevelAt(p.Kind, answer.Level), time.Duration(answer.LockMS)*time.Millisecond
	}
	switch err := x.State.Do(ctx, decision); {
	case err == nil:
		x.settle(o)
	case ctx.Err() == nil:
		x.State.Log.Warn("the studio's decision about a penalty was not recorded", "player", o.player, "error", err)
	}
}
