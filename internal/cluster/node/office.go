package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/cluster/exchange"
	"github.com/musterhq/muster/internal/cluster/presence"
	"github.com/musterhq/muster/internal/cluster/trust"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/engine"
	journalraft "github.com/musterhq/muster/internal/journal/raft"
	"github.com/musterhq/muster/internal/office"
)

// Attach gives the node its engine, which must be a replica of the node's journal. url is by which clients reach the node.
func (n *Node) Attach(e *engine.Engine, url string) {
	n.engine = e
	_, known := e.Level()
	n.presence = presence.Open(presence.Config{
		Node: n.ID(), Engine: e, Ask: n.peers.Ask, Log: n.log, Standing: func() presence.Standing {
			_, lacks := e.ArchiveLacks()
			return presence.Standing{
				Applied: e.Applied(), Version: n.options.Version, Level: known, URL: url, Short: e.Short() != nil, Clock: time.Now().UnixMilli(), Lacks: lacks, NoVote: n.noVote(), Marks: n.marks(),
			}
		},
	})
}

// Levels implements engine.Levels with what the leader has heard of the members. One that is missing may come back with another release.
func (n *Node) Levels() (lowest uint, complete bool) {
	known := map[string]uint{}
	for _, p := range n.presence.Nodes() {
		if time.Since(p.Heard) <= missingAfter {
			known[p.Node] = p.Level
		}
	}
	lowest = math.MaxUint
	for _, m := range n.members() {
		if known[m.ID] == 0 {
			return 0, false
		}
		lowest = min(lowest, known[m.ID])
	}
	return lowest, len(known) > 0
}

// Incarnation is the id under which the node's doors attach connections; see presence.Presence.
func (n *Node) Incarnation() domain.UUID { return n.presence.Node() }

// Registered reports whether the present incarnation is registered with the cluster.
func (n *Node) Registered() bool { return n.presence.Registered() }

// WhenGivenUp has drop called whenever the others have given this node up, or it them: it drops all connections of a door.
func (n *Node) WhenGivenUp(drop func()) { n.presence.WhenGivenUp(drop) }

// Leave tells the others that this node's doors are closed: its connections count as lost at once.
func (n *Node) Leave(ctx context.Context) {
	if n.presence != nil {
		n.presence.Close(ctx)
	}
}

// Run lets the node answer others, with the answers to further questions, and decide whenever it leads.
func (n *Node) Run(duties office.Part, answers map[byte]exchange.Handler) {
	all := map[byte]exchange.Handler{membership: n.answerChange, presence.Question: n.presence.Answer, clock: n.answerTime, authorities: n.answerAuthorities}
	maps.Copy(all, answers)
	answer := exchange.Answer(n.engine, n.journal, all)
	n.answer.Store(&answer)
	n.running.Store(true)
	n.leading.Go(func() { n.lead(duties) })
	n.work.Go(n.catchUp)
	n.work.Go(n.settle)
	n.work.Go(n.introduce)
	n.work.Go(n.watchMembers)
	n.work.Go(n.watchRoom)
}

// leadPause is the time between two attempts to begin an office.
const leadPause = 100 * time.Millisecond

// lead takes every office to which the node is elected.
func (n *Node) lead(duties office.Part) {
	for {
		j, err := n.journal.Lead(n.willing)
		if err != nil {
			return // closed or failed
		}
		n.learnTime(n.willing)
		if err := n.engine.Lead(n.willing, j); err != nil {
			if n.willing.Err() == nil {
				n.log.Error("the node was elected and cannot decide", "term", j.Term(), "error", err)
			}
			if !n.pause(leadPause) {
				return
			}
			continue
		}
		n.log.Info("this node decides for the cluster", "term", j.Term())
		n.presence.Lead()
		n.inOffice(j, duties)
		n.presence.Rest()
		n.log.Info("this node no longer decides for the cluster", "term", j.Term())
	}
}

// inOffice runs the duties until the office ends, or the node has tried to hand over: then Lead begins it anew if that failed. Before a hand-over they
// rest, so that those of the next node begin after them, and the engine lets what it has decided become durable: with changes in memory that no
// journal takes any more, it would have to load its state again.
func (n *Node) inOffice(j *journalraft.Journal, duties office.Part) {
	duties.Lead()
	select {
	case <-j.Ended():
	case <-n.willing.Done():
	case x := <-n.handing:
		duties.Rest()
		n.engine.StepDown()
		close(x.rested)
		<-x.over
		return
	}
	duties.Rest()
}

