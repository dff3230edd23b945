package raft

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"
	"github.com/hashicorp/raft"

	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/journal"
)

// Options define where a node keeps its part of the journal, its identity, and how it reaches the others.
type Options struct {
	Dir string
	ID  string // of this node in the cluster, permanently; no other node ever gets it
	// Transport connects to the other nodes; Close closes it. It must not open pipelines: those of the library hang if a follower refuses
	// an entry while the next one is being sent.
	Transport raft.Transport
	Bootstrap bool // a new directory becomes a cluster with this node as its only member; otherwise the node waits to be added

	Logger  *slog.Logger // nil: nothing is logged
	Program string       // identifies this process to another one that finds the directory in use
	FS      vfs.FS       // nil: the operating system's; tests use a failing one

	// ElectionTimeout is how long a follower waits for its leader before it requests votes, and how long a leader may be without contact to
	// a majority; 0: 500 ms. The actual wait is random, up to twice as long.
	ElectionTimeout time.Duration
	// CommitTimeout is how long a follower may be unaware that its last entry is committed, if no other entry follows; 0: 10 ms.
	CommitTimeout time.Duration
	// Trailing is how many entries of Raft's log a trim keeps, so that a follower that was away for a moment gets entries instead of a
	// snapshot; 0: 1024, negative: none.
	Trailing int
	// ShortageLimit is how long a leader with followers waits for space or descriptors before it gives up its leadership and then its database; 0: 2 s.
	ShortageLimit time.Duration

	// OnChange is called by one goroutine, in order, with each change of the node's role, term or leader. It must not block.
	OnChange func(Change)
}

// Node is this machine's part of a journal that several nodes share. All methods may be called concurrently.
//
// A failed node is final, like a failed journal: close it and open it again. Failed reports the failure. A node that was closed at any
// moment opens with everything that it acknowledged to others.
type Node struct {
	options Options
	log     *slog.Logger
	store   *store
	snaps   *snapshots
	machine *machine
	raft    *raft.Raft
	patient *patient // Raft's transport

	installation atomic.Pointer[uuid.UUID] // nil: none
	trimming     sync.Mutex                // held for a whole trim, and when a snapshot arrives
	trimmed      trimmed                   // guarded by trimming
	outdated     atomic.Bool               // Raft has forgotten the newest members
	redundantly  uint64                    // index of the redundant snapshot that is being received; owned by Raft's main goroutine, then by the machine's

	office  office
	rounds  rounds
	handing atomic.Bool  // a hand-over was requested
	shortly atomic.Int64 // start of the present shortage, as steady.Nanos; 0: none

	state struct {
		sync.Mutex
		closed bool
		failed error
	}
	failed  chan struct{} // closed with state.failed
	closing chan struct{} // closed with state.closed
	pending sync.WaitGroup
	watched sync.WaitGroup
	stop    func() error
}

// ErrReopen is the cause of a failure that opening the node again repairs: it received a snapshot in place of entries that it had to
// discard, Raft has forgotten members, or Raft does not notice the end of a hand-over.
var ErrReopen = errors.New("the node must be opened again")

// Exists reports whether there is a node's part of a journal in dir.
func Exists(dir string) (bool, error) { return embeddb.Exists(nil, dir) }

// Open opens the node's part of the journal in options.Dir, creates it if necessary, and joins the cluster that it knows. If another
// process has the directory open, the error is journal.ErrInUse. If the directory is damaged, it is *journal.Damaged: a node that has lost
// what it acknowledged must not take part any more. Remove it from the cluster and add it again, empty and with a new ID.
func Open(options Options) (*Node, error) {
	n, err := open(options)
	if err != nil {
		return nil, fmt.Errorf("open journal %s: %w", options.Dir, err)
	}
	return n, nil
}

