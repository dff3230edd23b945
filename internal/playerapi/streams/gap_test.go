package streams

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"log/slog"
	"net"
	"testing"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/enginetest"
	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/playerapi/socket"
	"github.com/musterhq/muster/internal/playerapi/state"
)

// A stream whose node missed events gets them all, once and in order. A stream whose login session was replaced meanwhile is closed after them.
func TestStreamsBehindAGap(t *testing.T) {
	players := flow.DefaultConfig()
	config := cell.DefaultConfig()
	config.PlayerFlow.Flow = &players
	e := enginetest.Open(t, engine.Config{Cell: config})
	s := state.Open(e, objects.Translator{}, slog.New(slog.DiscardHandler), func(*flow.Config) {})
	defer s.Close()
	x := Open(Config{State: s})
	defer x.Close()
	do := func(cmd kernel.Command) {
		t.Helper()
		if err := s.Do(t.Context(), cmd); err != nil {
			t.Fatal(err)
		}
	}
	by := playerflow.Caller{Player: "ann", LoginSessionID: flow.LoginSessionID(objects.NewID())}
	login := &playerflow.Login{Player: by.Player, LoginSessionID: by.LoginSessionID, Token: objects.NewID()}
	do(login)
	do(&playerflow.CreateParty{Caller: by, ID: flow.PartyID(objects.NewID())})
	ours, theirs := net.Pipe()
	stream := &stream{of: x, number: 1, player: by.Player, session: by.LoginSessionID, conn: ours, promised: &s.Settings().Sessions}
	stream.heard.Store(1 << 62)
	stream.pinged, stream.renewed = 1<<62, 1<<62
	if code := x.attach(stream, 0); code != 0 {
		t.Fatalf("refused with %d", code)
	}
	frames := bufio.NewReader(theirs)
	next := func() (opcode byte, seq uint64, payload []byte) {
		t.Helper()
		opcode, payload = readFrame(t, frames)
		var o struct {
			Seq uint64 `json:"seq"`
		}
		_ = json.Unmarshal(payload, &o)
		return opcode, o.Seq, payload
	}
	last := uint64(0)
	for last < stream.awaits()-1 {
		_, seq, _ := next()
		last = max(last, seq)
	}
	x.unfollow()
	poll := make(chan struct{}, 1)
	x.listen(by.Player, poll)
	for _, ready := range []bool{true, false, true} {
		do(&playerflow.SetReady{Caller: by, Ready: ready})
	}
	x.follow(engine.Committed{Gap: true})
	x.follow(engine.Committed{Gap: true}) // nothing is left to send
	select {
	case <-poll:
	default:
		t.Error("a poll that waits was not woken")
	}
	for want := last + 1; want < stream.awaits(); want++ {
		if _, seq, payload := next(); seq != want {
			t.Fatalf("got %s, want event %d", payload, want)
		}
	}
	if stream.awaits() < last+4 {
		t.Errorf("the stream awaits event %d, %d were told before the gap", stream.awaits(), last)
	}
	do(&playerflow.Login{Player: by.Player, LoginSessionID: flow.LoginSessionID(objects.NewID()), Token: objects.NewID()})
	x.follow(engine.Committed{Gap: true})
	for {
		if opcode, _, payload := next(); opcode == socket.Close {
			if code := binary.BigEndian.Uint16(payload); code != socket.Replaced {
				t.Errorf("closed with %d, want %d", code, socket.Replaced)
			}
			break
		}
	}
	ours.Close()
}
