package operator

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/attention"
)

func (d *Door) reports() []*agentproto.Report {
	if d.config.Reports == nil {
		return nil
	}
	return d.config.Reports()
}

// troubles returns the entries of a runtime configuration that do not run as they should.
func troubles(r *agentproto.Report) (all []agentproto.LaunchState) {
	for _, l := range r.Launches {
		if l.State != agentproto.LaunchRunning {
			all = append(all, l)
		}
	}
	return all
}

// troublesShown is the most of them in an explanation.
const troublesShown = 20

// launchFacts adds the problems reported by the agents of a fleet, or of one of its computes, and returns the first with
// a reason.
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
			x.fact("launch on "+r.Compute, attention.Launch(&l))
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
