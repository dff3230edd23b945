package serverlink

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/membership"
	"github.com/musterhq/muster/internal/linkclient"
	"github.com/musterhq/muster/internal/listen"
	"github.com/musterhq/muster/internal/waittest"
)

// incarnation is the id under which a door's node takes connections at present.
type incarnation struct{ atomic.Pointer[domain.UUID] }

func newIncarnation() *incarnation {
	x := &incarnation{}
	x.renew()
	return x
}

func (x *incarnation) now() domain.UUID { return *x.Load() }

func (x *incarnation) renew() { x.Store(new(domain.UUID(uuid.New()))) }

// twoNodes returns a world whose door is that of node n1; at returns options for the door of n2, which has the same engine.
func twoNodes(t *testing.T, change ...func(*world)) (w *world, n1, n2 *incarnation, other *Server, at func(*linkclient.Options)) {
	n1, n2 = newIncarnation(), newIncarnation()
	w = newWorld(t, append(change, func(w *world) { w.config.Node = n1.now })...)
	w.must(&membership.BeginNode{Node: n1.now(), Name: "n1"})
	w.must(&membership.BeginNode{Node: n2.now(), Name: "n2"})
	ctx, cancel := context.WithCancel(context.Background())
	config := w.config
	config.Engine, config.Secret, config.Keys, config.Node = w.engine, w.secret, w.keys, n2.now
	other = New(ctx, config)
	port, err := listen.Open(listen.Config{Addr: "127.0.0.1:0", Certificate: w.ca.Certificate, Log: other.log, Handler: http.HandlerFunc(other.ServeHTTP)})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- port.Serve() }()
	t.Cleanup(func() {
		cancel()
		if err := port.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		other.Close()
	})
	return w, n1, n2, other, func(o *linkclient.Options) { o.URL = "ws://" + port.Addr().String() + "/" }
}

// TestMoveToAnotherNode: a game server whose connection to one node is dead, without the node's having noticed, gets its pushes through the other one.
func TestMoveToAnotherNode(t *testing.T) {
	w, _, _, _, at := twoNodes(t, func(w *world) { w.config.Periods.Superseded = time.Hour })
	for range 20 { // both doors hear of the game session at the same time
		id := uuid.NewString()
		before := w.ready(id)
		moved := before.again(at)
		moved.host(1)
		before.noPush()
		before.Drop()
		if p := w.process(id); !p.Linked || p.LostBy != 0 {
			t.Fatal("the end of the connection to the first node counts")
		}
		moved.ok(moved.Terminate(context.Background()))
		moved.Drop()
	}
}

// TestMoveClosesTheOldLink: the node that had a process closes the old connection after a while, as if the new one were its own.
func TestMoveClosesTheOldLink(t *testing.T) {
	w, _, _, _, at := twoNodes(t)
	before := w.ready("p")
	moved := before.again(at)
	if code := before.ended(); code != closeNormal {
		t.Errorf("the old connection ended with %d", code)
	}
	moved.host(1)
}

// TestReturnFromAnotherNode: heartbeats that another node got in the meantime are not missing when a process returns.
func TestReturnFromAnotherNode(t *testing.T) {
	w, _, _, _, at := twoNodes(t)
	silence := w.config.Periods.Silence
	before := w.ready("p")
	w.passLinks(silence / 2)
	moved := before.again(at)
	before.ended()
	w.passLinks(silence/2 - time.Second) // the record of the process is still kept
	moved.ok(moved.Heartbeat(context.Background(), true))
	back := moved.again()
	back.attached()
	w.passLinks(2 * time.Second)
	if h := w.process("p").Health; h != fleet.Healthy {
		t.Errorf("a moment after a heartbeat at the other node, the process is %v", h)
	}
	w.passLinks(silence)
	if h := w.process("p").Health; h != fleet.Unhealthy {
		t.Errorf("without a heartbeat at either node, the process is %v", h)
	}
	back.ok(back.Heartbeat(context.Background(), true))
	waittest.Until(w, "the process to be healthy again", func() bool { return w.process("p").Health == fleet.Healthy })
}

