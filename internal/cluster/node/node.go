package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/cluster/exchange"
	"github.com/musterhq/muster/internal/cluster/link"
	"github.com/musterhq/muster/internal/cluster/presence"
	"github.com/musterhq/muster/internal/cluster/requests"
	"github.com/musterhq/muster/internal/cluster/trust"
	"github.com/musterhq/muster/internal/datadir"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/identity"
	journalraft "github.com/musterhq/muster/internal/journal/raft"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/internal/rate"
)

// Options configures a node: where it keeps its data, and how other nodes reach it.
type Options struct {
	Data      datadir.Options
	Listen    string // address of the port for other nodes
	Advertise string // address for the other nodes; empty: the address that Listen has bound
	Join      string // text of a join token, for a directory that does not belong to a node yet; empty: begin a cluster, unless Joins
	Joins     bool   // a token was given. It may be empty, because the command that should have printed it failed
	Observer  bool   // the node does not ask for a vote
	Version   string // of the program, for people

	// Marks returns hashes of the settings that all nodes should share, by name; nil: they are not compared.
	Marks func() map[string]uint64

	Connections int // accepted connections of other nodes; 0: link.ConnectionsMax

	Panics *panics.Guard
	Log    *slog.Logger
}

// Node is an open node. All methods may be called concurrently.
type Node struct {
	options  Options
	log      *slog.Logger
	data     *datadir.Node
	identity *trust.Identity
	link     *link.Link
	journal  *journalraft.Node
	opened   atomic.Pointer[journalraft.Node] // same as journal, for Raft's goroutines, which start while it is being opened
	peers    *exchange.Peers
	archives *exchange.Archives
	requests *requests.Net

	addresses sync.Map // maps ids of nodes to their whereabouts

	engine   *engine.Engine     // set by Attach
	presence *presence.Presence // set by Attach
	answer   atomic.Pointer[func(context.Context, byte, []byte) (byte, []byte)]
	running  atomic.Bool // Run was called
	current  atomic.Bool // since its start, the node has once applied everything acknowledged before
	refusals rate.Lines  // for refusals of nodes that want to join

	unsettledFor atomic.Pointer[string] // why settle last failed; empty: it succeeded
	ctx          context.Context
	cancel       context.CancelFunc
	work         sync.WaitGroup

	willing   context.Context // ends with StepDown: the node no longer wants to lead
	unwilling context.CancelFunc
	leading   sync.WaitGroup
	handing   chan handing
	admission chan struct{} // full while a node is being added or removed
	taking    sync.Mutex    // held while this node takes a step of replacing the authority: two leaders may ask for one at once
	replacing bool          // this node replaces the authority; guarded by taking
}

// Open opens the node's data, binds its port, joins the cluster if necessary, and starts to take part in Raft. The node answers no other requests
// before Run.
func Open(ctx context.Context, o Options) (_ *Node, err error) {
	n := &Node{options: o, log: o.Log, refusals: rate.Lines{Most: 5, Period: 10 * time.Second}, handing: make(chan handing), admission: make(chan struct{}, 1)}
	n.ctx, n.cancel = context.WithCancel(context.WithoutCancel(ctx))
	n.willing, n.unwilling = context.WithCancel(n.ctx)
	port, err := link.Bind(o.Listen)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
			if n.link == nil {
				_ = port.Close() // err has the cause
			}
		}
	}()
	address, err := link.Advertise(port, o.Advertise)
	if err != nil {
		return nil, err
	}
	admit, err := n.entrance(ctx, address)
	if err != nil {
		return nil, err
	}
	if n.data, err = datadir.OpenNode(o.Data, admit); err != nil {
		return nil, err
	}
	if err := n.openLink(port, address); err != nil {
		return nil, err
	}
	return n, n.openJournal(ctx, address)
}

// entrance returns how the directory becomes that of a joining node; nil if the node begins a cluster. It ignores the token if the node has already
// joined. With an invalid token, a new directory stays unchanged, so that it can still become anything.
func (n *Node) entrance(ctx context.Context, address string) (datadir.Admit, error) {
	o := n.options
	if o.Join == "" && !o.Joins {
		return nil, nil
	}
	token, wrong := trust.ParseToken(o.Join)
	if o.Join == "" {
		wrong = errors.New("join: the token is empty; want the line that `muster cluster join-token` printed, or no --join at all for the first node of a new cluster")
	}
	if begun, err := datadir.IsNode(o.Data.Dir); err != nil || !begun && wrong != nil {
		return nil, cmp.Or(err, wrong)
	}
	return func(id string) (cluster uuid.UUID, secret identity.CellSecret, err error) {
		if wrong != nil {
			return cluster, secret, wrong
		}
		return n.askToJoin(ctx, token, id, address)
	}, nil
}

