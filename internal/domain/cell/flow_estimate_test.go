package cell

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// TestEstimates: searching players are told a changed estimate of their waiting time, at most every ten seconds, and however many
// they are.
func TestEstimates(t *testing.T) {
	w := newFlowWorld(t, nil)
	w.queues()
	const many = playerflow.EstimateStep + 10
	waiting := func(i int) string { return fmt.Sprint("waiting-", i) }
	for i := range many {
		w.search(waiting(i))
	}
	estimate := func(i int) int64 {
		r, _ := w.cell.playerflow.Flow.Party(w.keys(waiting(i)).Party)
		return w.cell.playerflow.Flow.Parties.Get(r).Search.EstimateMS
	}
	var before [many]uint64
	mark := func() {
		for i := range many {
			before[i] = w.seq(waiting(i))
		}
	}
	matched := 0
	match := func(after time.Duration) { // two tickets that have waited for so long
		t.Helper()
		var tickets [2]domain.TicketID
		for i := range tickets {
			matched++
			tickets[i] = w.search(fmt.Sprint("matched-", matched))
		}
		w.pass(after)
		if refused := w.propose(testQueue, tickets[0], tickets[1]); refused != nil {
			t.Fatal(refused)
		}
	}
	match(20 * time.Second)
	match(0)
	mark()
	match(0) // six waits: 20, 20, 0, 0, 0 and 0 seconds
	w.pass(time.Second)
	for i := range many {
		if got := estimate(i); got != 7000 {
			t.Fatalf("%s expects %d ms, want 7000", waiting(i), got)
		}
		w.wantTold(waiting(i), before[i], "MatchmakingStatus")
	}
	w.check()

	mark()
	w.pass(2 * time.Second)
	match(0) // of eight: 5 s; no round follows, it is not ten seconds ago
	match(0) // of ten: 4 s
	w.pass(6 * time.Second)
	w.wantTold(waiting(0), before[0], "")
	w.pass(2 * time.Second)
	for i := range many {
		if got := estimate(i); got != 4000 {
			t.Fatalf("%s expects %d ms, want 4000", waiting(i), got)
		}
		w.wantTold(waiting(i), before[i], "MatchmakingStatus")
	}

	// A party that is asked about a match, or has just entered, gets no new estimate. A held party does.
	mark()
	w.pass(10 * time.Second)
	w.offline(waiting(0))
	w.search("newcomer")
	late := w.seq("newcomer")
	held := w.seq(waiting(0))
	match(0)
	w.pass(time.Second)
	w.wantTold("newcomer", late, "")
	w.wantTold(waiting(0), held, "MatchmakingStatus")
	if s := w.cell.playerflow.Flow.Parties.Get(partyOf(w, waiting(0))).Search; s.Status != flow.Held || s.EstimateMS != 3000 {
		t.Errorf("%+v", s)
	}
}

func partyOf(w *flowWorld, player string) flow.PartyRef {
	r, _ := w.cell.playerflow.Flow.Party(w.keys(player).Party)
	return r
}
