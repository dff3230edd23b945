package sim

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
)

// pushBook reads from the durable events which game session was to be pushed to which game server. The id of a placement's game session
// may be pushed to two game servers, if the first attempt was not activated and the second took the id. Between the two pushes the
// journal has the end of the first attempt. No other second push is permitted: the game would be started twice.
type pushBook struct {
	attempts map[session.ID]*attempt // the latest of each id
	pushed   map[push]bool           // in the journal
	twice    int                     // ids that were pushed for a second attempt
}

type attempt struct {
	process fleet.Key
	created domain.Time
	pushed  bool
	ended   bool
}

// push is a game session sent to a game server.
type push struct {
	game    session.ID
	process fleet.Key
	created domain.Time
}

func newPushBook() pushBook {
	return pushBook{attempts: map[session.ID]*attempt{}, pushed: map[push]bool{}}
}

func (b *pushBook) event(w *World, at domain.Time, e kernel.Event) {
	switch e := e.(type) {
	case *hosting.GameSessionCreated:
		if old := b.attempts[e.ID]; old != nil {
			switch {
			case !old.ended:
				w.violated("%s was given to %s while it is on %s", e.ID, e.Process, old.process)
			case e.Placement == "":
				w.violated("%s was created a second time", e.ID)
			}
		}
		b.attempts[e.ID] = &attempt{process: e.Process, created: at}
	case *hosting.GameSessionPrompted:
		a := b.attempts[e.ID]
		if a == nil || a.pushed || a.ended {
			w.violated("%s was to be pushed when it was %+v", e.ID, a)
		}
		a.pushed = true
		for earlier := range b.pushed {
			if earlier.game == e.ID {
				b.twice++
			}
		}
		b.pushed[push{e.ID, a.process, a.created}] = true
	case *hosting.GameSessionEnded:
		if a := b.attempts[e.ID]; a != nil {
			a.ended = true
		}
	}
}

// toldPush records a sent push, whose event was acknowledged.
func (k *known) toldPush(cmd *hosting.PromptGameSession) {
	k.pushes = append(k.pushes, push{cmd.Prompted.ID, cmd.Process, cmd.Prompted.Created})
}

// checkPushes compares every sent push with the journal. One that the journal has lost could be sent again, to another game server.
func (w *World) checkPushes() {
	for _, p := range w.known.pushes {
		if !w.chronicle.pushes.pushed[p] {
			w.violated("%s was pushed to %s, and the journal does not know of it", p.game, p.process)
		}
	}
}