// TestReturnToTheSameNode: a lost connection does not reset the clock of silence.
func TestReturnToTheSameNode(t *testing.T) {
	w, _, _, _, _ := twoNodes(t)
	s := w.ready("p")
	w.passLinks(w.config.Periods.Silence - time.Second)
	s.Drop()
	s.ended()
	waittest.Until(w, "the loss to be recorded", func() bool { return !w.process("p").Linked })
	s.again().attached()
	w.passLinks(2 * time.Second)
	if h := w.process("p").Health; h != fleet.Unhealthy {
		t.Errorf("after its silence, the process is %v", h)
	}
}

// TestRefreshToAnotherNode: a process that moves to another node is free for game sessions again when the time for the move is over.
func TestRefreshToAnotherNode(t *testing.T) {
	w, _, _, _, at := twoNodes(t, func(w *world) {
		w.config.Periods.Superseded, w.config.Periods.ChangeOver = time.Hour, time.Second // a busy machine takes a while until the first look
	})
	before := w.ready("p")
	w.must(&hosting.RefreshProcess{Process: before.key(), Begin: true})
	if w.eligible("p") {
		t.Error("it is eligible while it changes over")
	}
	before.again(at)
	waittest.Until(w, "the process to be eligible", func() bool { return w.eligible("p") })
}

// attached returns once the door reads from the connection, which has no heartbeat yet.
func (s *server) attached() {
	s.w.Helper()
	_, err := s.Do(context.Background(), "GetComputeCertificate", "")
	s.ok(err)
}

func (s *server) key() fleet.Key {
	return fleet.Key{Fleet: testFleet, Compute: testCompute, Process: s.opt.Process}
}

// TestGivenUp: a node that was given up accepts no connection, drops its present ones without a close frame, and does not report them to the core.
func TestGivenUp(t *testing.T) {
	w, n1, _, _, at := twoNodes(t)
	s, stays := w.ready("p"), w.ready("q", at)
	w.must(&membership.LoseNode{Node: n1.now()})
	lost := w.process("p")
	if lost.Linked || lost.LostBy == 0 {
		t.Error("the core takes a link of the lost node for alive")
	}
	if _, err := w.tryConnect("r"); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("a connection to the lost node: %v, want status 503", err)
	}
	s.fails(s.Activate(context.Background(), 7777), 429)
	n1.renew()
	w.door.DropLinks()
	if code := s.ended(); code != 0 {
		t.Errorf("the connection was closed with %d", code)
	}
	w.must(&membership.BeginNode{Node: n1.now(), Name: "n1"})
	if now := w.process("p"); now.LostBy != lost.LostBy {
		t.Errorf("it has until %d to come back, and had until %d", now.LostBy, lost.LostBy)
	}
	s = s.again()
	s.ok(s.Heartbeat(context.Background(), true))
	if p := w.process("p"); !p.Linked || p.LostBy != 0 {
		t.Error("it has come back, and counts as lost")
	}
	stays.noPush() // its connection is another node's
	waittest.Until(w, "the door to forget the dropped connection", func() bool { return w.door.Stats().Links == 1 })
	if st := w.door.Stats(); st.Lost != 0 {
		t.Errorf("the door counts %+v", st)
	}
}

// TestAttachedTooLate: a connection whose node was given up while it was being attached does not stay.
func TestAttachedTooLate(t *testing.T) {
	n1, next := newIncarnation(), newIncarnation()
	var asked atomic.Int32
	w := newWorld(t, func(w *world) {
		w.config.Node = func() domain.UUID {
			if asked.Add(1) == 1 {
				return n1.now()
			}
			return next.now() // it changes behind the command that attaches
		}
	})
	w.must(&membership.BeginNode{Node: n1.now(), Name: "n1"})
	if s, err := w.tryConnect("p"); err == nil {
		s.ended()
	}
	if asked.Load() < 2 || w.process("p").Node == 0 {
		t.Error("nothing was attached")
	}
}
