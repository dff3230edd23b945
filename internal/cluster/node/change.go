package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/cluster/exchange"
	"github.com/musterhq/muster/internal/cluster/trust"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/engine"
	journalraft "github.com/musterhq/muster/internal/journal/raft"
)

// membership is the question that carries a Change.
const membership = 'm'

// Kinds of a Change.
const (
	Add      = "add"               // add a non-voting node at Address
	Move     = "move"              // record a member's new Address
	Locate   = "locate"            // have the asked node, which need not know a leader, look for a member at another Address
	Promote  = "promote"           // give a member a vote
	Demote   = "demote"            // take a member's vote
	Remove   = "remove"            // remove a member permanently
	HandOver = "hand-over"         // make Node the leader; empty: any present node
	Replace  = "replace-authority" // give the cluster a new authority; the previous one becomes void
	Look     = "look"              // change nothing, only return the leader's Status
)

// Change is a change of the cluster's members, or of its leader.
type Change struct {
	Do      string `json:"do"`
	Node    string `json:"node,omitempty"`
	Address string `json:"address,omitempty"`
	Token   string `json:"token,omitempty"`   // id of the join token with which a node is added
	Final   bool   `json:"final,omitempty"`   // the asked node must not forward the change
	Relayed bool   `json:"relayed,omitempty"` // the asked node may forward the change to the leader, but to no other node
}

// changeWait bounds the time of a change, including the time without a leader.
const changeWait = 10 * time.Second

// Change has the leader execute a change, and returns what the leader knows of the cluster afterwards. A refusal is a *domain.Refusal.
func (n *Node) Change(ctx context.Context, c Change) (s Status, err error) {
	if c.Do == Locate {
		return n.locate(c)
	}
	if c.Do == Remove && c.Node == n.ID() && !c.Final && len(n.others()) > 0 { // this node would lose its connections, and thus the answer and the way to the audit log
		return s, domain.Refuse(domain.Invalid, "node %s is this one, which could neither answer nor record its removal: remove it at another node", c.Node)
	}
	ctx, cancel := context.WithTimeout(ctx, changeWait)
	defer cancel()
	for {
		leader, _ := n.journal.Leader()
		s, err = n.changeOnce(ctx, c)
		if errors.Is(err, engine.ErrStopped) {
			c, err = n.unanswered(c, leader, err)
		}
		switch {
		case c.Final || err != nil && !errors.Is(err, engine.ErrNotLeading):
			return s, err
		case err == nil && s.Leader != "":
			return s, nil
		case err == nil: // it has handed over
			c = Change{Do: Look}
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return s, errElsewhere
		}
	}
}

func (n *Node) changeOnce(ctx context.Context, c Change) (Status, error) {
	if n.journal.Status().InOffice {
		return n.carryOut(ctx, c)
	}
	if c.Final {
		return Status{}, engine.ErrNotLeading
	}
	c.Final = true
	body, err := json.Marshal(c)
	if err != nil {
		return Status{}, err
	}
	answer, err := n.peers.Ask(ctx, membership, body)
	if c.Do == Move && err != nil && !c.Relayed { // the leader cannot reach this node, which therefore knows no leader
		answer, err = n.askAny(ctx, c)
	}
	var s Status
	if err == nil {
		err = json.Unmarshal(answer, &s)
	}
	return s, err
}

// unanswered returns what to do next if the leader's answer was lost. A leader that hands over may do so before it answers: as soon as this node
// learns of the next leader, it may close its connection to the previous one.
func (n *Node) unanswered(c Change, leader string, err error) (Change, error) {
	next, _ := n.journal.Leader()
	switch {
	case (c.Do == Demote || c.Do == Remove) && c.Node == leader: // it only hands over; the next leader does the rest
		return c, engine.ErrNotLeading
	case c.Do == HandOver && next != "" && next != leader && (c.Node == "" || c.Node == next):
		return Change{Do: Look}, engine.ErrNotLeading
	}
	return c, err
}

// locate makes this node look for another node at an address given by an operator, until the members have a new address for it or this node stops.
// The other node thereby learns this node's address. A wrong node at the address does no harm, because its certificate identifies it.
func (n *Node) locate(c Change) (Status, error) {
	known := n.addressOf(c.Node)
	switch {
	case known == "":
		return Status{}, domain.Refuse(domain.NotFound, "node %.40q is not a member of the cluster; `muster cluster status` shows the members", c.Node)
	case c.Node == n.ID():
		return Status{}, domain.Refuse(domain.Invalid, "node %s is this one, which has the address of its --cluster-listen or --cluster-advertise; run the command at another node", c.Node)
	}
	if trust.CheckAddress(c.Address) != nil {
		return Status{}, domain.Refuse(domain.Invalid, "address %.80q is not of the form HOST:PORT", c.Address)
	}
	if c.Address == known {
		n.addresses.Delete(c.Node)
	} else {
		n.addresses.Store(c.Node, whereabouts{says: c.Address, known: known, told: true})
	}
	n.log.Info("an operator has given the address of another node", "node", c.Node, "address", c.Address, "known", known)
	return n.Status(), nil
}

// askAny asks all other members, which then remember this node's address, and returns the first answer.
func (n *Node) askAny(ctx context.Context, c Change) (answer []byte, err error) {
	c.Final, c.Relayed = false, true
	body, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	err = engine.ErrNotLeading
	done := false
	for _, m := range n.members() {
		if m.ID == n.ID() {
			continue
		}
		said, failed := n.askMember(ctx, m.ID, m.Address, body)
		if !done {
			answer, err, done = said, failed, failed == nil
		}
	}
	return answer, err
}