// handing is a planned hand-over: the duties and the engine rest from one moment to the other.
type handing struct{ rested, over chan struct{} }

// successors are the voters to which the node would hand over, in this order: those that are present, with room before without, and those that have most first. The last one is
// empty, which leaves the choice to Raft's library. That chooses by what a node has received alone, and so it may choose one that is dead.
func (n *Node) successors() []string {
	votes := map[string]bool{}
	for _, m := range n.members() {
		votes[m.ID] = m.Votes && m.ID != n.ID()
	}
	present := slices.DeleteFunc(n.presence.Nodes(), func(p presence.Present) bool {
		return !votes[p.Node] || p.Heard.IsZero() || time.Since(p.Heard) >= missingAfter
	})
	slices.SortStableFunc(present, func(a, b presence.Present) int {
		switch {
		case a.Short != b.Short && a.Short:
			return 1
		case a.Short != b.Short:
			return -1
		}
		return cmp.Compare(b.Applied, a.Applied)
	})
	var ids []string
	for _, p := range present {
		ids = append(ids, p.Node)
	}
	return append(ids, "")
}

// handOverTo hands over to the first of the nodes that takes over.
func (n *Node) handOverTo(ctx context.Context, nodes []string) (err error) {
	for _, to := range nodes {
		failed := n.journal.HandOver(ctx, to)
		if failed == nil {
			return nil
		}
		err = errors.Join(err, failed)
		if ctx.Err() != nil || n.journal.Status().Role != journalraft.Leader {
			return err
		}
	}
	return err
}

// handOver makes another node the leader; empty: one of the successors.
func (n *Node) handOver(ctx context.Context, to string) error {
	x := handing{rested: make(chan struct{}), over: make(chan struct{})}
	defer close(x.over)
	select {
	case n.handing <- x:
		<-x.rested
	case <-time.After(leadPause): // the office begins or ends at this moment
	case <-ctx.Done():
	}
	nodes := []string{to}
	if to == "" {
		nodes = n.successors()
	}
	return n.handOverTo(ctx, nodes)
}

// pause reports whether the node still runs after d.
func (n *Node) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-n.ctx.Done():
		return false
	}
}

// handOverWait bounds a planned hand-over. It takes a round to the next leader.
const handOverWait = 3 * time.Second

// StepDown ends what runs only at the node that decides, for good, and hands over if the node leads and another one can: the others need not wait until
// they miss it. Commands go on, at the next leader, or here if there is none.
func (n *Node) StepDown(ctx context.Context) {
	var nodes []string
	if n.presence != nil && n.journal != nil { // the end of the office forgets who is present
		nodes = n.successors()
	}
	n.unwilling()
	n.leading.Wait()
	if n.journal == nil || n.engine == nil || !n.journal.Status().InOffice || n.votersBeside() == 0 {
		return
	}
	n.engine.StepDown() // what it decided behind the last append could not become durable, and it would load its state again
	handing, cancel := context.WithTimeout(ctx, handOverWait)
	defer cancel()
	err := n.handOverTo(handing, nodes)
	if err == nil {
		return
	}
	n.log.Warn("the node stops without having handed over: the others elect a leader once they miss it", "error", err)
	again, cancel := context.WithTimeout(ctx, leadPause)
	defer cancel()
	if j, err := n.journal.Lead(again); err == nil { // the calls that are under way
		if err := n.engine.Lead(ctx, j); err != nil {
			n.log.Warn("the node was to decide until it stops, and cannot", "error", err)
		}
	}
}

// Ask asks the node that leads a question that it has an answer to by Run. When this node leads, the caller has the answer itself, and the error is
// engine.ErrNotLeading.
func (n *Node) Ask(ctx context.Context, question byte, body []byte) ([]byte, error) {
	return n.peers.Ask(ctx, question, body)
}

// settleEvery is the time between two looks of a node at its own membership.
const settleEvery = 500 * time.Millisecond

