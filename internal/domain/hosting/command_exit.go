package hosting

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/exit"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// ReportExit records that a server process has ended, as observed by its host's agent. The process, its game session and its players' seats end
// at once, without a grace period. A repeat changes nothing.
type ReportExit struct {
	Process fleet.Key
	Exit    exit.Report
	Event   string // code of the fleet event; "" for a normal end
}

// exitReasons maps the agent protocol's termination reasons to the ends of processes.
var exitReasons = map[string]fleet.EndReason{
	"SERVER_PROCESS_CRASHED": fleet.EndedCrashed, "SERVER_PROCESS_INVALID_PATH": fleet.EndedCrashed,
	"SERVER_PROCESS_FORCE_TERMINATED": fleet.EndedForced, "SERVER_PROCESS_PROCESS_EXIT_TIMEOUT": fleet.EndedForced,
	"SERVER_PROCESS_PROCESS_READY_TIMEOUT": fleet.EndedNeverReady, "SERVER_PROCESS_SDK_INITIALIZATION_TIMEOUT": fleet.EndedNeverReady,
	"SERVER_PROCESS_TERMINATED_UNHEALTHY": fleet.EndedUnhealthy,
	"COMPUTE_SHUTTING_DOWN":               fleet.EndedWithCompute, "CUSTOMER_INITIATED": fleet.EndedForced, "NORMAL_TERMINATION": fleet.EndedNormally,
}

const invalidPath = "SERVER_PROCESS_INVALID_PATH"

// levelOfAgents is the level that introduced events about hosts and agents.
const levelOfAgents = 2

func (cmd *ReportExit) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	_, x, err := t.computeByName(cmd.Process.Fleet, cmd.Process.Compute)
	if err != nil {
		return err
	}
	reason, ok := exitReasons[cmd.Exit.Reason]
	if !ok {
		return domain.Refuse(domain.Invalid, "TerminationReason: %.60q; want one of the agent protocol's reasons", cmd.Exit.Reason)
	}
	report := cmd.Exit
	report.Output = excerpt.End(report.Output, exit.OutputMax)
	if report.At == 0 || report.At > t.Now {
		report.At = t.Now
	}
	r, known := t.Fleets.Process(cmd.Process)
	var lost loss
	who := "process " + cmd.Process.Process + " on compute " + x.Name + " in " + x.Location
	if known {
		p := t.Process(r)
		if p.Exit != nil || p.State == fleet.Ended && p.EndReason != fleet.EndedNormally && p.EndReason != fleet.EndedCrashed {
			return nil // a repeat, or a process that the service had already given up
		}
		ended := p.State == fleet.Ended
		if k.Level() >= levelOfAgents {
			t.Emit(&ProcessDied{cmd.Process, report})
		}
		if ended {
			return nil // a normal end, or the loss of its connection, which the event log reports
		}
		lost = t.closeProcess(r, reason, 0)
	}
	news := cmd.Event != ""
	if cmd.Event == invalidPath { // no process ever existed: each attempt has another id
		t.troubleEvent(cmd.Process.Fleet, cmd.Event, "Server process on compute "+x.Name+" in "+x.Location+" cannot be started: ",
			excerpt.Begin(cmp.Or(report.LastLines(exitEventOutput), "its launch path names no program"), whyMax))
	} else if cmd.Event != "" {
		news = t.exitEvent(cmd.Process.Fleet, cmd.Event, who, &report, lost)
	}
	if news && !known && failedBy(reason) && t.movesTo(cmd.Process.Fleet) {
		t.Emit(&LaunchFailed{cmd.Process.Fleet})
	}
	return nil
}

const exitEventOutput = 500 // bytes of output in a fleet event

// OutputInEvent stands before the output of a process in the message of a fleet event.
const OutputInEvent = ". Last output: "

// exitEvent writes to the fleet's event log how a process ended, unless an identical line is among the newest.
func (t *Tx) exitEvent(fleetID, code, who string, report *exit.Report, lost loss) (written bool) {
	message := "Server " + who + " ended: " + report.How()
	if output := report.LastLines(exitEventOutput); output != "" {
		message += OutputInEvent + output
	}
	if t.told(fleetID, code, message) {
		return false
	}
	t.lossEvent(fleetID, code, message, lost)
	return true
}

// told reports whether a line is among the newest of a fleet's event log, because the report of a process that the service does not know may be
// repeated.
func (t *Tx) told(fleetID, code, message string) bool {
	for _, r := range slices.Backward(t.Fleets.EventsOf(fleetID)) {
		switch e := t.Fleets.Events.Get(r); {
		case t.Now.Sub(e.At) >= repeatsTime:
			return false
		case e.Code == code && e.Message == message:
			return true
		}
	}
	return false
}
