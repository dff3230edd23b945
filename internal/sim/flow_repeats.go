package sim

import (
	"reflect"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// onceOnly is the prefix of unique request ids, so that a repeat is recognizable.
const onceOnly = "once-"

// callerOf returns the player who sent a command; nil if it is not a player's.
func callerOf(cmd kernel.Command) *playerflow.Caller {
	x := reflect.ValueOf(cmd).Elem().FieldByName("Caller")
	if !x.IsValid() {
		return nil
	}
	by, _ := x.Addr().Interface().(*playerflow.Caller)
	return by
}

// repetitionOfCall is a player's call that is repeated with its X-Request-Id, also after restarts: it gets the first answer again, with
// the same reservation (docs/spec/reconnect.md#r14), unless another device has taken over or the player has logged out.
func repetitionOfCall(w *World, first kernel.Command) repetition {
	by := callerOf(first)
	if by == nil || !strings.HasPrefix(by.Request, onceOnly) || by.Repeated {
		return repetition{}
	}
	at := w.now
	answer := *by
	return repetition{
		func() kernel.Command {
			if w.now.Sub(at) > 5*time.Minute { // the service stores it for ten, and the repeat may have to wait
				return nil
			}
			again := reflect.New(reflect.TypeOf(first).Elem())
			again.Elem().Set(reflect.ValueOf(first).Elem())
			cmd := again.Interface().(kernel.Command)
			*callerOf(cmd) = playerflow.Caller{Player: answer.Player, LoginSessionID: answer.LoginSessionID, Request: answer.Request}
			return cmd
		},
		func(cmd kernel.Command, got domain.Reason) bool {
			if got != 0 {
				v := w.node.seq.Cell().View()
				l, ok := v.Login(answer.LoginSessionID)
				return !ok || l.State != flow.LoginLive
			}
			now := callerOf(cmd)
			w.saw("%s again", reflect.TypeOf(cmd).Elem().Name())
			return now.Repeated && now.Made == answer.Made && now.Flow == answer.Flow
		},
	}
}

// toldCall compares the answer to a call with the durable state.
func (w *World) toldCall(cmd kernel.Command) {
	if w.cell.PlayerFlow.Flow == nil {
		return
	}
	w.toldStand(cmd)
	switch cmd := cmd.(type) {
	case *playerflow.GetHostConnectionDetails:
		if made := cmd.Made; !cmd.Repeated && !made.IsZero() && w.games.owner[domain.PlayerSessionID(made)] != cmd.Player {
			w.violated("%s was told of %s, which is not durable", cmd.Player, domain.PlayerSessionID(made))
		}
	case *playerflow.EndGame:
		if s, ok := w.games.status[cmd.Instance]; ok && s != flow.InstanceEnded {
			w.violated("%s has ended, says the answer; durable is %s", cmd.Instance, s)
		}
	}
}

// toldStand compares the answer to a player's call with the durable state: later answers to the client must not show an older one.
func (w *World) toldStand(cmd kernel.Command) {
	by := callerOf(cmd)
	if by == nil || by.Look {
		return
	}
	if rev, seq := w.told.rev[by.Player], w.told.seq[by.Player]; by.Flow.Rev > rev || by.Flow.Seq > seq {
		w.violated("%T was answered with revision %d, event %d; durable are %d and %d", cmd, by.Flow.Rev, by.Flow.Seq, rev, seq)
	}
}
