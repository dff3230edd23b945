package streams

import (
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/enginetest"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/state"
	"github.com/musterhq/muster/internal/waittest"
)

// A player is offline if the core refuses the stream that has replaced the player's former one during a drain, and the drain fails afterwards.
func TestRefusedStreamInFailedDrain(t *testing.T) {
	players := flow.DefaultConfig()
	config := cell.DefaultConfig()
	config.PlayerFlow.Flow = &players
	e := enginetest.Open(t, engine.Config{Cell: config})
	s := state.Open(e, objects.Translator{}, slog.New(slog.DiscardHandler), func(*flow.Config) {})
	defer s.Close()
	x := Open(Config{State: s})
	defer x.Close()
	login := &playerflow.Login{Player: "ann", LoginSessionID: flow.LoginSessionID(objects.NewID()), Token: objects.NewID()}
	if err := s.Do(t.Context(), login); err != nil {
		t.Fatal(err)
	}
	made := func(number uint64) *stream {
		ours, theirs := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, theirs) }() // ends with the pipe
		t.Cleanup(func() { ours.Close() })
		made := &stream{of: x, number: number, player: "ann", session: login.LoginSessionID, conn: ours, promised: &s.Settings().Sessions}
		made.heard.Store(1 << 62)
		made.pinged, made.renewed = 1<<62, 1<<62
		return made
	}
	presence := func() (now flow.Presence) {
		_ = s.ReadHere(t.Context(), func(v *cell.View) error {
			x, _ := v.FlowOf("ann", s.Instant())
			now = x.Presence
			return nil
		})
		return now
	}
	if code := x.attach(made(1), 0); code != 0 || presence() != flow.Online {
		t.Fatalf("refused with %d; the player is %v", code, presence())
	}
	next := made(2)
	old, code := x.enter(next)
	if code != 0 || old == nil {
		t.Fatalf("refused with %d", code)
	}
	x.shut(time.Second)
	x.unattached(next, old, domain.Refuse(domain.Overloaded, "too many commands wait"))
	if n := presence(); n != flow.Online {
		t.Fatalf("during the drain the player is %v", n)
	}
	x.decided(false)
	waittest.Until(t, "the player is offline", func() bool { return presence() == flow.Offline })
}
