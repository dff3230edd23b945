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

// Attach gives the node its engine, which must be a replica of the node's journal. url is the node's URL for clients.
func (n *Node) Attach(e *engine.Engine, url string) {
	n.engine = e
	_, known := e.Level()
	n.presence = presence.Open(presence.Config{
		Node: n.ID(), Engine: e, Ask: n.peers.Ask, Log: n.log, From: n.link.From, Learn: n.link.Learn, Standing: func() presence.Standing {
			_, lacks := e.ArchiveLacks()
			return presence.Standing{
				Applied: e.Applied(), Version: n.options.Version, Level: known, URL: url, Short: e.Short() != nil, Clock: time.Now().UnixMilli(), Lacks: lacks, NoVote: n.noVote(), Marks: n.marks(),
			}
		},
	})
}

// Levels implements engine.Levels with the levels that the leader has received from the members. A missing member may return with another release.
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

// Incarnation returns the id under which the node's doors attach connections; see presence.Presence.
func (n *Node) Incarnation() domain.UUID { return n.presence.Node() }

// Registered reports whether the current incarnation is registered with the cluster.
func (n *Node) Registered() bool { return n.presence.Registered() }

// WhenGivenUp registers drop, which must drop all connections of a door. It is called whenever the other nodes have given this node up, or it has
// lost contact with them.
func (n *Node) WhenGivenUp(drop func()) { n.presence.WhenGivenUp(drop) }

// Leave tells the other nodes that this node's doors are closed, so that its connections count as lost at once.
func (n *Node) Leave(ctx context.Context) {
	if n.presence != nil {
		n.presence.Close(ctx)
	}
}

// Run makes the node answer other nodes, with answers for further questions, and decide whenever it leads.
func (n *Node) Run(duties office.Part, answers map[byte]exchange.Handler) {
	all := map[byte]exchange.Handler{membership: n.answerChange, presence.Question: n.presence.Answer, clock: n.answerTime, authorities: n.answerAuthorities}
	maps.Copy(all, answers)
	answer := exchange.Answer(n.engine, n.journal, all, n.options.Panics)
	n.answer.Store(&answer)
	n.running.Store(true)
	n.leading.Go(func() { n.lead(duties) })
	n.work.Go(n.catchUp)
	n.work.Go(n.settle)
	n.work.Go(n.introduce)
	n.work.Go(n.watchMembers)
	n.work.Go(n.watchRoom)
}

// leadPause is the pause between two attempts to start leading.
const leadPause = 100 * time.Millisecond

// lead takes up leadership whenever the node is elected.
func (n *Node) lead(duties office.Part) {
	for {
		j, err := n.journal.Lead(n.willing)
		if err != nil {
			return // the journal was closed or has failed
		}
		n.learnTime(n.willing)
		if err := n.engine.Lead(n.willing, j); err != nil {
			if n.willing.Err() == nil {
				n.log.Error("the node was elected but cannot decide", "term", j.Term(), "error", err)
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

// inOffice runs the duties until leadership ends, or the node has tried to hand over; if that failed, Lead starts again. Before a hand-over the
// duties stop, so that those of the next leader start after them, and the engine makes everything decided durable. Otherwise it would be left with
// changes in memory that no journal accepts any more, and would have to reload its state.
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

// handing is a planned hand-over: the duties and the engine are stopped between rested and over.
type handing struct{ rested, over chan struct{} }

// successors returns the voters to which the node would hand over, in order of preference: present ones, first those that are not short of space, and
// among these the ones with the most entries first. The last element is empty and leaves the choice to Raft's library. The library looks only at how
// much a node has received, so it may choose a failed one.
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

// handOverTo hands over to the first of the nodes that accepts.
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
	case <-time.After(leadPause): // leadership is just starting or ending
	case <-ctx.Done():
	}
	nodes := []string{to}
	if to == "" {
		nodes = n.successors()
	}
	return n.handOverTo(ctx, nodes)
}

// pause sleeps for d and reports whether the node is still running.
func (n *Node) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-n.ctx.Done():
		return false
	}
}