// settle has the cluster know where this node is, and asks for a vote once the node has caught up.
func (n *Node) settle() {
	said := ""
	for n.pause(settleEvery) {
		at, err := n.unsettled()
		if err == nil && at.Do != "" {
			ctx, cancel := context.WithTimeout(n.ctx, changeWait)
			_, err = n.Change(ctx, at)
			cancel()
		}
		if n.ctx.Err() != nil {
			return
		}
		why := ""
		if err != nil {
			why = err.Error()
		}
		n.unsettledFor.Store(&why)
		if why != "" && why != said {
			n.log.Info("the node's membership cannot be settled yet: it tries again", "error", err)
		}
		said = why
	}
}

// noVote is why this node has no vote, for people; empty while it has one, or cannot know.
func (n *Node) noVote() string {
	for _, m := range n.members() {
		switch {
		case m.ID != n.ID() || m.Votes:
		case n.options.Observer:
			return "it runs with --observer"
		case n.data.Voted():
			return "its vote was taken: `muster cluster promote` gives it back"
		default:
			if why := n.unsettledFor.Load(); why != nil && *why != "" {
				return *why
			}
			return "it has not asked for one yet"
		}
	}
	return ""
}

// unsettled returns the change that this node needs; empty when there is none.
func (n *Node) unsettled() (c Change, err error) {
	s := n.journal.Status()
	for _, m := range s.Members {
		switch {
		case m.ID != s.ID:
		case m.Address != n.link.Advertised():
			return Change{Do: Move, Node: s.ID, Address: n.link.Advertised()}, nil
		case m.Votes && !n.data.Voted():
			return c, n.data.SetVoted()
		case m.Votes || n.data.Voted() || n.options.Observer || s.Leader == "":
		default:
			ctx, cancel := context.WithTimeout(n.ctx, changeWait)
			defer cancel()
			// While others write, this node is always a moment behind: the read waits until it has what the leader had when it was asked.
			if err := n.engine.Read(ctx, func(*cell.View) error { return nil }); err != nil {
				return c, fmt.Errorf("it has not caught up with the leader: %w", err)
			}
			return Change{Do: Promote, Node: s.ID}, nil
		}
	}
	return c, nil
}

// catchUp waits until the node has what the leader had when it was asked.
func (n *Node) catchUp() {
	for n.engine.Read(n.ctx, func(*cell.View) error { return nil }) != nil {
		if !n.pause(leadPause) {
			return
		}
	}
	n.current.Store(true)
	n.voidTokens()
}

// shortFor is how long a leader refuses changes for want of room before it hands over.
const shortFor = 2 * time.Second

// watchRoom hands over when this node leads and has no room for changes, if another voter has: its followers would have to wait for this node's operator. Package
// journal/raft hands over when writes fail; this is before that, while the reserve of the disk is used up.
func (n *Node) watchRoom() {
	var since time.Time
	for n.pause(settleEvery) {
		if n.engine.Short() == nil || !n.journal.Status().InOffice {
			since = time.Time{}
			continue
		}
		if since.IsZero() {
			since = time.Now()
		}
		if to := n.roomier(); to != "" && time.Since(since) >= shortFor {
			n.log.Warn("this node has no room for changes: it hands over", "to", to, "reason", n.engine.Short())
			ctx, cancel := context.WithTimeout(n.ctx, handOverWait)
			if err := n.handOver(ctx, to); err != nil && n.ctx.Err() == nil {
				n.log.Warn("the node could not hand over", "to", to, "error", err)
			}
			cancel()
		}
	}
}

// roomier returns a voter that is present and has room; empty when there is none.
func (n *Node) roomier() string {
	best := n.successors()[0]
	for _, p := range n.presence.Nodes() {
		if p.Node == best && !p.Short {
			return best
		}
	}
	return ""
}

// watchMembers closes the connections of nodes that are removed, and says so if this node is one.
func (n *Node) watchMembers() {
	known, told := map[string]bool{}, false
	for n.pause(settleEvery) {
		if !told && n.removed(trust.NodeID(n.ID())) && n.journal.Status().Leader == "" {
			n.log.Error("this node "+wasRemoved, "node", n.ID())
			told = true
		}
		now := map[string]bool{}
		for _, m := range n.members() {
			now[m.ID] = true
		}
		for id := range known {
			if !now[id] {
				n.log.Info("a node was removed from the cluster", "node", id)
				n.link.CloseNode(trust.NodeID(id))
			}
		}
		known = now
	}
}

var errElsewhere = domain.Refuse(domain.Overloaded, "no node of the cluster leads at the moment")
