package datadir

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/archive"
	archivepebble "github.com/musterhq/muster/internal/archive/pebble"
	"github.com/musterhq/muster/internal/atomicfile"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/identity"
	journalpebble "github.com/musterhq/muster/internal/journal/pebble"
	journalraft "github.com/musterhq/muster/internal/journal/raft"
)

// raftDir has the journal of a node.
const raftDir = "journal-raft"

// Node is the open data directory of a cluster node. It does not include the node's journal, because opening that needs connections to other nodes.
// No other process can open the directory until Close.
type Node struct {
	Archive *archivepebble.Archive
	Secret  identity.CellSecret

	options Options
	member  member
	voted   atomic.Bool // as in member
}

// Admit asks a member of a cluster to admit a node. It may store more parts in the directory before it returns.
type Admit func(node string) (cluster uuid.UUID, secret identity.CellSecret, err error)

// NodeProblem is the reason why the data directory of a node cannot be used.
type NodeProblem struct{ Path, Node, What string }

func (p *NodeProblem) Error() string {
	return fmt.Sprintf("%s %s. A node that has lost a part of its data must no longer take part: remove it with `muster cluster remove %s` on another node, "+
		"and start it with an empty directory and a new join token", p.Path, p.What, p.Node)
}

// ErrNotEmpty is wrapped by the error of OpenNode for a directory that has data but is to join a cluster.
var ErrNotEmpty = errors.New("a node must join a cluster with an empty data directory")

