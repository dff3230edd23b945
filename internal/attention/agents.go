package attention

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/agentproto"
)

// Agents is what agents said last, by the fleet that they serve, ordered by compute.
type Agents map[string][]*agentproto.Report

func newAgents(all []*agentproto.Report) Agents {
	by := Agents{}
	for _, r := range all {
		by[r.Fleet] = append(by[r.Fleet], r)
	}
	for _, list := range by {
		slices.SortFunc(list, func(a, b *agentproto.Report) int { return cmp.Compare(a.Compute, b.Compute) })
	}
	return by
}

// Launch says in a sentence why an entry of a runtime configuration does not run on a host.
func Launch(l *agentproto.LaunchState) string {
	text := fmt.Sprintf("%s: %d of %d run", l.LaunchPath, l.Running, l.Wanted)
	switch l.State {
	case agentproto.LaunchFetching:
		text += ", its build is being fetched"
	case agentproto.LaunchFailed:
		text += fmt.Sprintf(", it has failed after %d crashes", l.Crashes)
	case agentproto.LaunchBackingOff:
		text += ", it waits after a failure"
	}
	if l.NextTryMillis > 0 {
		text += ", next try at " + time.UnixMilli(l.NextTryMillis).UTC().Format(time.RFC3339)
	}
	if l.Reason != "" {
		text += ": " + l.Reason
	}
	return text
}

// launchStep is what to do about an entry that does not run.
func launchStep(l *agentproto.LaunchState) string {
	switch {
	case l.Cause == agentproto.CauseBuild:
		return "Check the network between the host and this service, and the host's disk: the agent retries by itself."
	case l.Cause == agentproto.CausePath:
		return "Compare the launch path of the runtime configuration with the files of the build: aws gamelift update-runtime-configuration corrects it."
	case portTaken(l.Reason):
		return portStep
	case l.Cause == agentproto.CauseCrash:
		return "Read the last output of the server process: muster explain process shows it, and muster logs prints more."
	}
	return "Check the reason and the log of muster agent on the host: it retries by itself."
}

// stuck is the first entry of a compute that does not run for a reason that needs a hand.
func stuck(r *agentproto.Report) *agentproto.LaunchState {
	for i := range r.Launches {
		if l := &r.Launches[i]; l.Running < l.Wanted && l.Reason != "" && (l.State == agentproto.LaunchFailed || l.Cause != agentproto.CauseCrash) {
			return l
		}
	}
	return nil
}

// running is how many server processes an agent runs.
func running(r *agentproto.Report) (n int) {
	for i := range r.Launches {
		n += r.Launches[i].Running
	}
	return n
}
