package hosting

import (
	"fmt"
	"strings"

	"github.com/musterhq/muster/internal/domain/fleet"
)

// standingsInWords describes why processes are not free, in singular and plural.
var standingsInWords = map[fleet.Standing][2]string{
	fleet.Hosting:      {"hosts a game session", "host a game session"},
	fleet.Starting:     {"has not called ProcessReady", "have not called ProcessReady"},
	fleet.Unproven:     {"has not reported its health yet", "have not reported their health yet"},
	fleet.Sick:         {"is unhealthy or silent", "are unhealthy or silent"},
	fleet.Disconnected: {"has lost its connection", "have lost their connection"},
	fleet.ChangingOver: {"is changing over to another connection", "are changing over to another connection"},
	fleet.Drained:      {"is on a compute that is being drained", "are on computes that are being drained"},
	fleet.Spent:        {"has had its game session", "have had their game session"},
	fleet.Ending:       {"was told to end", "were told to end"},
}

// heldBackInWords describes processes that are idle but held back by their compute's limit of activations.
var heldBackInWords = [2]string{
	"waits because its compute activates as many game sessions as the runtime configuration allows",
	"wait because their computes activate as many game sessions as the runtime configuration allows",
}

// whyNoProcess explains why no server process is free in a location of a fleet; "" if one is. It reads maintained counts, so its cost
// does not depend on the number of processes.
func (c *State) whyNoProcess(fleetID, location string) string {
	n := c.Fleets.SiteCounts(fleetID, location)
	return NoneFree(&n, "in "+location)
}

// NoneFree explains why no server process of a place, such as "in custom-home", is free; "" if one is.
func NoneFree(n *fleet.SiteCounts, place string) string {
	running := n.Running()
	switch {
	case n.Idle > 0:
		return ""
	case n.Computes == 0:
		return "no compute is registered " + place
	case running == 0 && n.Computes == 1:
		return "no server process is connected " + place
	case running == 0:
		return fmt.Sprintf("no server process is connected %s, which has %d computes", place, n.Computes)
	}
	parts := notFree(n)
	if running == 1 {
		return fmt.Sprintf("the only server process %s %s", place, parts[0])
	}
	return fmt.Sprintf("none of the %d server processes %s is free: %s", running, place, strings.Join(parts, ", "))
}

// notFree explains why running processes are not free.
func notFree(n *fleet.SiteCounts) (parts []string) {
	running := n.Running()
	say := func(some int32, words [2]string) {
		switch {
		case some == 0:
		case running == 1:
			parts = append(parts, words[0])
		case some == 1:
			parts = append(parts, "1 "+words[0])
		default:
			parts = append(parts, fmt.Sprintf("%d %s", some, words[1]))
		}
	}
	for _, s := range fleet.Standings() {
		if words, ok := standingsInWords[s]; ok {
			say(n.Of(s), words)
		}
	}
	say(n.HeldBack(), heldBackInWords)
	return parts
}

// Capacity describes how many server processes of a place, such as "in custom-home", are free, and why the others are not.
func Capacity(n *fleet.SiteCounts, place string) string {
	running := n.Running()
	switch {
	case n.Idle == 0:
		return NoneFree(n, place)
	case running == 1:
		return "the only server process " + place + " is free"
	case running == n.Idle:
		return fmt.Sprintf("all %d server processes %s are free", running, place)
	}
	verb := "are"
	if n.Idle == 1 {
		verb = "is"
	}
	return fmt.Sprintf("%d of %d server processes %s %s free; %s", n.Idle, running, place, verb, strings.Join(notFree(n), ", "))
}

// WhyNoProcess explains why no server process is free in a location of a fleet; "" if one is.
func (v *View) WhyNoProcess(fleetID, location string) string {
	v.SawAll()
	return v.c.whyNoProcess(fleetID, location)
}

// ComputeCounts returns the counts of one compute.
func (v *View) ComputeCounts(fleetID, name string) (n fleet.SiteCounts) {
	v.SawAll()
	if r, ok := v.c.Fleets.Compute(fleetID, name); ok {
		n = v.c.Fleets.ComputeCounts(r)
	}
	return n
}

// Places returns the counts of a fleet's locations, in the fleet's order.
func (v *View) Places(fleetID string) (places []PlaceCounts) {
	v.SawAll()
	r, ok := v.c.Fleets.Fleet(fleetID)
	if !ok {
		return nil
	}
	for _, l := range v.c.fleet(r).Locations {
		places = append(places, v.c.PlaceCounts(fleetID, l.Name))
	}
	return places
}
