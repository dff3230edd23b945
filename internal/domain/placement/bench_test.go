package placement

import (
	"fmt"
	"testing"
)

// A match of 200 players who measured 20 locations, in a queue over ten fleets. The single writer decides this at each attempt.
func BenchmarkCandidatesOfALargeMatch(b *testing.B) {
	q := &Queue{}
	p := &Placement{}
	var destinations []Destination
	for i := range 10 {
		d := Destination{Index: i, Fleet: fmt.Sprint("fleet-", i)}
		for l := range 20 {
			d.Locations = append(d.Locations, fmt.Sprint("custom-location-", l))
		}
		destinations = append(destinations, d)
	}
	for player := range 200 {
		for l := range 20 {
			p.Latencies = append(p.Latencies, Latency{fmt.Sprint("player-", player), fmt.Sprint("custom-location-", l), float32(20 + l)})
		}
	}
	for b.Loop() {
		q.Candidates(p, destinations, 0)
	}
}