// handOverWait bounds a planned hand-over, which takes one round trip to the next leader.
const handOverWait = 3 * time.Second

// StepDown permanently stops what runs only on the leader. If the node leads and another one can take over, it hands over, so that the others need
// not detect its absence. Commands continue on the next leader, or here if there is none.
func (n *Node) StepDown(ctx context.Context) {
	var nodes []string
	if n.presence != nil && n.journal != nil { // the end of leadership discards who is present
		nodes = n.successors()
	}
	n.unwilling()
	n.leading.Wait()
	if n.journal == nil || n.engine == nil || !n.journal.Status().InOffice || n.votersBeside() == 0 {
		return
	}
	n.engine.StepDown() // what it decided after the last append could not become durable, and it would have to reload its state
	handing, cancel := context.WithTimeout(ctx, handOverWait)
	defer cancel()
	err := n.handOverTo(handing, nodes)
	if err == nil {
		return
	}
	n.log.Warn("the node stops without having handed over: the others elect a leader once they miss it", "error", err)
	again, cancel := context.WithTimeout(ctx, leadPause)
	defer cancel()
	if j, err := n.journal.Lead(again); err == nil { // for calls in progress
		if err := n.engine.Lead(ctx, j); err != nil {
			n.log.Warn("the node should have decided until it stops, but cannot", "error", err)
		}
	}
}

// Ask asks the leader a question for which it has an answer through Run. If this node leads, the error is engine.ErrNotLeading, because the caller
// has the answer itself.
func (n *Node) Ask(ctx context.Context, question byte, body []byte) ([]byte, error) {
	return n.peers.Ask(ctx, question, body)
}

// settleEvery is how often a node checks its own membership.
const settleEvery = 500 * time.Millisecond

// settle makes the cluster learn this node's address, and asks for a vote once the node has caught up.
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

// noVote returns, for people, why this node has no vote; empty while it has one or cannot know.
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

// unsettled returns the change that this node needs; empty if there is none.
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
			// While others write, this node is always slightly behind: the read waits until it has what the leader had when it was asked.
			if err := n.engine.Read(ctx, func(*cell.View) error { return nil }); err != nil {
				return c, fmt.Errorf("it has not caught up with the leader: %w", err)
			}
			return Change{Do: Promote, Node: s.ID}, nil
		}
	}
	return c, nil
}

// tellWait is how long a node that has caught up waits for its followers, such as the list of access keys.
const tellWait = 10 * time.Second

// catchUp waits until the node has everything that the leader had when it was asked, and its followers have received the events.
func (n *Node) catchUp() {
	for n.engine.Read(n.ctx, func(*cell.View) error { return nil }) != nil {
		if !n.pause(leadPause) {
			return
		}
	}
	ctx, cancel := context.WithTimeout(n.ctx, tellWait)
	defer cancel()
	if err := n.engine.AwaitFollowers(ctx); err != nil && n.ctx.Err() == nil {
		n.log.Warn("a part of this node has not received all events yet: the node serves without waiting for it any longer", "error", err)
	}
	n.current.Store(true)
	n.voidTokens()
}

// shortFor is how long a leader refuses changes because of a shortage before it hands over.
const shortFor = 2 * time.Second

// watchRoom hands over if this node leads and is short of space, but another voter is not; otherwise the cluster would have to wait for this node's
// operator. Package journal/raft hands over when writes fail; this happens earlier, while the disk's reserve is being used up.
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

// roomier returns a present voter that is not short of space; empty if there is none.
func (n *Node) roomier() string {
	best := n.successors()[0]
	for _, p := range n.presence.Nodes() {
		if p.Node == best && !p.Short {
			return best
		}
	}
	return ""
}

// watchMembers closes the connections of removed nodes, and logs if this node is one.
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
