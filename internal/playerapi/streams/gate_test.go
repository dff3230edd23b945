package streams

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
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

// opened returns streams on an engine, with the login session of a player.
func opened(t *testing.T) (x *Streams, login flow.LoginSessionID) {
	t.Helper()
	players := flow.DefaultConfig()
	config := cell.DefaultConfig()
	config.PlayerFlow.Flow = &players
	e := enginetest.Open(t, engine.Config{Cell: config})
	s := state.Open(e, objects.Translator{}, slog.New(slog.DiscardHandler), func(*flow.Config) {})
	t.Cleanup(s.Close)
	x = Open(Config{State: s})
	t.Cleanup(x.Close)
	cmd := &playerflow.Login{Player: player, LoginSessionID: flow.LoginSessionID(objects.NewID()), Token: objects.NewID()}
	if err := s.Do(t.Context(), cmd); err != nil {
		t.Fatal(err)
	}
	return x, cmd.LoginSessionID
}

const player = "ann"

// streamOf returns a stream of the player whose client reads everything.
func streamOf(t *testing.T, x *Streams, login flow.LoginSessionID, number uint64) *stream {
	ours, theirs := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, theirs) }() // ends with the pipe
	t.Cleanup(func() { ours.Close() })
	made := &stream{of: x, number: number, player: player, session: login, conn: ours, promised: &x.State.Settings().Sessions}
	made.heard.Store(1 << 62)
	made.pinged, made.renewed = 1<<62, 1<<62
	return made
}

func presence(t *testing.T, x *Streams) (now flow.Presence) {
	_ = x.State.ReadHere(t.Context(), func(v *cell.View) error {
		found, _ := v.FlowOf(player, x.State.Instant())
		now = found.Presence
		return nil
	})
	return now
}

// A player is offline if the core refuses the stream that has replaced the player's former one during a drain, and the drain fails afterwards.
func TestRefusedStreamInFailedDrain(t *testing.T) {
	x, login := opened(t)
	if code := x.attach(streamOf(t, x, login, 1), 0); code != 0 || presence(t, x) != flow.Online {
		t.Fatalf("refused with %d; the player is %v", code, presence(t, x))
	}
	next := streamOf(t, x, login, 2)
	old, code := x.enter(next)
	if code != 0 || old == nil {
		t.Fatalf("refused with %d", code)
	}
	x.shut(time.Second)
	x.unattached(next, old, domain.Refuse(domain.Overloaded, "too many commands wait"))
	if n := presence(t, x); n != flow.Online {
		t.Fatalf("during the drain the player is %v", n)
	}
	x.decided(false)
	waittest.Until(t, "the player is offline", func() bool { return presence(t, x) == flow.Offline })
}

// A stream that is being attached when a drain begins is sent away like all others: its player is not online afterwards.
func TestAttachBesideADrain(t *testing.T) {
	x, login := opened(t)
	s := streamOf(t, x, login, 1)
	turn := x.turnOf(player)
	turn.Lock()
	if _, code := x.enter(s); code != 0 {
		t.Fatalf("refused with %d", code)
	}
	drained := make(chan error, 1)
	go func() {
		_, err := x.SendAway(t.Context(), time.Second, time.Hour)
		drained <- err
	}()
	<-x.gate.closing()
	for number := range uint64(5) { // the first ones leave the drain time to go too far
		if err := x.State.Do(t.Context(), &playerflow.AttachStream{Player: player, LoginSessionID: login, Stream: number + 1}); err != nil {
			t.Fatal(err)
		}
	}
	turn.Unlock()
	if err := <-drained; err != nil {
		t.Fatal(err)
	}
	if n := presence(t, x); n == flow.Online {
		t.Error("the player is online, although the stream was sent away")
	}
}

// A poll that is admitted when a drain begins does not leave its player online: the drain's end would make the player lose everything early.
func TestPollBesideADrain(t *testing.T) {
	x, _ := opened(t)
	var callers []*playerflow.Caller
	for i := range 50 {
		cmd := &playerflow.Login{Player: fmt.Sprint("poller", i), LoginSessionID: flow.LoginSessionID(objects.NewID()), Token: objects.NewID()}
		if err := x.State.Do(t.Context(), cmd); err != nil {
			t.Fatal(err)
		}
		callers = append(callers, &playerflow.Caller{Player: cmd.Player, LoginSessionID: cmd.LoginSessionID})
	}
	for range 20 {
		var polls sync.WaitGroup
		for _, by := range callers {
			polls.Go(func() { _, _ = x.Poll(t.Context(), by, &PollRequest{}) }) // refused during the drain
		}
		if _, err := x.SendAway(t.Context(), time.Second, time.Hour); err != nil {
			t.Fatal(err)
		}
		polls.Wait()
		for _, by := range callers {
			_ = x.State.ReadHere(t.Context(), func(v *cell.View) error {
				if found, _ := v.FlowOf(by.Player, x.State.Instant()); found.Presence == flow.Online {
					t.Errorf("%s is online during the drain", by.Player)
				}
				return nil
			})
		}
		if err := x.Readmit(t.Context()); err != nil || t.Failed() {
			t.Fatal(err)
		}
	}
}
