package cell

import (
	"errors"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/membership"
	"github.com/musterhq/muster/internal/domain/playerflow"
)

// twoNodes are two nodes of a cluster, each with a game server that hosts a game and the player in it: anna at n1, ben at n2.
type twoNodes struct {
	*flowWorld
	n1, n2    domain.UUID
	hosts     map[string]fleet.Key
	instances map[string]flow.InstanceID
}

func newTwoNodes(t *testing.T) *twoNodes {
	w := &twoNodes{flowWorld: newFlowWorld(t, nil), n1: domain.UUID{1}, n2: domain.UUID{2}, hosts: map[string]fleet.Key{}, instances: map[string]flow.InstanceID{}}
	w.must(&membership.BeginNode{Node: w.n1, Name: "n1"})
	w.must(&membership.BeginNode{Node: w.n2, Name: "n2"})
	for i, player := range []string{"anna", "ben"} {
		node := []domain.UUID{w.n1, w.n2}[i]
		w.online(player)
		w.attachAt(player, node)
		w.instances[player] = w.play(false, flow.ReconnectOptional, player)
		w.connect(w.instances[player], player)
		w.hosts[player] = processKey(w.gameOf(w.instances[player]).ProcessID)
		w.must(&hosting.ConnectProcess{Process: w.hosts[player], Link: 100, Node: node})
	}
	return w
}

func (w *twoNodes) attachAt(player string, node domain.UUID) {
	w.t.Helper()
	w.stream++
	w.must(&playerflow.AttachStream{Player: player, LoginSessionID: w.logins[player], Stream: w.stream, After: w.player(player).Seq, Node: node})
}

func (w *twoNodes) process(player string) *fleet.Process {
	r, _ := w.cell.hosting.Fleets.Process(w.hosts[player])
	return w.cell.hosting.Process(r)
}

// want checks whether a player and the host of the player's game count as connected.
func (w *twoNodes) want(player string, connected bool) {
	w.t.Helper()
	presence := flow.Unknown
	if connected {
		presence = flow.Online
	}
	p, x, r := w.player(player), w.process(player), w.instances[player]
	instance, _ := w.cell.playerflow.Flow.Instance(r)
	suspect := w.cell.playerflow.Flow.Instances.Get(instance).Suspect != 0
	if p.Presence != presence || (p.Stream != 0) != connected || x.Linked != connected || (x.LostBy == 0) != connected || suspect == connected {
		w.t.Errorf("%s is %s with stream %d, the host linked %t until %d and suspect %t; want connected %t", player, p.Presence, p.Stream, x.Linked, x.LostBy, suspect, connected)
	}
}

// TestNodeLost: connections of a lost node have the same grace as after a restart to move to another node. Other connections are not affected.
func TestNodeLost(t *testing.T) {
	w := newTwoNodes(t)
	w.must(&membership.LoseNode{Node: w.n1})
	if lost := w.events[0].(*membership.NodeLost); lost.Links != 1 {
		t.Errorf("the event says that %d game servers were connected to the node, want 1", lost.Links)
	}
	w.want("anna", false)
	w.want("ben", true)
	contact := w.cell.ContactTime(w.now)
	if by := w.process("anna").LostBy; by != contact.Add(w.cell.config.Hosting.LinkGrace) {
		t.Errorf("the host has until %d, it is %d", by, contact)
	}
	if by := w.player("anna").PresenceBy; by != contact.Add(w.config.Sessions.RestartGrace) {
		t.Errorf("the player has until %d, it is %d", by, contact)
	}
	w.must(&membership.LoseNode{Node: w.n1}) // has happened
	if len(w.events) > 0 {
		t.Errorf("a second loss: %v", w.events)
	}

	w.attachAt("anna", w.n2)
	w.must(&hosting.ConnectProcess{Process: w.hosts["anna"], Link: 101, Node: w.n2})
	w.want("anna", true)
	stream := w.player("anna").Stream - 1
	w.must(&hosting.LoseLink{Process: w.hosts["anna"], Link: 100}) // said late by the node that is lost
	w.must(&playerflow.LoseStream{Player: "anna", Stream: stream})
	w.want("anna", true)

	w.must(&membership.LoseNode{Node: w.n2})
	w.pass(2 * time.Minute)
	if p := w.process("ben"); p.State != fleet.Ended || p.EndReason != fleet.EndedCrashed || w.player("ben").Presence != flow.Offline {
		t.Errorf("behind the grace: the host is %s by %s, the player %s", p.State, p.EndReason, w.player("ben").Presence)
	}
}

