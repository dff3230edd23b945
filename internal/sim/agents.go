package sim

import (
	"fmt"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/exit"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// agentReport is an agent's report that a server process ended. It compares the state before and after.
type agentReport struct {
	hosting.ReportExit
	world *World
	pool  *pool
}

// agentReports makes the agent of a host report the end of one of its processes, or of one that the service does not know.
func agentReports(w *World, p *pool) maker {
	return maker{8, func(x *Wishes, v *cell.View) kernel.Command {
		all := everyProcess(v)
		if len(all) == 0 {
			return nil
		}
		key := all[x.chance.IntN(len(all))].Key
		if x.oneIn(8) {
			key.Process = fmt.Sprint("unknown-", x.chance.IntN(3))
		}
		reasons := []string{"SERVER_PROCESS_CRASHED", "NORMAL_TERMINATION", "SERVER_PROCESS_INVALID_PATH", "COMPUTE_SHUTTING_DOWN", "CUSTOMER_INITIATED"}
		at := x.chance.IntN(len(reasons))
		r := &agentReport{world: w, pool: p, ReportExit: hosting.ReportExit{Process: key, Exit: exit.Report{Reason: reasons[at], HasCode: true, Output: "bye"}}}
		if at%2 == 0 && at < 3 {
			r.Event = reasons[at]
		}
		return r
	}}
}

// onCompute returns the service's records of a compute and the processes on it.
func onCompute(v *cell.View, key fleet.Key) (x fleet.Compute, others map[fleet.Key]fleet.Process) {
	x, _ = v.Compute(key.Fleet, key.Compute)
	others = map[fleet.Key]fleet.Process{}
	for _, p := range v.ProcessesOn(key.Fleet, key.Compute) {
		if p.Key != key {
			others[p.Key] = p
		}
	}
	return x, others
}

// Decide reports. A report ends the named process with its game session, and counts once however often it is repeated. It ends no other process, and creates no record
// of an unknown one.
func (r *agentReport) Decide(k *kernel.Tx) error {
	c, key := r.world.node.seq.Cell(), r.Process
	v := c.View()
	before, others := onCompute(&v, key)
	p, known := v.Process(key)
	game, playing := v.Hosting(key)
	ran := known && p.State != fleet.Ended
	for range 2 {
		if err := r.ReportExit.Decide(k); err != nil {
			return err
		}
		v = c.View()
		now, still := v.Process(key)
		if still != known || still && now.State != fleet.Ended {
			r.world.violated("an agent told the end of process %s, which is %v after it and was known before: %t", key, now.State, known)
		}
		if g, ok := v.GameSession(game.ID); playing && ok && g.Live() {
			r.world.violated("game session %s lives after the end of its process %s", game.ID, key)
		}
		after, left := onCompute(&v, key)
		want := before.Processes
		if ran {
			want--
		}
		if after.Processes != want {
			r.world.violated("compute %s/%s had %d processes, and has %d after the end of one that ran: %t", key.Fleet, key.Compute, before.Processes, after.Processes, ran)
		}
		for id, was := range others {
			if is, ok := left[id]; !ok || is.State != was.State || is.Session != was.Session || is.TerminateBy != was.TerminateBy {
				r.world.violated("the end of process %s changed process %s", key, id)
			}
		}
	}
	switch {
	case !known:
		r.pool.seen["the end of an unknown process"]++
	case playing:
		r.pool.seen["the end of a game session by an agent"]++
	case ran:
		r.pool.seen["the end of a process by an agent"]++
	}
	return nil
}

func reportLaunch(w *Wishes, v *cell.View) kernel.Command {
	f, ok := w.fleet(v)
	computes := v.Computes(f.ID, "", 0, "", 100)
	if !ok || len(computes) == 0 {
		return nil
	}
	return &hosting.ReportLaunch{
		Fleet: f.ID, Compute: computes[w.chance.IntN(len(computes))].Name, Path: fmt.Sprint("/local/game/", w.chance.IntN(2)),
		Trouble: hosting.LaunchTrouble(1 + w.chance.IntN(4)), Why: fmt.Sprint("reason ", w.chance.IntN(2)),
	}
}
