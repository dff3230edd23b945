package serverlink

import (
	"testing"

	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/waittest"
)

// A node that missed events sends its game servers the outstanding pushes, closes the connections of ended processes in time, and those with void tokens at once.
func TestPushesBehindAGap(t *testing.T) {
	w := newWorld(t)
	playing := w.ready("playing")
	ended := playing.host(1)
	gone := w.ready("gone")
	gone.host(1)
	waiting := w.ready("waiting")
	w.door.unfollow()
	created := &hosting.CreateGameSession{Fleet: testFleet, Location: testLocation, PlayersMax: 1}
	w.must(created)
	w.must(&hosting.TerminateGameSession{ID: ended.ID})
	w.must(&hosting.EndProcess{Process: fleet.Key{Fleet: testFleet, Compute: testCompute, Process: "gone"}, Request: 7})
	gap := func() { w.door.follow(engine.Committed{Gap: true}) }
	gap()
	gap() // what was pushed is not owed any more
	waiting.push("CreateGameSession")
	waiting.noPush()
	playing.push("TerminateProcess")
	playing.noPush()
	waittest.Until(w, "the connections of the process that ended to be closed in time", func() bool {
		p := gone.known()
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.ended && !p.exitBy.IsZero()
	})
	w.must(&hosting.RotateToken{Fleet: testFleet, Compute: testCompute})
	gap()
	if code := waiting.ended(); code != 0 {
		t.Errorf("ended with close code %d, want none", code)
	}
}