// TestGivenUpNode: a node that does not know yet that it was given up accepts no connections.
func TestGivenUpNode(t *testing.T) {
	w := newTwoNodes(t)
	w.must(&membership.LoseNode{Node: w.n1})
	for _, cmd := range []kernel.Command{
		&hosting.ConnectProcess{Process: w.hosts["anna"], Link: 102, Node: w.n1},
		&hosting.ActivateProcess{Process: w.hosts["anna"], Link: 100, Request: 5, Node: w.n1},
		&playerflow.AttachStream{Player: "anna", LoginSessionID: w.logins["anna"], Stream: 50, Node: w.n1},
		&playerflow.PollEvents{Player: "anna", LoginSessionID: w.logins["anna"], Node: w.n1},
		&playerflow.AwaitPlayers{Node: w.n1},
	} {
		refusal, ok := errors.AsType[*domain.Refusal](w.do(cmd))
		if !ok || refusal.Reason != domain.NodeLost {
			t.Errorf("%T: %v, want NodeLost", cmd, refusal)
		}
	}
	w.want("anna", false)
}

// TestNodeBeginsAnew: a node that restarts gets a new id, and its earlier connections are lost.
func TestNodeBeginsAnew(t *testing.T) {
	w := newTwoNodes(t)
	w.must(&membership.BeginNode{Node: w.n1, Name: "n1"}) // asked twice
	if len(w.events) > 0 {
		t.Errorf("begun twice: %v", w.events)
	}
	w.must(&membership.BeginNode{Node: domain.UUID{3}, Name: "n1"})
	w.want("anna", false)
	w.want("ben", true)
	w.restart()
	v := w.cell.View()
	if nodes := v.Nodes(); len(nodes) != 2 || nodes[0].No != 2 || nodes[1].No != 3 || nodes[1].ID != (domain.UUID{3}) || nodes[1].Name != "n1" {
		t.Errorf("nodes %+v", nodes)
	}
	w.must(&membership.LoseNode{Node: domain.UUID{3}})
	w.restart()
	w.must(&membership.BeginNode{Node: domain.UUID{4}, Name: "n1"})
	v = w.cell.View()
	if nodes := v.Nodes(); len(nodes) != 2 || nodes[1].No != 4 {
		t.Errorf("a number was given twice: %+v", nodes)
	}
	for _, cmd := range []*membership.BeginNode{{Name: "n4"}, {Node: domain.UUID{5}}, {Node: domain.UUID{5}, Name: string(make([]byte, 65))}} {
		if w.do(cmd) == nil {
			t.Errorf("%+v was accepted", cmd)
		}
	}
}

// TestTakeover: a change of leader moves the contact clock. It changes no connections except those that no node has.
func TestTakeover(t *testing.T) {
	for _, cluster := range []bool{true, false} {
		w := newTwoNodes(t)
		w.online("carl")
		single := w.server("of-a-single-node")
		w.must(&membership.LoseNode{Node: w.n2})
		r, _ := w.cell.hosting.Fleets.Process(single)
		lostBy := w.process("ben").LostBy
		w.now += 5000
		w.must(&kernel.Resume{Cluster: cluster})
		w.want("anna", cluster)
		w.want("ben", false)
		if p := w.cell.hosting.Process(r); p.Linked || w.player("carl").Presence != flow.Unknown {
			t.Errorf("cluster %t: the process of a single node is linked %t, its player %s", cluster, p.Linked, w.player("carl").Presence)
		}
		if by := w.process("ben").LostBy; by < lostBy || w.cell.WallTime(by) != w.now.Add(w.cell.config.Hosting.LinkGrace) {
			t.Errorf("cluster %t: a process that was lost before has until %d, %d before; it is %d", cluster, w.cell.WallTime(by), lostBy, w.now)
		}
		v := w.cell.View()
		if left := len(v.Nodes()); (left == 1) != cluster || left > 1 {
			t.Errorf("cluster %t: %d nodes are present", cluster, left)
		}
	}
}