func (n *Node) openLink(port *net.TCPListener, address string) error {
	authority, err := trust.Load(n.options.Data.Dir, n.data.Cluster(), n.options.Data.Key)
	if errors.Is(err, trust.ErrMissing) && !n.data.Complete() && !n.data.Joined() {
		authority, err = trust.Create(n.options.Data.Dir, n.data.Cluster(), time.Now(), n.options.Data.Key)
	}
	if err != nil {
		return err
	}
	if n.identity, err = trust.NewIdentity(trust.NodeID(n.data.ID()), authority, nil); err != nil {
		return err
	}
	n.requests = requests.New(requests.Config{Self: n.data.ID(), Members: n.membersForRequests, Log: n.log, Dial: func(ctx context.Context, address, node string) (net.Conn, error) {
		return n.dialFor(ctx, address, node, link.HTTP)
	}})
	n.link, err = link.Open(link.Options{
		Port: port, Advertise: address, Identity: n.identity, Node: n.serveNode, HTTP: n.requests.Serve, Join: n.answerJoin, NodeAt: n.nodeAt, Moved: n.moved, Removed: n.removed,
		Connections: n.options.Connections, Panics: n.options.Panics, Log: n.log,
	})
	return err
}

func (n *Node) openJournal(ctx context.Context, address string) (err error) {
	options := journalraft.Options{Dir: n.data.JournalDir(), ID: n.data.ID(), Logger: n.log, Program: n.options.Data.Program}
	if from := n.data.SingleJournalDir(); n.data.Adopted() && !n.data.Complete() {
		if err := journalraft.Adopt(ctx, from, options, address); err != nil {
			return err
		}
		n.log.Info("the data of a single machine were converted to those of a cluster; the old journal is kept", "directory", from+".before-cluster")
	}
	options.Bootstrap = !n.data.Complete() && !n.data.Joined()
	if options.Transport, err = n.link.Transport(); err != nil {
		return err
	}
	if n.journal, err = journalraft.Open(options); err != nil {
		return err
	}
	n.opened.Store(n.journal)
	if n.journal.Installation() == uuid.Nil {
		err = n.journal.SetInstallation(n.data.Cluster())
	} else if id := n.journal.Installation(); id != n.data.Cluster() {
		err = &datadir.NodeProblem{Path: options.Dir, Node: n.data.ID(), What: fmt.Sprintf("belongs to the installation %s, but the node belongs to %s", id, n.data.Cluster())}
	}
	if err == nil && n.data.Adopted() && !n.data.Complete() {
		err = markAdopted(ctx, n.data.Archive, n.journal.Last())
	}
	if err != nil {
		return err
	}
	if err := n.data.Commit(); err != nil {
		return err
	}
	n.peers = exchange.NewPeers(n.data.ID(), n.journal, n.dial)
	n.archives = exchange.NewArchives(n.others, n.dial)
	n.work.Go(func() {
		if err := n.link.Serve(); err != nil {
			n.log.Error("the port for other nodes has failed", "error", err)
		}
	})
	return nil
}

// markAdopted records in a single machine's archive how far its journal has come. The archive contains everything that left memory until then.
// Without the mark, the archive of a machine on which nothing has ended yet would look like that of a node that has just joined and lacks records.
func markAdopted(ctx context.Context, a archive.Archive, last uint64) error {
	mark, _, err := a.Mark()
	if err != nil || mark.Journal > 0 {
		return err
	}
	mark.Journal = last
	a.SetMark(mark)
	return a.Put(ctx, nil)
}

func (n *Node) dial(ctx context.Context, address, node string) (net.Conn, error) {
	return n.dialFor(ctx, address, node, link.Node)
}

func (n *Node) dialFor(ctx context.Context, address, node string, p link.Protocol) (net.Conn, error) {
	address = cmp.Or(n.moved(trust.NodeID(node)), address)
	return n.link.Dial(ctx, address, trust.NodeID(node), p)
}

// serveNode answers another node's questions.
func (n *Node) serveNode(ctx context.Context, conn net.Conn, _ trust.NodeID) {
	answer := n.answer.Load()
	if answer == nil {
		return // the other node asks again
	}
	if err := exchange.Serve(ctx, conn, *answer); err != nil && ctx.Err() == nil {
		n.log.Debug("a connection of another node ended", "error", err)
	}
}

// nodeAt returns the member at an address.
func (n *Node) nodeAt(address string) trust.NodeID {
	for _, m := range n.members() {
		if m.Address == address {
			return trust.NodeID(m.ID)
		}
	}
	return ""
}

