package raft

import (
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/musterhq/muster/internal/steady"
)

// Role is the role of a node in the cluster.
type Role string

const (
	Follower  Role = "follower"  // applies what the leader has committed, and votes
	Candidate Role = "candidate" // requests votes
	Leader    Role = "leader"    // was elected; Lead returns when it has applied everything of earlier terms
	Observer  Role = "observer"  // applies what the leader has committed, without a vote
	Stopped   Role = "stopped"   // failed or closed
)

// Change is a change of a node's role, term or leader.
type Change struct {
	Role   Role
	Term   uint64
	Leader string // id; empty: none is known
	Reason string // why the role changed, for people; empty if only the leader or the term changed
}

// watch follows Raft's state, and shuts Raft down when the node fails or is closed. Raft's observations only wake it, because they may be
// dropped; it then reads the state from Raft.
func (n *Node) watch() {
	woken := make(chan raft.Observation, 64)
	observer := raft.NewObserver(woken, false, func(o *raft.Observation) bool {
		switch o.Data.(type) {
		case raft.RaftState, raft.LeaderObservation:
			return true
		}
		return false
	})
	n.raft.RegisterObserver(observer)
	n.watched.Go(func() {
		defer n.raft.DeregisterObserver(observer)
		tick := time.NewTicker(n.options.ElectionTimeout / 2)
		defer tick.Stop()
		var known Change
		for {
			known = n.look(known)
			select {
			case <-woken:
			case <-tick.C:
				n.watchShortage()
				n.watchMembers()
			case <-n.store.db.Failed():
				n.fail(n.store.db.Err())
				n.shutDown(known)
				return
			case <-n.failed:
				n.shutDown(known)
				return
			case <-n.closing:
				n.shutDown(known)
				return
			}
		}
	})
}

// look compares Raft's state with the known one, and acts on the difference.
func (n *Node) look(known Change) Change {
	leader, _ := n.followed()
	now := Change{Role: n.role(), Term: n.raft.CurrentTerm(), Leader: leader}
	if now.Role == Leader {
		now.Leader = n.options.ID
	}
	if term, _ := n.office.get(); term != 0 && !n.leads(term) {
		n.leave()
	}
	if now.Role == Leader {
		n.enter(now.Term)
	}
	if now == (Change{known.Role, known.Term, known.Leader, ""}) {
		return known
	}
	if now.Role != known.Role {
		now.Reason = n.reason(known, now)
	}
	n.tell(now)
	return now
}

func (n *Node) role() Role {
	switch n.raft.State() {
	case raft.Leader:
		return Leader
	case raft.Candidate:
		return Candidate
	case raft.Shutdown:
		return Stopped
	}
	if !n.votes() {
		return Observer
	}
	return Follower
}

// reason returns why the role changed, as far as Raft's state shows it.
func (n *Node) reason(known, now Change) string {
	handed := n.handing.Swap(false)
	switch {
	case now.Role == Leader:
		return "elected"
	case known.Role == Leader && handed:
		return "handed over"
	case known.Role == Leader && now.Term > known.Term:
		return fmt.Sprintf("term %d began at another node", now.Term)
	case known.Role == Leader:
		return "no contact with a majority"
	case now.Role == Candidate:
		return "no contact with a leader for the election time-out"
	case known.Role == Candidate:
		return "another node leads, or may lead"
	case known.Role == "":
		return "started"
	}
	return "the members of the cluster changed"
}

func (n *Node) tell(c Change) {
	n.log.Info("the node's role in the cluster changed", "role", string(c.Role), "term", c.Term, "leader", c.Leader, "reason", c.Reason)
	if n.options.OnChange != nil {
		n.options.OnChange(c)
	}
}

// shutDown stops Raft, which first answers pending requests: a leader that cannot commit loses its leadership within the election timeout.
func (n *Node) shutDown(known Change) {
	n.leave()
	n.patient.stir() // permanently: Raft's goroutines must end
	n.store.db.StopWaiting()
	answered := make(chan struct{})
	go func() {
		n.pending.Wait()
		close(answered)
	}()
	patience := time.NewTimer(3 * n.options.ElectionTimeout)
	defer patience.Stop()
	select {
	case <-answered:
	case <-patience.C:
	}
	_ = n.stop()
	known.Role, known.Leader, known.Reason = Stopped, "", "closed"
	if err := n.Err(); err != nil {
		known.Reason = "failed: " + err.Error()
	}
	n.tell(known)
}

// watchShortage ends the leadership of a node that waits for space or descriptors. Its followers have their own, but would wait for this
// node forever, because it still sends heartbeats. First it hands over, which needs no space. While a write is stuck, that is impossible,
// so after twice the time the database gives up waiting, and the node fails.
func (n *Node) watchShortage() {
	now := time.Now()
	err := n.store.db.Shortage()
	if err == nil || n.raft.State() != raft.Leader || n.voters() < 2 {
		n.shortly.Store(0)
		return
	}
	n.shortly.CompareAndSwap(0, steady.Nanos(now))
	switch lasts := now.Sub(steady.Time(n.shortly.Load())); {
	case lasts > 2*n.options.ShortageLimit:
		n.log.Error("the leader waits too long for space or descriptors: the node stops", "error", err)
		n.fail(err)
		n.store.db.StopWaiting()
	case lasts > n.options.ShortageLimit && n.handing.CompareAndSwap(false, true):
		n.log.Warn("the leader waits for space or descriptors: it hands over", "error", err)
		if n.begin() != nil {
			return
		}
		future := n.raft.LeadershipTransfer()
		go func() {
			defer n.pending.Done()
			if err := future.Error(); err != nil {
				n.log.Warn("the leader could not hand over", "error", err)
				n.handing.Store(false) // so that the next tick, or the next shortage, tries again
			}
		}()
	}
}