// TestPause: a pause of the service, on one node or on all, moves the contact clock and changes no connections.
func TestPause(t *testing.T) {
	w := newTwoNodes(t)
	w.must(&kernel.RaiseLevel{To: kernel.Level})
	w.online("carl")
	key := w.server("of-a-single-node")
	w.must(&membership.LoseNode{Node: w.n2})
	r, _ := w.cell.hosting.Fleets.Process(key)
	w.now += 240_000
	w.must(&kernel.Resume{Paused: true})
	w.must(&kernel.Tick{})
	w.want("anna", true)
	w.want("ben", false)
	if p := w.cell.hosting.Process(r); !p.Linked || p.TerminateBy != 0 || w.player("carl").Presence != flow.Online {
		t.Errorf("the process of a single node is linked %t, asked to end by %d, its player %s", p.Linked, p.TerminateBy, w.player("carl").Presence)
	}
	if by := w.cell.WallTime(w.process("ben").LostBy); by != w.now.Add(w.cell.config.Hosting.LinkGrace) {
		t.Errorf("a process that was lost before has until %d; it is %d", by, w.now)
	}
	v := w.cell.View()
	if nodes := v.Nodes(); len(nodes) != 1 {
		t.Errorf("nodes %+v, want one", nodes)
	}
	w.restart()
	if p := w.cell.hosting.Process(r); !p.Linked {
		t.Error("the journal tells another story")
	}
}

// A journal that earlier releases read does not record pauses of the service: deadlines pass as in those releases.
func TestPauseBelowItsLevel(t *testing.T) {
	w := newTwoNodes(t)
	before := w.cell.Last()
	w.now += 10_000
	w.must(&kernel.Resume{Paused: true})
	if w.cell.Last() != before {
		t.Error("an event was emitted")
	}
}

// TestPollsAtANode: a player without a stream belongs to the node that was polled. A player with a stream stays at the stream's node.
func TestPollsAtANode(t *testing.T) {
	w := newTwoNodes(t)
	w.login("dora")
	poll := func(player string, node domain.UUID) {
		t.Helper()
		w.pass(2 * time.Second)
		w.must(&playerflow.PollEvents{Player: player, LoginSessionID: w.logins[player], Node: node})
	}
	poll("dora", w.n1)
	poll("dora", w.n2)
	poll("anna", w.n2)
	w.must(&membership.LoseNode{Node: w.n2})
	if w.player("dora").Presence != flow.Unknown || w.player("anna").Presence != flow.Online {
		t.Errorf("dora is %s, anna %s; want UNKNOWN, ONLINE", w.player("dora").Presence, w.player("anna").Presence)
	}
}

// TestDrainOfANode: a node that sends its players away does not affect those of another node.
func TestDrainOfANode(t *testing.T) {
	w := newTwoNodes(t)
	w.must(&playerflow.AwaitPlayers{For: time.Hour, Node: w.n1})
	if w.player("anna").Presence != flow.Unknown || w.player("ben").Presence != flow.Online {
		t.Fatalf("anna is %s, ben %s; want UNKNOWN, ONLINE", w.player("anna").Presence, w.player("ben").Presence)
	}
	w.must(&playerflow.AwaitPlayers{Node: w.n1})
	if by := w.player("anna").PresenceBy; by != w.cell.ContactTime(w.now).Add(w.config.Sessions.RestartGrace) || w.player("ben").Presence != flow.Online {
		t.Errorf("admitted again: anna has until %d, ben is %s", by, w.player("ben").Presence)
	}
}
