package streams

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/playerflow"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/playerapi/objects"
)

// sink is a connection that takes everything at once.
type sink struct {
	net.Conn
	bytes *atomic.Int64
}

func (s sink) Write(b []byte) (int, error)    { s.bytes.Add(int64(len(b))); return len(b), nil }
func (sink) SetWriteDeadline(time.Time) error { return nil }
func (sink) SetReadDeadline(time.Time) error  { return nil }

// BenchmarkTell measures the cost of a party's committed change in the one goroutine that passes changes on: its event is
// written once and goes to both members.
func BenchmarkTell(b *testing.B) {
	x := &Streams{players: map[string]*stream{}, sessions: map[flow.LoginSessionID]*stream{}, polls: map[string][]chan struct{}{}}
	var bytes atomic.Int64
	view := &flow.PartyView{Party: flow.Party{ID: flow.PartyID(objects.NewID()), Rev: 7, MembersMax: 8, Code: "ABCDEF"}}
	body := &playerflow.PlayersTold{Type: flow.OnPartyChanged}
	for _, player := range []string{"ann", "bob"} {
		x.players[player] = &stream{of: x, player: player, conn: sink{bytes: &bytes}, next: 1}
		view.Members = append(view.Members, flow.Member{Player: player, Leader: player == "ann"})
		view.People = append(view.People, flow.MemberView{DisplayName: player, Online: true, ClientVersion: "1.0", Phase: flow.InParty})
		body.To = append(body.To, playerflow.Addressee{Player: player})
	}
	body.Body = (&flow.Message{Party: view, Change: flow.ReadyChanged, Player: "bob"}).Encode()
	seq := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		seq++
		for i := range body.To {
			body.To[i].Seq = seq
		}
		x.follow(engine.Committed{Number: seq, At: domain.TimeOf(time.Unix(1_700_000_000, 0)), Events: []kernel.Emitted{{Event: body}}})
		if seq%64 == 0 { // no client falls so far behind that its stream is closed
			x.running.Wait()
		}
	}
	x.running.Wait()
	b.ReportMetric(float64(bytes.Load())/float64(b.N), "sent-B/op")
}