// whereabouts is where a node said that it is, although the members had another address for it.
type whereabouts struct {
	says, known string
	told        bool // an operator gave the address: the node may not know where this one is
}

// moved returns the address that a node has reported for itself. The members learn a new address only once a majority has it, and a majority may need
// this very node. If the members' address has changed since the report, it takes precedence.
func (n *Node) moved(id trust.NodeID) string {
	x, ok := n.addresses.Load(string(id))
	if !ok {
		return ""
	}
	at := x.(whereabouts)
	if n.addressOf(string(id)) != at.known {
		n.addresses.CompareAndDelete(string(id), x)
		return ""
	}
	return at.says
}

// addressOf returns the address that the members have for a node; empty if it is not a member.
func (n *Node) addressOf(id string) string {
	for _, m := range n.members() {
		if m.ID == id {
			return m.Address
		}
	}
	return ""
}

// removed reports whether a node is no longer a member. A node that does not know the members yet accepts every node with a certificate.
func (n *Node) removed(id trust.NodeID) bool {
	members := n.members()
	return len(members) > 0 && !slices.ContainsFunc(members, func(m journalraft.Member) bool { return m.ID == string(id) })
}

func (n *Node) members() []journalraft.Member {
	if j := n.opened.Load(); j != nil {
		return j.Status().Members
	}
	return nil
}

// others returns the other members.
func (n *Node) others() (all []exchange.Node) {
	for _, m := range n.members() {
		if m.ID != n.data.ID() {
			all = append(all, exchange.Node{ID: m.ID, Address: m.Address})
		}
	}
	return all
}

// membersForRequests returns all members.
func (n *Node) membersForRequests() (all []requests.Member) {
	for _, m := range n.members() {
		all = append(all, requests.Member{ID: m.ID, Address: m.Address, Votes: m.Votes})
	}
	return all
}

// ID returns the id of this node.
func (n *Node) ID() string { return n.data.ID() }

// Data returns the node's data directory.
func (n *Node) Data() *datadir.Node { return n.data }

// Journal returns the node's part of the journal, for the engine.
func (n *Node) Journal() *journalraft.Node { return n.journal }

// Peers returns the other nodes, for the engine.
func (n *Node) Peers() engine.Peers { return n.peers }

// Archives returns the other nodes' archives, for the engine.
func (n *Node) Archives() engine.Archives { return n.archives }

// Requests returns the HTTP transport between this node and the others.
func (n *Node) Requests() *requests.Net { return n.requests }

// Addr returns the bound address of the port for other nodes.
func (n *Node) Addr() net.Addr { return n.link.Addr() }

// readyContact is how long a node may have had no contact with a leader and still count as ready. An election takes one to two seconds.
const readyContact = 3 * time.Second

// Ready returns why clients should use another node, or nil.
func (n *Node) Ready() error {
	if err := n.journal.Err(); err != nil {
		return err
	}
	s := n.journal.Status()
	switch {
	case !n.current.Load():
		return fmt.Errorf("node %s has not caught up with the cluster since its start", s.ID)
	case !n.presence.Registered():
		return fmt.Errorf("node %s is not registered with the cluster yet, or has been given up because it was silent", s.ID)
	case s.InOffice:
		return nil
	case s.Leader == "" || s.Contact > readyContact:
		return fmt.Errorf("node %s has no contact with a leader: this side of the network has no majority, or an election is under way", s.ID)
	case s.Role == journalraft.Leader:
		return errors.New("this node was elected a moment ago and is not ready to decide yet")
	}
	return nil
}

// Current reports whether the node has, since its start, once applied everything acknowledged before. Until then its doors must stay closed, because
// it might accept a revoked key and would not know a new one.
func (n *Node) Current() bool { return n.current.Load() }

// Failed is closed when the node's journal has failed; the service on it must then be closed.
func (n *Node) Failed() <-chan struct{} { return n.journal.Failed() }

// Err returns why the node has failed, or nil. If the error is journal/raft.ErrReopen, opening the node again fixes it.
func (n *Node) Err() error { return n.journal.Err() }

// Close ends the node's participation in the cluster. Call Leave first, then close the engine.
func (n *Node) Close() error {
	n.cancel()
	var errs []error
	if n.peers != nil {
		n.peers.Close()
		n.archives.Close()
	}
	if n.requests != nil {
		n.requests.Close()
	}
	if n.link != nil {
		errs = append(errs, n.link.Close())
	}
	if n.journal != nil {
		errs = append(errs, n.journal.Close())
	}
	n.work.Wait()
	n.leading.Wait()
	if n.data != nil {
		errs = append(errs, n.data.Close())
	}
	return errors.Join(errs...)
}