// askMember sends a membership question to one member.
func (n *Node) askMember(ctx context.Context, id, address string, body []byte) ([]byte, error) {
	conn, err := n.dial(ctx, address, id)
	if err != nil {
		return nil, err
	}
	client := exchange.NewClient(conn)
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, askAnyWait)
	defer cancel()
	return client.AskFor(ctx, membership, body)
}

// introduce tells the nodes that an operator has located where this node is. Otherwise, if the others already have a leader, a located node would
// know no reachable node, and the leader would not know the node's address.
func (n *Node) introduce() {
	body, err := json.Marshal(Change{Do: Move, Node: n.ID(), Address: n.link.Advertised(), Final: true})
	for err == nil && n.pause(settleEvery) {
		n.addresses.Range(func(id, x any) bool {
			if at := x.(whereabouts); at.told && n.moved(trust.NodeID(id.(string))) != "" {
				_, _ = n.askMember(n.ctx, id.(string), at.says, body) // it remembers this node's address, does not lead and refuses the rest
			}
			return n.ctx.Err() == nil
		})
	}
}

// askAnyWait is how long one member has to answer before the next one is asked.
const askAnyWait = 2 * time.Second

// answerChange executes another node's change.
func (n *Node) answerChange(ctx context.Context, body []byte) ([]byte, error) {
	var c Change
	if err := json.Unmarshal(body, &c); err != nil {
		return nil, domain.Refuse(domain.Invalid, "%v", err)
	}
	if known := n.addressOf(c.Node); c.Do == Move && known != "" && known != c.Address && trust.CheckAddress(c.Address) == nil {
		n.addresses.Store(c.Node, whereabouts{says: c.Address, known: known})
	}
	s, err := n.Change(ctx, c)
	if err != nil {
		return nil, err
	}
	return json.Marshal(s)
}

// carryOut executes a change on the leader.
func (n *Node) carryOut(ctx context.Context, c Change) (s Status, err error) {
	switch c.Do {
	case Add:
		err = n.add(ctx, c)
	case Move:
		err = n.journal.SetAddress(ctx, c.Node, c.Address)
	case Promote:
		if err := n.allPresent(c.Node); err != nil {
			return s, err
		}
		if err := n.caughtUp(ctx, c.Node); err != nil {
			return s, err
		}
		err = n.journal.Promote(ctx, c.Node)
	case Demote, Remove:
		if c.Node == n.ID() && n.votersBeside() > 0 { // the next leader does it
			if err := n.handOver(ctx, ""); err != nil {
				return s, refusal(err)
			}
			return s, engine.ErrNotLeading
		}
		if c.Do == Remove {
			if err = n.remove(ctx, c.Node); err == nil {
				n.link.CloseNode(trust.NodeID(c.Node)) // other nodes do so within a second
			}
		} else {
			err = n.journal.Demote(ctx, c.Node)
		}
	case HandOver:
		if c.Node != n.ID() {
			err = n.handOver(ctx, c.Node)
		}
	case Replace:
		if err = n.replaceAuthority(ctx); errors.Is(err, context.DeadlineExceeded) {
			err = domain.Refuse(domain.Conflict, "the replacement of the authority took longer than %s and stopped halfway, which does no harm: run the command again", changeWait)
		}
	case Look:
	default:
		err = domain.Refuse(domain.Invalid, "change %.40q of the cluster is unknown", c.Do)
	}
	if err != nil {
		return s, refusal(err)
	}
	if c.Do != Look {
		n.log.Info("the cluster was changed", "change", c.Do, "node", c.Node, "address", c.Address)
	}
	return n.Status(), nil
}

// allPresent refuses to give another node a vote while a voter is missing: see Promote in package journal/raft.
func (n *Node) allPresent(node string) error {
	for _, m := range n.Status().Members {
		if m.Missing && (m.Role == "voter" || m.ID == node) {
			return domain.Refuse(domain.Conflict, "node %s is missing: start it, or remove it from the cluster; a node gets a vote only while all voters and the node itself are present", m.ID)
		}
	}
	return nil
}

// promoteWait is how long a node that is to get a vote has to confirm that it has caught up. It reports its progress twice a second.
const promoteWait = 3 * time.Second

// caughtUp waits until a non-voting node has all entries that this node has now. If a node got its vote while it is behind, a majority might have to
// wait for it.
func (n *Node) caughtUp(ctx context.Context, node string) error {
	ctx, cancel := context.WithTimeout(ctx, promoteWait)
	defer cancel()
	for want := n.journal.Status().Last; ; {
		applied, observes := uint64(0), false
		for _, m := range n.members() {
			observes = observes || m.ID == node && !m.Votes
		}
		for _, p := range n.presence.Nodes() {
			if p.Node == node {
				applied = p.Applied
			}
		}
		if !observes || applied >= want { // package journal/raft refuses non-members
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return domain.Refuse(domain.Conflict, "node %s is %d entries behind: it gets a vote once it has caught up, so try again later", node, want-applied)
		}
	}
}

func (n *Node) votersBeside() (others int) {
	for _, m := range n.members() {
		if m.Votes && m.ID != n.ID() {
			others++
		}
	}
	return others
}

// refusal converts the journal's errors into errors that can be sent to other nodes.
func refusal(err error) error {
	if _, ok := errors.AsType[*journalraft.NotLeader](err); ok {
		return engine.ErrNotLeading
	}
	if errors.Is(err, journalraft.ErrMember) {
		return domain.Refuse(domain.Conflict, "%v", err)
	}
	return fmt.Errorf("change the cluster: %w", err)
}