func open(options Options) (_ *Node, err error) {
	options.ElectionTimeout = cmp.Or(options.ElectionTimeout, 500*time.Millisecond)
	options.CommitTimeout = cmp.Or(options.CommitTimeout, 10*time.Millisecond)
	options.ShortageLimit = cmp.Or(options.ShortageLimit, 2*time.Second)
	options.Trailing = max(0, cmp.Or(options.Trailing, 1024))
	n := &Node{options: options, log: options.Logger, machine: newMachine(), failed: make(chan struct{}), closing: make(chan struct{})}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	n.office.changed, n.office.entering = make(chan struct{}), make(chan struct{}, 1)
	if n.store, err = openStore(options.FS, options.Dir, options.Program, n.log); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.store.close())
		}
	}()
	files := options.FS
	if files == nil {
		files = vfs.Default
	}
	if n.snaps, err = openSnapshots(files, files.PathJoin(options.Dir, "snapshots")); err != nil {
		return nil, err
	}
	id, err := n.store.installation()
	if err != nil {
		return nil, err
	}
	if id != uuid.Nil {
		n.installation.Store(&id)
	}
	if err := n.load(); err != nil {
		return nil, err
	}
	n.machine.install = n.install
	n.machine.rejected = func(index uint64, err error) {
		n.log.Warn("a command of a run that has ended was rejected: the entry does not exist", "index", index, "error", err)
	}
	n.snaps.redundant = n.redundant
	n.store.fail = n.fail
	if err := n.start(); err != nil {
		return nil, err
	}
	return n, nil
}

// load compares log and snapshot, and initializes the machine from them.
func (n *Node) load() (err error) {
	if n.trimmed, err = n.store.trimmed(); err != nil {
		return err
	}
	latest := n.snaps.get()
	first, last := n.store.first.Load(), n.store.last.Load()
	if latest.name == "" {
		if last != 0 && first != 1 {
			return &journal.Damaged{Entry: n.trimmed.base, Err: fmt.Errorf("no snapshot, and Raft's log begins with index %d", first)}
		}
		return nil
	}
	if last != 0 && first > latest.place.index+1 {
		return &journal.Damaged{Entry: latest.number + 1, Err: fmt.Errorf("missing: Raft's log begins with index %d, the latest snapshot ends with %d", first, latest.place.index)}
	}
	n.machine.begin(latest.place, latest.members)
	replaced, err := n.replaced(latest, last)
	if err != nil {
		return err
	}
	if !replaced && last != 0 && first <= latest.place.index {
		return n.scan(first, latest)
	}
	begins, at := trimmed{latest.number + 1, latest.number}, origin{latest.place.index, latest.term}
	if n.trimmed != begins || *n.store.origin.Load() != at {
		n.trimmed = begins
		if err := n.store.begin(at, begins); err != nil {
			return err
		}
	}
	if replaced {
		return n.store.clear()
	}
	return nil
}

// replaced reports whether the latest snapshot replaces the log: it was received, and the process ended before the log was removed.
func (n *Node) replaced(latest saved, last uint64) (bool, error) {
	if last == 0 || n.store.first.Load() > latest.place.index {
		return false, nil
	}
	if last < latest.place.index {
		return true, nil
	}
	term := uint64(0)
	err := n.store.read(latest.place.index, func(l *raft.Log) error { term = l.Term; return nil })
	return term != latest.term, err
}

// scan finds the entries that the log still has up to the latest snapshot. Raft applies the later ones, once they are known to be committed.
func (n *Node) scan(first uint64, latest saved) error {
	before := newMachine()
	before.number, before.first = n.trimmed.base, n.trimmed.first
	for index := first; index <= latest.place.index; index++ {
		err := n.store.read(index, func(l *raft.Log) error {
			if l.Type == raft.LogCommand {
				_ = before.applyLocked(l)
			}
			return nil
		})
		if err != nil {
			return n.missing(index, err)
		}
	}
	if before.number != latest.number {
		return &journal.Damaged{Entry: before.number + 1, Err: fmt.Errorf("missing: the log ends with entry %d where the latest snapshot was taken after entry %d", before.number, latest.number)}
	}
	n.machine.first = before.first
	if len(before.runs) > 0 {
		n.machine.runs = before.runs
	}
	return nil
}

func (n *Node) missing(index uint64, err error) error {
	if errors.Is(err, raft.ErrLogNotFound) {
		return &journal.Damaged{File: fmt.Sprintf("index %d of Raft's log", index), Err: errMissing}
	}
	return err
}

