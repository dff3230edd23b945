package sim

import (
	"errors"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
)

// repetition repeats an acknowledged request with the same RequestId or token, as clients do after a lost answer or a timeout. It must
// change nothing, and check reports whether an answer is right.
type repetition struct {
	again func() kernel.Command // nil: not now
	check func(cmd kernel.Command, reason domain.Reason) bool
}

// repeatsMax bounds the acknowledged requests that may be repeated.
const repeatsMax = 60

// remember stores an acknowledged request that may be repeated.
func (k *known) remember(w *World, cmd kernel.Command) {
	r := repetitionOf(w, cmd)
	if r.again == nil {
		return
	}
	if len(k.repeats) < repeatsMax {
		k.repeats = append(k.repeats, r)
	} else {
		k.repeats[w.chance.IntN(repeatsMax)] = r
	}
}

func repetitionOf(w *World, cmd kernel.Command) repetition {
	accepted := domain.Reason(0)
	switch first := cmd.(type) {
	case *hosting.AcceptPlayer:
		return repetition{
			func() kernel.Command { again := *first; return &again },
			func(_ kernel.Command, got domain.Reason) bool {
				p, archived := w.archivedPlayer(w.node.archive, first.Player)
				return got == accepted || got == domain.NotFound && archived && p.Accept == first.Request
			},
		}
	case *hosting.RemovePlayer:
		return repetition{
			func() kernel.Command { again := *first; return &again },
			func(_ kernel.Command, got domain.Reason) bool {
				p, archived := w.archivedPlayer(w.node.archive, first.Player)
				return got == accepted || got == domain.NotFound && archived && p.Status == session.Completed
			},
		}
	case *hosting.EndProcess:
		return repetition{
			func() kernel.Command {
				v := w.node.seq.Cell().View()
				if p, ok := v.Process(first.Process); ok && p.Ending != first.Request || len(w.node.queue) > 0 {
					return nil // superseded
				}
				again := *first
				return &again
			},
			func(_ kernel.Command, got domain.Reason) bool { return got == accepted || got == domain.NotFound },
		}
	case *hosting.ActivateGameSession:
		return repetition{
			func() kernel.Command { again := *first; return &again },
			func(_ kernel.Command, got domain.Reason) bool {
				return got == accepted || got == domain.NotFound || got == domain.WrongGameStatus && w.ended(first.Game)
			},
		}
	case *hosting.PromptGameSession:
		meant := w.createdAt(first.Game)
		return repetition{
			func() kernel.Command {
				if w.createdAt(first.Game) != meant || len(w.node.queue) > 0 {
					return nil // the placement has tried again, with a new game session of this name
				}
				again := *first
				return &again
			},
			func(_ kernel.Command, got domain.Reason) bool { return got != accepted },
		}
	case *hosting.ActivateProcess:
		return repetition{
			func() kernel.Command {
				v := w.node.seq.Cell().View()
				if p, ok := v.Process(first.Process); !ok || p.Activation != first.Request || len(w.node.queue) > 0 {
					return nil // superseded
				}
				again := *first
				return &again
			},
			func(cmd kernel.Command, got domain.Reason) bool {
				return got == accepted && cmd.(*hosting.ActivateProcess).Repeated || got == domain.NotFound || got == domain.NodeLost // its host was removed meanwhile, or its node
			},
		}
	case *hosting.SetPlayerPolicy:
		return repetition{
			func() kernel.Command {
				v := w.node.seq.Cell().View()
				if g, ok := v.GameSession(first.Game); !ok || g.Policy != first.Request || !g.Live() || len(w.node.queue) > 0 {
					return nil // superseded
				}
				again := *first
				return &again
			},
			func(_ kernel.Command, got domain.Reason) bool {
				return got == accepted || got == domain.WrongGameStatus && w.ended(first.Game) // a tick came first
			},
		}
	case *hosting.CreateGameSession:
		if first.Parameters == 0 {
			return repetition{}
		}
		return repetition{
			func() kernel.Command { again := *first; again.Game = session.GameSession{}; return &again },
			func(cmd kernel.Command, got domain.Reason) bool {
				g := cmd.(*hosting.CreateGameSession).Game
				same := g.ID == first.Game.ID && g.Created == first.Game.Created && g.ProcessID == first.Game.ProcessID
				return got == accepted && same || got == domain.NotFound // its fleet was deleted
			},
		}
	}
	return repetitionOfCall(w, cmd)
}

// ended reports whether a game session is past being active.
func (w *World) ended(id session.ID) bool {
	v := w.node.seq.Cell().View()
	g, ok := v.GameSession(id)
	return !ok || g.Status > session.Active
}

// repeat sends an acknowledged request again.
func (n *node) repeat() {
	k := &n.w.known
	if len(k.repeats) == 0 {
		return
	}
	r := k.repeats[n.w.chance.IntN(len(k.repeats))]
	cmd := r.again()
	if cmd == nil {
		return
	}
	n.w.counts.Repeats++
	n.sendAgain(r, cmd)
}

func (n *node) sendAgain(r repetition, cmd kernel.Command) {
	submit := func() {
		n.submit(cmd, func(err error) { n.repeated(r, cmd, err) })
		n.queue[len(n.queue)-1].still = true
	}
	if claim, ok := cmd.(kernel.Claim); ok {
		n.lookUp(claim, submit)
	} else {
		submit()
	}
}

// repeated checks the answer to a repeated request.
func (n *node) repeated(r repetition, cmd kernel.Command, err error) {
	var reason domain.Reason
	if refusal, ok := errors.AsType[*domain.Refusal](err); ok {
		reason = refusal.Reason
	}
	switch {
	case errors.Is(err, errLost):
	case reason == domain.Stale:
		n.sendAgain(r, cmd)
	case !r.check(cmd, reason):
		n.w.violated("%+v was acknowledged before and is now answered with %v", cmd, err)
	}
}

// createdAt returns the creation time of a live game session; 0 if there is none.
func (w *World) createdAt(id session.ID) domain.Time {
	v := w.node.seq.Cell().View()
	g, _ := v.GameSession(id)
	return g.Created
}
