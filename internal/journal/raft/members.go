package raft

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/musterhq/muster/internal/journal"
)

// Member is a node in the configuration of the cluster.
type Member struct {
	ID      string
	Address string
	Votes   bool
}

// Status is what a node knows about itself and about the cluster.
type Status struct {
	ID       string
	Role     Role
	Term     uint64
	Leader   string // id; empty: none is known
	InOffice bool   // it leads and has applied everything of earlier terms
	Members  []Member

	Last     uint64        // number of the last entry that this node knows to be committed
	Snapshot uint64        // number of the entry after which its latest snapshot was taken
	Behind   uint64        // entries of Raft's log that the node knows to be committed but has not applied
	Contact  time.Duration // time since the node heard from the leader; 0 on the leader
}

// Status returns the node's state.
func (n *Node) Status() Status {
	leader, _ := n.followed()
	term, _ := n.office.get()
	s := Status{
		ID: n.options.ID, Role: n.role(), Term: n.raft.CurrentTerm(), Leader: leader, InOffice: term != 0, Members: n.members(),
		Last: n.machine.last(), Snapshot: n.snaps.get().number,
	}
	if committed, applied := n.raft.CommitIndex(), n.raft.AppliedIndex(); committed > applied {
		s.Behind = committed - applied
	}
	if contact := n.raft.LastContact(); s.Role != Leader && !contact.IsZero() {
		s.Contact = time.Since(contact)
	}
	return s
}

func (n *Node) members() (members []Member) {
	for _, s := range n.servers() {
		members = append(members, Member{string(s.ID), string(s.Address), s.Suffrage == raft.Voter})
	}
	return members
}

func (n *Node) servers() []raft.Server {
	return n.raft.GetConfiguration().Configuration().Servers
}

func (n *Node) voters() (voters int) {
	for _, s := range n.servers() {
		if s.Suffrage == raft.Voter {
			voters++
		}
	}
	return voters
}

func (n *Node) votes() bool {
	member, ok := n.member(n.options.ID)
	return !ok || member.Suffrage == raft.Voter // a node that waits to be added is not an observer
}

func (n *Node) member(id string) (raft.Server, bool) {
	servers := n.servers()
	at := slices.IndexFunc(servers, func(s raft.Server) bool { return string(s.ID) == id })
	if at < 0 {
		return raft.Server{}, false
	}
	return servers[at], true
}

// ErrMember is part of the error of a change of members that the cluster does not allow.
var ErrMember = errors.New("the change does not fit the members of the cluster")

// AddObserver adds a node without a vote. It receives the journal, but counts for no majority. Only the leader can add it. A future voter
// is first added as an observer, and promoted when it has caught up, because a majority must not wait for an empty node.
func (n *Node) AddObserver(ctx context.Context, id, address string) error {
	if old, ok := n.member(id); ok && (string(old.Address) != address || old.Suffrage == raft.Voter) {
		return fmt.Errorf("add node %s at %s: %w: it is a member at %s", id, address, ErrMember, old.Address)
	}
	if other := n.at(address, id); other != "" {
		return fmt.Errorf("add node %s: %w: %s is the address of node %s; if the new node is to take its place, remove that one first", id, ErrMember, address, other)
	}
	return n.changeMembers(ctx, "add node "+id, func(patience time.Duration) raft.Future {
		return n.raft.AddNonvoter(raft.ServerID(id), raft.ServerAddress(address), 0, patience)
	})
}

// at returns a member other than id that has an address; empty if none has it.
func (n *Node) at(address, id string) string {
	for _, m := range n.members() {
		if m.Address == address && m.ID != id {
			return m.ID
		}
	}
	return ""
}

// SetAddress records that a member has a new address. Only the leader can.
func (n *Node) SetAddress(ctx context.Context, id, address string) error {
	old, ok := n.member(id)
	if !ok {
		return fmt.Errorf("set the address of node %s: %w: it is not a member", id, ErrMember)
	}
	if other := n.at(address, id); other != "" {
		return fmt.Errorf("set the address of node %s: %w: %s is the address of node %s", id, ErrMember, address, other)
	}
	return n.changeMembers(ctx, "set the address of node "+id, func(patience time.Duration) raft.Future {
		if old.Suffrage == raft.Voter {
			return n.raft.AddVoter(old.ID, raft.ServerAddress(address), 0, patience)
		}
		return n.raft.AddNonvoter(old.ID, raft.ServerAddress(address), 0, patience)
	})
}

// Promote gives a member a vote. Only the leader can. Before and after, every voter should be healthy and up to date; the caller sees this
// in their status. Raft's library refuses its vote to a node that is not a voter in the configuration that it knows. If a voter was away
// during the promotion of another, and returns when the leader is gone, it refuses the new one, and lacks entries to be elected itself. The
// two then wait until a third voter returns.
func (n *Node) Promote(ctx context.Context, id string) error {
	old, ok := n.member(id)
	if !ok {
		return fmt.Errorf("promote node %s: %w: it is not a member", id, ErrMember)
	}
	return n.changeMembers(ctx, "promote node "+id, func(patience time.Duration) raft.Future {
		return n.raft.AddVoter(old.ID, old.Address, 0, patience)
	})
}