// start starts Raft.
func (n *Node) start() (err error) {
	defer func() { // Raft panics if it cannot read its log
		if reason := recover(); reason != nil {
			err = &journal.Damaged{File: n.options.Dir, Err: fmt.Errorf("%v", reason)}
		}
	}()
	config := n.config()
	n.patient = newPatient(n.options.Transport, n.options.ElectionTimeout/2)
	if n.options.Bootstrap {
		self := raft.Server{ID: config.LocalID, Address: n.options.Transport.LocalAddr()}
		err := raft.BootstrapCluster(config, n.store, n.store, n.snaps, n.options.Transport, raft.Configuration{Servers: []raft.Server{self}})
		if err != nil && !errors.Is(err, raft.ErrCantBootstrap) {
			return err
		}
	}
	if n.raft, err = raft.NewRaft(config, n.machine, n.store, n.store, n.snaps, n.patient); err != nil {
		return err
	}
	n.patient.raft.Store(n.raft)
	n.stop = sync.OnceValue(func() error { return n.raft.Shutdown().Error() })
	n.watch()
	return nil
}

func (n *Node) config() *raft.Config {
	config := raft.DefaultConfig()
	config.LocalID = raft.ServerID(n.options.ID)
	config.Logger = Logger(n.log)
	config.HeartbeatTimeout = n.options.ElectionTimeout
	config.ElectionTimeout = n.options.ElectionTimeout
	config.LeaderLeaseTimeout = n.options.ElectionTimeout
	config.CommitTimeout = n.options.CommitTimeout
	config.ShutdownOnRemove = false
	config.NoLegacyTelemetry = true
	// The node saves snapshots and trims the log itself, and its machine is ready before Raft starts.
	config.SnapshotThreshold = math.MaxUint64
	config.SnapshotInterval = 1000 * time.Hour
	config.NoSnapshotRestoreOnStart = true
	return config
}

// usable returns the reason why the node cannot be used, or nil.
func (n *Node) usable() error {
	n.state.Lock()
	defer n.state.Unlock()
	switch {
	case n.state.closed:
		return journal.ErrClosed
	case n.state.failed != nil:
		return fmt.Errorf("%w: %w", journal.ErrFailed, n.state.failed)
	}
	return nil
}

// fail makes the node unusable. It does not wait.
func (n *Node) fail(cause error) {
	n.state.Lock()
	defer n.state.Unlock()
	if n.state.failed == nil && !n.state.closed {
		n.state.failed = damaged(cause)
		close(n.failed)
	}
}

// Failed returns a channel that is closed when the node has failed. Err then returns the cause.
func (n *Node) Failed() <-chan struct{} { return n.failed }

// Err returns the cause of the node's failure, or nil.
func (n *Node) Err() error {
	n.state.Lock()
	defer n.state.Unlock()
	return n.state.failed
}

// Close stops the node and releases the directory; the node remains a member. A leader should hand over first: the others notice its
// absence only after the election timeout.
func (n *Node) Close() error {
	n.state.Lock()
	if n.state.closed {
		n.state.Unlock()
		return nil
	}
	n.state.closed = true
	n.state.Unlock()
	close(n.closing)
	n.store.db.StopWaiting()
	n.watched.Wait()
	n.snaps.saving.Lock()
	defer n.snaps.saving.Unlock()
	n.trimming.Lock()
	defer n.trimming.Unlock()
	if err := n.store.close(); err != nil && n.Err() == nil {
		return fmt.Errorf("close journal: %w", err)
	}
	return nil
}

// Installation returns the id of the installation that owns the journal; zero if it was never set.
func (n *Node) Installation() uuid.UUID {
	if id := n.installation.Load(); id != nil {
		return *id
	}
	return uuid.Nil
}

// SetInstallation durably records at this node the installation that owns the journal. Snapshots that the node saves from now on contain it, too.
func (n *Node) SetInstallation(id uuid.UUID) error {
	if err := n.usable(); err != nil {
		return fmt.Errorf("set the installation of the journal: %w", err)
	}
	if err := n.store.setInstallation(id); err != nil {
		return fmt.Errorf("set the installation of the journal: %w: %w", journal.ErrFailed, err)
	}
	n.installation.Store(&id)
	return nil
}

// Shortage returns the shortage of descriptors or space for whose end the node waits, or nil.
func (n *Node) Shortage() error { return n.store.db.Shortage() }

// StopWaiting fails writes that wait for space or descriptors.
func (n *Node) StopWaiting() { n.store.db.StopWaiting() }