// OpenNode opens the data directory of a node. Another directory becomes that of a node: with admit it joins a cluster; otherwise it starts a
// cluster, with the data of a single machine if the directory has any. The caller must then open the journal and call Commit.
func OpenNode(o Options, admit Admit) (_ *Node, err error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if err := atomicfile.MakeDir(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	unlock, err := identity.LockDir(o.Dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	m, err := readMember(o.Dir)
	if err != nil {
		return nil, err
	}
	if err := checkKey(o); err != nil {
		return nil, err
	}
	if m == nil {
		if m, err = begin(o, admit != nil); err != nil {
			return nil, err
		}
	}
	n := newNode(o, m)
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	if err := errors.Join(n.open(), n.checkJournal()); err != nil {
		return nil, err
	}
	if n.member.Cluster == uuid.Nil {
		if err := n.join(admit); err != nil {
			return nil, err
		}
	}
	return n, n.makeMissing()
}

func newNode(o Options, m *member) *Node {
	n := &Node{options: o, member: *m}
	n.voted.Store(m.Voted)
	return n
}

// ErrNoNode is wrapped by the error of OpenMember for the directory of a single machine, or an empty one.
var ErrNoNode = errors.New("it is not the data directory of a cluster node")

// IsNode reports whether a directory is that of a node of a cluster, or of one that is to join.
func IsNode(dir string) (bool, error) {
	m, err := readMember(dir)
	return m != nil, err
}

// OpenMember opens the data directory of a stopped node for a change. The node's journal may be missing, because the change may already have started.
func OpenMember(o Options) (_ *Node, err error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	unlock, err := identity.LockDir(o.Dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	m, err := readMember(o.Dir)
	if err != nil {
		return nil, err
	}
	if m == nil || !m.Complete {
		return nil, fmt.Errorf("%s: %w", o.Dir, ErrNoNode)
	}
	if err := checkKey(o); err != nil {
		return nil, err
	}
	n := newNode(o, m)
	if err := n.open(); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// Leave turns the directory into that of a single machine. Its journal must already be one of a single machine.
func (n *Node) Leave() error {
	if there, err := journalpebble.Exists(n.SingleJournalDir()); err != nil || !there {
		return errors.Join(err, fmt.Errorf("%s is missing", n.SingleJournalDir()))
	}
	return atomicfile.Remove(n.path(memberFile))
}

// begin turns an empty directory, or that of a single machine, into that of a node.
func begin(o Options, joins bool) (*member, error) {
	m := &member{Format: memberFormat, Node: newNodeID(), Begun: founded}
	empty, err := IsEmpty(o)
	switch {
	case err != nil:
		return nil, err
	case joins && !empty:
		return nil, fmt.Errorf("%s: %w, but this one has data of its own", o.Dir, ErrNotEmpty)
	case joins:
		m.Begun = joined
	case empty:
		m.Cluster = uuid.New()
	default:
		// Opening it as that of a single machine checks its parts, which are complete and agree afterwards.
		o.Accept = nil
		d, err := openLocked(o)
		if err != nil {
			return nil, err
		}
		pending := d.pending != nil || d.parts[Secret].id == uuid.Nil
		m.Begun, m.Cluster = adopted, d.installation()
		if err := d.Close(); err != nil {
			return nil, err
		}
		if pending {
			return nil, fmt.Errorf("%s is being created, or converted from an earlier release: start the service once without --cluster-listen", o.Dir)
		}
	}
	return m, m.write(o.Dir)
}

// IsEmpty reports whether a directory has none of the parts of a data directory.
func IsEmpty(o Options) (bool, error) {
	dir, d := o.Dir, &Dir{options: o}
	journal, err := journalpebble.Exists(d.path(journalDir))
	vault, err2 := archivepebble.Exists(d.path(archiveDir))
	_, _, err3 := identity.ReadSecretFile(dir, o.Key)
	secret := !errors.Is(err3, fs.ErrNotExist)
	p, err4 := readPending(dir)
	if err := errors.Join(err, err2, err4); err != nil {
		return false, err
	}
	if err := identity.CheckNoKeyFiles(dir); err != nil && !secret {
		return false, err
	}
	return !journal && !vault && !secret && p == nil, nil
}

// open opens the parts that exist.
func (n *Node) open() error {
	if n.member.Cluster == uuid.Nil { // it has not been admitted yet, and any parts are left from an attempt that crashed
		return nil
	}
	d := Dir{options: n.options, log: n.options.Log, parts: map[Part]*part{Archive: {}, Secret: {}}}
	err := errors.Join(d.openSecret(), d.openArchive())
	n.Archive, n.Secret = d.Archive, d.Secret
	if err != nil {
		return err
	}
	for _, name := range []Part{Secret, Archive} {
		p := d.parts[name]
		switch {
		case p.problem != nil:
			return n.problem(name, p.problem.What)
		case !p.there && n.member.Complete:
			return n.problem(name, "is missing")
		case p.there && p.id != n.member.Cluster && (n.member.Complete || p.id != uuid.Nil):
			return n.problem(name, fmt.Sprintf("belongs to the installation %s, but the node belongs to %s", p.id, n.member.Cluster))
		}
	}
	n.Secret = n.Secret.Kept(n.options.Dir, n.options.Key)
	if !d.parts[Secret].there {
		n.Secret = identity.CellSecret{}
	}
	return nil
}

func (n *Node) checkJournal() error {
	there, err := journalraft.Exists(n.JournalDir())
	if err == nil && n.member.Complete && !there {
		err = n.problem(raftDir, "is missing")
	}
	return err
}

func (n *Node) problem(name Part, what string) error {
	return &NodeProblem{n.path(string(name)), n.member.Node, what}
}

func (n *Node) join(admit Admit) error {
	if admit == nil {
		return fmt.Errorf("%s: this node has not yet been admitted to its cluster: start it with --join and a token", n.options.Dir)
	}
	cluster, secret, err := admit(n.member.Node)
	if err != nil {
		return err
	}
	if err := secret.Write(n.options.Dir, cluster, n.options.Key); err != nil {
		return err
	}
	n.Secret, n.member.Cluster = secret.Kept(n.options.Dir, n.options.Key), cluster
	return n.member.write(n.options.Dir)
}

// makeMissing creates the missing parts of an incomplete directory.
func (n *Node) makeMissing() (err error) {
	if n.Secret == (identity.CellSecret{}) {
		n.Secret = identity.NewCellSecret().Kept(n.options.Dir, n.options.Key)
		if err := n.Secret.Write(n.options.Dir, n.member.Cluster, n.options.Key); err != nil {
			return err
		}
	}
	if n.Archive == nil {
		d := Dir{options: n.options, log: n.options.Log}
		if n.Archive, err = archivepebble.Open(d.archiveOptions()); err != nil {
			return err
		}
	}
	if n.Archive.Installation() == uuid.Nil {
		return n.Archive.SetInstallation(n.member.Cluster, archive.Mark{})
	}
	return nil
}

// ID returns the permanent id of the node.
func (n *Node) ID() string { return n.member.Node }

// Cluster returns the id of the installation.
func (n *Node) Cluster() uuid.UUID { return n.member.Cluster }

// Complete reports whether all parts have existed. Until then, the caller creates the parts that it owns.
func (n *Node) Complete() bool { return n.member.Complete }

// Joined reports whether the node joined an existing cluster. Its journal then waits for the other nodes to fill it.
func (n *Node) Joined() bool { return n.member.Begun == joined }

// Adopted reports whether the node started the cluster with the journal of a single machine, in SingleJournalDir.
func (n *Node) Adopted() bool { return n.member.Begun == adopted }

// JournalDir returns the directory of the node's journal.
func (n *Node) JournalDir() string { return n.path(raftDir) }

// SingleJournalDir returns the directory in which the journal of a single machine was, and in which it is again after the last node has left its
// cluster.
func (n *Node) SingleJournalDir() string { return n.path(journalDir) }

func (n *Node) path(name string) string { return filepath.Join(n.options.Dir, name) }

// Commit records that every part exists: from then on, a missing part stops the start. It also encrypts secrets that are not yet encrypted.
func (n *Node) Commit() error {
	if err := encrypt(n.options); err != nil {
		return err
	}
	if n.member.Complete {
		return nil
	}
	n.member.Complete = true
	return n.member.write(n.options.Dir)
}

// Voted reports whether the node has ever had a vote.
func (n *Node) Voted() bool { return n.voted.Load() }

// SetVoted records that the node has a vote.
func (n *Node) SetVoted() error {
	n.member.Voted = true
	if err := n.member.write(n.options.Dir); err != nil {
		return err
	}
	n.voted.Store(true)
	return nil
}

// CheckState compares the state with the other parts.
func (n *Node) CheckState(v *cell.View) error {
	if _, fits := n.Secret.Fits(v.SecretStandings()); !fits { // other nodes have whatever is missing
		return n.problem(Secret, "is not the secret that the access keys of the cluster are derived from")
	}
	return nil
}

// Close releases the directory.
func (n *Node) Close() error {
	if n.Archive == nil {
		return nil
	}
	a := n.Archive
	n.Archive = nil
	return a.Close()
}