// Demote takes away a member's vote. Only the leader can, and not its own: it hands over first.
func (n *Node) Demote(ctx context.Context, id string) error {
	if err := n.spare(id); err != nil {
		return fmt.Errorf("demote node %s: %w", id, err)
	}
	return n.changeMembers(ctx, "demote node "+id, func(patience time.Duration) raft.Future {
		return n.raft.DemoteVoter(raft.ServerID(id), 0, patience)
	})
}

// Remove removes a member from the cluster. Only the leader can, and not itself: it hands over first.
func (n *Node) Remove(ctx context.Context, id string) error {
	if err := n.spare(id); err != nil {
		return fmt.Errorf("remove node %s: %w", id, err)
	}
	return n.changeMembers(ctx, "remove node "+id, func(patience time.Duration) raft.Future {
		return n.raft.RemoveServer(raft.ServerID(id), 0, patience)
	})
}

// spare refuses to remove the only vote of a cluster, and that of the leader. Raft's library lets only voters of the newest configuration
// that it has stand for election. If a leader that removes its own vote dies before another node has the change, it alone has all entries,
// but it may not stand.
func (n *Node) spare(id string) error {
	old, ok := n.member(id)
	if !ok {
		return fmt.Errorf("%w: it is not a member", ErrMember)
	}
	if id == n.options.ID && n.raft.State() == raft.Leader && n.voters() > 1 {
		return fmt.Errorf("%w: it is the leader; hand over first", ErrMember)
	}
	if old.Suffrage == raft.Voter && n.voters() == 1 {
		return fmt.Errorf("%w: it has the only vote", ErrMember)
	}
	return nil
}

// changeMembers returns once a majority of the new configuration has the change. If ctx ends meanwhile, the outcome is unknown.
func (n *Node) changeMembers(ctx context.Context, what string, change func(patience time.Duration) raft.Future) error {
	patience := 10 * time.Second
	if deadline, ok := ctx.Deadline(); ok {
		patience = max(time.Until(deadline), time.Millisecond)
	}
	err := n.begin()
	if err == nil {
		defer n.patient.stir()()
		err = n.await(ctx, change(patience))
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader):
		err = n.notLeader()
	case errors.Is(err, raft.ErrEnqueueTimeout):
		err = errors.New("an earlier change of members is still under way")
	case errors.Is(err, raft.ErrLeadershipLost), ctx.Err() != nil:
		err = fmt.Errorf("%w: whether the members changed is unknown", err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// handOverTries is how long HandOver retries after a failure. The request to take over may go out on a connection to a process that has
// been restarted since, which nothing else notices in an idle cluster.
const handOverTries = 300 * time.Millisecond

// HandOver makes another voter the leader: the node with that id or, if id is empty, the one that has received most, even if it is dead. It
// returns when this node no longer leads. It waits for the append in flight and blocks others; if it succeeds, those fail with ErrFenced,
// and nothing of them was written.
func (n *Node) HandOver(ctx context.Context, id string) error {
	if n.raft.State() != raft.Leader {
		return fmt.Errorf("hand over: %w", n.notLeader())
	}
	to, ok := n.member(id)
	switch {
	case id == n.options.ID:
		return fmt.Errorf("hand over to node %s: %w: it is the leader", id, ErrMember)
	case id != "" && (!ok || to.Suffrage != raft.Voter):
		return fmt.Errorf("hand over to node %s: %w: it has no vote", id, ErrMember)
	case id == "" && n.voters() < 2:
		return fmt.Errorf("hand over: %w: no other node has a vote", ErrMember)
	}
	n.office.mu.Lock()
	run := n.office.run
	n.office.mu.Unlock()
	if run != nil { // otherwise an append in flight would have an unknown outcome
		select {
		case run.appending <- struct{}{}:
			defer func() { <-run.appending }()
		case <-ctx.Done():
			return fmt.Errorf("hand over: %w", ctx.Err())
		}
	}
	defer n.patient.stir()()
	for began := time.Now(); ; time.Sleep(transferPause) {
		if err := n.begin(); err != nil {
			n.handing.Store(false)
			return fmt.Errorf("hand over: %w: %w", journal.ErrFailed, err)
		}
		n.handing.Store(true)
		var future raft.Future
		if id == "" {
			future = n.raft.LeadershipTransfer()
		} else {
			future = n.raft.LeadershipTransferToServer(to.ID, to.Address)
		}
		err := n.await(ctx, future)
		if err == nil {
			break
		}
		if n.raft.State() == raft.Leader && ctx.Err() == nil && time.Since(began) < handOverTries {
			continue
		}
		if errors.Is(err, raft.ErrNotLeader) {
			err = n.notLeader()
		}
		n.handing.Store(false)
		return fmt.Errorf("hand over: %w", err)
	}
	if term, _ := n.office.get(); term != 0 && !n.leads(term) { // watch has not noticed yet
		n.leave()
	}
	return nil
}