// FreeSpace returns how many bytes may still be written to the node's disk; ok is false if the system does not report it.
func (n *Node) FreeSpace() (bytes uint64, ok bool) { return n.store.db.FreeSpace() }

// Last returns the number of the last entry that this node knows to be committed; 0 for none. A follower learns it slightly later than the
// leader, and a node that has just started only after it has heard from a leader.
func (n *Node) Last() uint64 { return n.machine.last() }

// LatestSnapshot returns this node's latest snapshot, as journal.Journal does.
func (n *Node) LatestSnapshot(ctx context.Context) (at uint64, r io.ReadCloser, err error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	if err := n.usable(); err != nil {
		return 0, nil, fmt.Errorf("open latest snapshot: %w", err)
	}
	at, file, err := n.snaps.open()
	if file == nil { // do not return a nil pointer in an interface
		return at, nil, err
	}
	return at, file, err
}

// SaveSnapshot saves a snapshot, as journal.Journal does. Each node saves its own; a leader sends its latest one to a follower that needs
// it. If a snapshot arrives from the leader meanwhile, the error is ErrOutOfOrder.
func (n *Node) SaveSnapshot(ctx context.Context, at uint64, write func(io.Writer) error) error {
	if err := n.saveSnapshot(ctx, at, n.usable, write); err != nil {
		return fmt.Errorf("save snapshot after entry %d: %w", at, err)
	}
	return nil
}

func (n *Node) saveSnapshot(ctx context.Context, at uint64, usable func() error, write func(io.Writer) error) error {
	n.snaps.saving.Lock()
	defer n.snaps.saving.Unlock()
	if err := usable(); err != nil {
		return err
	}
	latest, last := n.snaps.get(), n.machine.last()
	index, known := n.machine.locate(at)
	if at == 0 || at < latest.number || !known {
		return fmt.Errorf("%w: the latest snapshot was taken after entry %d, the last entry is %d", journal.ErrOutOfOrder, latest.number, last)
	}
	place := place{number: at, index: index, term: latest.term}
	if at != latest.number {
		if err := n.store.read(index, func(l *raft.Log) error { place.term = l.Term; return nil }); err != nil {
			return n.missing(index, err)
		}
	}
	conf, ok := n.machine.membersAt(index)
	if !ok {
		return fmt.Errorf("the members of the cluster at entry %d are not known", at)
	}
	goOn := func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return usable()
	}
	if err := n.snaps.save(place, conf, n.Installation(), goOn, write); err != nil {
		return err
	}
	n.store.synced.Sync()
	return nil
}

// Trim trims this node's journal, as journal.Journal does. Readers lose the entries at once. Raft's log keeps the last Options.Trailing
// entries, and always that of the latest snapshot, by which followers recognise it.
func (n *Node) Trim(ctx context.Context, before uint64) error {
	err := ctx.Err()
	if err == nil {
		err = n.trim(before)
	}
	if err != nil {
		return fmt.Errorf("trim before entry %d: %w", before, err)
	}
	return nil
}

func (n *Node) trim(before uint64) error {
	n.trimming.Lock()
	defer n.trimming.Unlock()
	if err := n.usable(); err != nil {
		return err
	}
	latest := n.snaps.get()
	if first, _, _ := n.machine.at(); before <= first {
		return nil
	}
	if before > latest.number+1 {
		return fmt.Errorf("%w: the latest snapshot was taken after entry %d", journal.ErrOutOfOrder, latest.number)
	}
	index, ok := n.machine.locate(before - 1)
	if !ok {
		return fmt.Errorf("%w: the place of entry %d is not known", journal.ErrOutOfOrder, before-1)
	}
	to := min(index, latest.place.index-1, n.machine.mayTrim())
	if last, keep := n.store.last.Load(), uint64(n.options.Trailing); last <= keep {
		to = 0
	} else {
		to = min(to, last-keep)
	}
	next := trimmed{first: before, base: max(n.trimmed.base, n.machine.entryAt(to))}
	n.machine.forget(before) // before the entries are removed, so that a reader that misses one knows the reason
	if err := n.store.trim(to, next); err != nil {
		return fmt.Errorf("%w: %w", journal.ErrFailed, err)
	}
	n.trimmed = next
	n.machine.dropBefore(to + 1)
	return nil
}
