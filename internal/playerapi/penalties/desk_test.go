package penalties

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/engine"
)

var noon = domain.TimeOf(time.Unix(1_800_000_000, 0))

// penalised returns a commit in which players get a penalty.
func penalised(at domain.Time, from, to int) engine.Committed {
	c := engine.Committed{At: at}
	for i := from; i < to; i++ {
		c.Events = append(c.Events, kernel.Emitted{Event: &playerflow.PlayerChanged{
			Player: fmt.Sprint("player-", i), Penalties: []flow.Penalty{{Kind: flow.Dodge, Level: 1, Since: at, Reason: flow.AcceptTimeout}},
		}})
	}
	return c
}

// A node remembers the penalties of a minute, however many there are, and forgets those before.
func TestOldPenaltiesAreForgotten(t *testing.T) {
	x := &Desk{seen: map[offenceKey]*offence{}}
	x.committed(penalised(noon, 0, 5000))
	if n := len(x.seen); n != 5000 {
		t.Fatalf("%d penalties of the last minute are remembered, want 5000", n)
	}
	for at, from := noon.Add(2*time.Minute), 5000; from < 50_000; at, from = at.Add(2*time.Minute), from+5000 {
		x.committed(penalised(at, from, from+5000))
		if n := len(x.seen); n > 20_000 {
			t.Fatalf("%d penalties are remembered, of which 5000 are recent", n)
		}
	}
}

// BenchmarkPenalties measures one of 20,000 penalties within a second, as after an outage in which players cannot accept their matches.
func BenchmarkPenalties(b *testing.B) {
	const many = 20_000
	for b.Loop() {
		x := &Desk{seen: map[offenceKey]*offence{}}
		x.committed(penalised(noon, 0, many))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/many, "ns/penalty")
}
