package streams

import (
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/playerapi/socket"
)

// gapStep is the number of streams that one read of the state examines.
const gapStep = 128

// missed brings all streams up to date with the state, because this node has missed events.
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
			return // the door is closing, or the engine has stopped
		}
		for i, s := range some {
			x.catchUp(s, &stands[i])
		}
	}
}

// stand is what a stream lacks compared with the state.
type stand struct {
	missed []playerflow.PlayerEvent
	whole  bool // the state still has all missed events
	code   uint16
	stream uint64 // number of the player's present stream, which may be at another node
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

// catchUp sends a stream what it missed. If that is not possible, or the client is not greeted yet, it drops the stream: the client
// reconnects and begins with the complete state.
func (x *Streams) catchUp(s *stream, at *stand) {
	x.moved(s.player, at.stream)
	if !at.whole {
		s.drop()
		return
	}
	for i := range at.missed {
		e := &at.missed[i]
		tail, err := x.events.Tail(x.ctx, e.Seq, &e.Told, s.player)
		if err != nil {
			s.close(socket.Draining)
			return
		}
		s.tell(e.Seq, tail)
	}
	if at.code != 0 {
		s.close(at.code)
	}
}

// awaits returns the number of the next event for the client; 0 before the greeting.
func (s *stream) awaits() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}
