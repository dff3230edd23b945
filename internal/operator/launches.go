package operator

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/agentproto"
)

func (d *Door) reports() []*agentproto.Report {
	if d.config.Reports == nil {
		return nil
	}
	return d.config.Reports()
}

// troubles are the entries of a runtime configuration that do not run as they should.
func troubles(r *agentproto.Report) (all []agentproto.LaunchState) {
	for _, l := range r.Launches {
		if l.State != agentproto.LaunchRunning {
			all = append(all, l)
		}
	}
	return all
}

// Trouble says in a sentence why an entry of a runtime configuration does not run on a host.
func Trouble(l *agentproto.LaunchState) string {
	text := fmt.Sprintf("%s: %d of %d run", l.LaunchPath, l.Running, l.Wanted)
	switch l.State {
	case agentproto.LaunchFetching:
		text += ", its build is on the way"
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

// troublesShown bounds how many an explanation has.
const troublesShown = 20

// launchFacts adds the troubles of the agents of a fleet, or of one of its computes, and returns the first with a reason.
func (d *Door) launchFacts(x *Explanation, fleetID, compute string) (first string) {
	all := slices.DeleteFunc(d.reports(), func(r *agentproto.Report) bool { return r.Fleet != fleetID || compute != "" && r.Compute != compute })
	slices.SortFunc(all, func(a, b *agentproto.Report) int { return cmp.Compare(a.Compute, b.Compute) })
	shown, more := 0, 0
	for _, r := range all {
		for _, l := range troubles(r) {
			if shown == troublesShown {
				more++
				continue
			}
			shown++
			x.fact("launch on "+r.Compute, Trouble(&l))
			if first == "" && l.Reason != "" {
				first = "on " + r.Compute + ", " + l.Reason
			}
		}
	}
	if more > 0 {
		x.fact("launches", fmt.Sprintf("%d more do not run", more))
	}
	return first
}
