package sim

import (
	"fmt"
	"reflect"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// saw counts situations of a run, so that a test can check that the draws reach them.
func (w *World) saw(format string, args ...any) {
	if w.seen == nil {
		w.seen = map[string]int{}
	}
	w.seen[fmt.Sprintf(format, args...)]++
}

// sawCommand counts how a command of player flow ended, directly after its decision.
func (w *World) sawCommand(cmd kernel.Command, err error) {
	if w.cell.PlayerFlow.Flow == nil {
		return
	}
	name := reflect.TypeOf(cmd).Elem().Name()
	if err != nil {
		if code := flow.CodeOf(err); code != flow.Unavailable {
			w.saw("%s %s", name, code)
		} else {
			w.saw("%s refused", name)
		}
		return
	}
	w.saw("%s", name)
	switch cmd := cmd.(type) {
	case *playerflow.Login:
		if s := w.games.members[cmd.Player].Status; s != 0 {
			w.saw("%s while %s", name, s)
		}
	case *playerflow.GetHostConnectionDetails:
		if cmd.Lost {
			w.saw("%s seat lost", name)
		}
		if cmd.Repeated {
			w.saw("%s repeated", name)
		}
	case *playerflow.AddMembers:
		for _, x := range cmd.Failed {
			w.saw("%s failed %s", name, x.Why)
		}
		if len(cmd.Failed) < len(cmd.Players) {
			w.saw("%s seated", name)
		}
	case *playerflow.ReleaseMembers:
		w.saw("%s unknown %d", name, len(cmd.Unknown))
	case *playerflow.DisconnectMember:
		if cmd.Stale {
			w.saw("%s stale", name)
		}
	case *playerflow.EnterBackfill:
		if len(cmd.Teams) > 0 {
			w.saw("%s with teams", name)
		}
	case *playerflow.LeaveBackfill:
		if cmd.Ticket != "" {
			w.saw("%s ended one", name)
		}
	}
}
