package streams

import (
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/playerapi/socket"
)

// gapStep is how many streams one read of the state looks at.
const gapStep = 128

// missed brings all streams up to the state, because this node has missed events.
func (x *Streams) missed() {
	x.mu.Lock()
	for player := range x.polls {
		x.wakePolls(player)
	}
	x.mu.Unlock()
	for all := x.all(); len(all) > 0; {
		some := all[:min(gapStep, len(all))]
		all = all[len(some):]
		stands := make([]stand, len(some))
		err := x.State.ReadHere(x.ctx, func(v *cell.View) error {
			for i, s := range some {
				stands[i] = standOf(v, s)
			}
			return nil
		})
		if err != nil {
			return // the door closes, or the engine has stopped
		}
		for i, s := range some {
			x.catchUp(s, &stands[i])
		}
	}
}

// stand is how far a stream is behind the state.
type stand struct {
	missed []playerflow.PlayerEvent
	whole  bool // all of them are still there
	code   uint16
	stream uint64 // number of the player's stream, which may be at another node
}

func standOf(v *cell.View, s *stream) (x stand) {
	switch login, ok := v.Login(s.session); {
	case !ok:
		x.code = socket.Ended
	case login.State != flow.LoginLive:
		x.code = socket.Replaced
	}
	x.stream = v.StreamOf(s.player)
	if next := s.awaits(); next > 0 {
		x.missed, _, x.whole = v.EventsAfter(s.player, next-1, flow.EventsLimit)
	}
	return x
}

// catchUp sends a stream what it missed. One that cannot have it, or that is just being greeted, is dropped: its client comes back, and begins with
// everything.
func (x *Streams) catchUp(s *stream, at *stand) {
	x.moved(s.player, at.stream)
	if !at.whole {
		s.drop()
		return
	}
	for i := range at.missed {
		e := &at.missed[i]
		s.tell(e.Seq, x.events.Tail(x.ctx, e.Seq, &e.Told, s.player))
	}
	if at.code != 0 {
		s.close(at.code)
	}
}

// awaits returns the number of the event that the client does not have yet; 0 before it was greeted.
func (s *stream) awaits() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}
