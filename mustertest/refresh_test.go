package mustertest

import (
	"testing"

	"github.com/musterhq/muster/gameserver"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
)

// A game server of the library takes the token that it is told, and comes back with it: the one before is void.
func TestServerOfTheLibraryTakesANewToken(t *testing.T) {
	t.Parallel()
	srv := Start(t)
	f := srv.NewFleet()
	o := f.ServerOptions()
	server := gameserver.New(o)
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	g := &GameServer{ProcessID: o.ProcessID, fleet: f}
	var link uint64
	linked := func() { // over another connection than before
		t.Helper()
		before := link
		err := g.wait(func(p *fleet.Process) bool {
			link = p.Link
			return p.Linked && p.Link != before
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	linked()
	if err := srv.running.Engine().Do(t.Context(), &hosting.RotateToken{Fleet: f.ID, Compute: f.Compute, KeepLinks: true}); err != nil {
		t.Fatal(err)
	}
	linked()
	srv.Restart()
	linked()
	if err := server.End(t.Context()); err != nil {
		t.Fatal(err)
	}
}
