package attention

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/placement"
)

// pendingLooked is how many pending placements of a queue are looked at, the oldest.
const pendingLooked = 3

// queues are those without a destination, and those whose placements can go nowhere.
func queues(v *cell.View, now domain.Time) (all []Item) {
	for _, q := range v.Queues("", CatalogMost) {
		if len(q.Destinations) == 0 {
			all = append(all, Item{"Queue " + q.Name + " has no destination, so its placements wait until they time out.",
				"Add a fleet or an alias with aws gamelift update-game-session-queue --name " + q.Name + " --destinations DestinationArn=ARN.", "queue", q.Name})
			continue
		}
		if v.QueueDepth(q.Name).Placements == 0 {
			continue
		}
		for _, p := range v.PendingIn(q.Name, pendingLooked) {
			if why, next := Nowhere(v, &q, &p, now); why != "" {
				text := fmt.Sprintf("Queue %s has no location for placement %s", q.Name, p.ID)
				if n := v.QueueDepth(q.Name).Placements; n > 1 {
					text += fmt.Sprintf(", one of %d that wait", n)
				}
				all = append(all, Item{text + ": " + why, next, "placement", p.ID})
				break
			}
		}
	}
	return all
}

// OutcomesInWords say what keeps placements from a number of places, by the outcome's name.
var OutcomesInWords = map[string]string{
	placement.NoFreeProcess.String():  "without a free server process",
	placement.OverLatency.String():    "over the latency cap",
	placement.NotAllowed.String():     "not allowed by the queue's filter",
	placement.NotOverride.String():    "not in the priority override",
	placement.FleetNotActive.String(): "with a fleet that is not active",
	placement.NoSuchFleet.String():    "with a fleet or an alias that is gone",
	placement.NoLocation.String():     "with a fleet that has no location",
	placement.AliasTerminal.String():  "with an alias that leads to no fleet",
}

// Nowhere says why no place of its queue is open to a waiting placement, so that a free server process would not help it, and what to do; empty if a place is open.
func Nowhere(v *cell.View, q *placement.Queue, p *placement.Placement, now domain.Time) (why, next string) {
	if p.Game != "" {
		return "", ""
	}
	counts, detail := map[placement.Outcome]int{}, map[placement.Outcome]string{}
	places := 0
	for _, c := range v.Choices(p.ID, now) {
		if c.Try.Outcome == placement.NoFreeProcess {
			return "", "" // it waits for one
		}
		if places++; counts[c.Try.Outcome] == 0 {
			detail[c.Try.Outcome] = c.Try.Detail
		}
		counts[c.Try.Outcome]++
	}
	if places == 0 {
		return "", ""
	}
	if counts[placement.OverLatency] == places {
		return overCap(q, p, places, detail[placement.OverLatency], now)
	}
	var parts []string
	most := placement.Outcome(0)
	for _, o := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[o], OutcomesInWords[o.String()]))
		if counts[o] > counts[most] {
			most = o
		}
	}
	next = "muster explain placement " + p.ID + " lists the locations of its queue with the reasons."
	if most == placement.OverLatency {
		next = capStep(q) + " " + next
	}
	return "of its places " + strings.Join(parts, ", ") + ".", next
}

// overCap says that the latency cap of a queue excludes all of its places.
func overCap(q *placement.Queue, p *placement.Placement, places int, detail string, now domain.Time) (why, next string) {
	limit, until := q.Cap(now.Sub(p.Start))
	why = fmt.Sprintf("the latency cap of %d ms excludes its only location (%s)", limit, detail)
	if places > 1 {
		why = fmt.Sprintf("the latency cap of %d ms excludes all of its %d locations (the first: %s)", limit, places, detail)
	}
	if until != 0 {
		why += ", until the next policy applies " + until.Round(time.Second).String() + " after its start"
	}
	return why + ".", capStep(q)
}

func capStep(q *placement.Queue) string {
	return "Raise MaximumIndividualPlayerLatencyMilliseconds, or let a later policy relax it: aws gamelift update-game-session-queue --name " + q.Name +
		" --player-latency-policies MaximumIndividualPlayerLatencyMilliseconds=150. Or add a destination nearer to the players."
}
