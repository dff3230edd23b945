package raft

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/journal"
	journalpebble "github.com/musterhq/muster/internal/journal/pebble"
)

// Conversions write the new journal beside its final place, and rename it once it is durable as a whole. From the rename on, the new
// journal counts and the old one no longer does. The old one is kept under another name, for the operator to delete. A conversion that
// ended before the rename leaves the old journal unchanged; the next call finishes one that ended after it.
const (
	newSuffix        = ".new"
	oldSingleSuffix  = ".before-cluster"
	oldClusterSuffix = ".after-cluster"
	adoptedTerm      = 1
	adoptBytes       = 4 << 20 // size of the entries in one commit
)

// Adopt converts the journal of a single machine in the directory from, with its snapshot and all its entries, to the journal of a cluster
// of one in to.Dir, whose only member is to.ID at address. No process may have either open. The old directory is kept as from.before-cluster.
func Adopt(ctx context.Context, from string, to Options, address string) error {
	c := newConversion(to)
	err := c.run(from, to.Dir, oldSingleSuffix, to, func(dir string) error { return c.adopt(ctx, from, dir, to, address) })
	if err != nil {
		return fmt.Errorf("convert journal %s to that of a cluster: %w", from, err)
	}
	return nil
}

// Leave converts the journal of a cluster of one in from.Dir to that of a single machine in the directory to. If the cluster has other
// members, the error is ErrMember: remove them first. No process may have either open. The old directory is kept as from.Dir.after-cluster.
func Leave(ctx context.Context, from Options, to string) error {
	c := newConversion(from)
	err := c.run(from.Dir, to, oldClusterSuffix, from, func(dir string) error { return c.leave(ctx, from, dir) })
	if err != nil {
		return fmt.Errorf("convert journal %s to that of a single machine: %w", from.Dir, err)
	}
	return nil
}

type conversion struct {
	files vfs.FS
	log   *slog.Logger
}

func newConversion(o Options) conversion {
	c := conversion{files: o.FS, log: o.Logger}
	if c.files == nil {
		c.files = vfs.Default
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c conversion) run(from, to, suffix string, o Options, build func(dir string) error) error {
	done, err := c.exists(to, o)
	if err != nil {
		return err
	}
	if kept, err := c.exists(from+suffix, o); err != nil || kept {
		there, err2 := c.exists(from, o)
		if err = errors.Join(err, err2); err != nil || !there {
			return err
		}
		return fmt.Errorf("%s is left from an earlier conversion: move it away first", from+suffix)
	}
	if !done {
		fresh := to + newSuffix
		if err := c.files.RemoveAll(fresh); err != nil {
			return err
		}
		if err := build(fresh); err != nil {
			return err
		}
		if err := c.rename(fresh, to); err != nil {
			return err
		}
	}
	if there, err := c.exists(from, o); err != nil || !there {
		return err
	}
	return c.rename(from, from+suffix)
}

func (c conversion) exists(dir string, o Options) (bool, error) {
	if o.FS == nil {
		return Exists(dir)
	}
	if _, err := c.files.Stat(dir); err != nil { // the disk of a test
		return false, nil
	}
	return true, nil
}

func (c conversion) rename(from, to string) error {
	if err := c.files.Rename(from, to); err != nil {
		return err
	}
	for _, dir := range []string{c.files.PathDir(to), c.files.PathDir(from)} {
		if err := embeddb.SyncDir(c.files, dir); err != nil {
			return err
		}
	}
	return nil
}

func (c conversion) adopt(ctx context.Context, from, dir string, to Options, address string) (err error) {
	if there, err := c.exists(from, to); err != nil || !there {
		return errors.Join(err, errors.New("there is no journal"))
	}
	old, err := journalpebble.Open(journalpebble.Options{Dir: from, FS: to.FS, Logger: to.Logger, Program: to.Program})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, old.Close()) }()
	s, err := openStore(to.FS, dir, to.Program, c.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	snaps, err := openSnapshots(c.files, c.files.PathJoin(dir, "snapshots"))
	if err != nil {
		return err
	}
	if err := s.setInstallation(old.Installation()); err != nil {
		return err
	}
	conf := members{1, raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(to.ID), Address: raft.ServerAddress(address)}}}}
	at, state, err := old.LatestSnapshot(ctx)
	if err != nil {
		return err
	}
	if state != nil {
		defer state.Close()
		place := place{number: at, index: adoptedIndex(at), term: adoptedTerm}
		err := snaps.save(place, conf, old.Installation(), ctx.Err, func(out io.Writer) error { _, err := io.Copy(out, state); return err })
		if err != nil {
			return err
		}
	}
	if err := adoptEntries(ctx, old, s, at, conf); err != nil {
		return err
	}
	return s.SetUint64([]byte("CurrentTerm"), adoptedTerm)
}

// adoptedIndex returns the index of an entry in the new log, whose first index has the members.
func adoptedIndex(number uint64) uint64 { return number + 1 }

func adoptEntries(ctx context.Context, old *journalpebble.Journal, s *store, at uint64, conf members) error {
	var logs []*raft.Log
	size, first := 0, uint64(0)
	flush := func() error {
		err := s.StoreLogs(logs)
		logs, size = nil, 0
		return err
	}
	begin := func(number uint64) error {
		if first = number; first == 1 {
			logs = append(logs, &raft.Log{Index: 1, Term: adoptedTerm, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(conf.configuration)})
			return nil
		}
		return s.trim(0, trimmed{first: first, base: first - 1})
	}
	for entry, err := range old.Read(ctx, 0) {
		if err == nil && first == 0 {
			err = begin(entry.Number)
		}
		if err != nil {
			return err
		}
		logs = append(logs, &raft.Log{Index: adoptedIndex(entry.Number), Term: adoptedTerm, Data: encodeCommand(entry.Number, adoptedTerm, entry.Batch)})
		if size += len(entry.Batch); size >= adoptBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if first == 0 { // the snapshot contains every entry, or no entry ever existed
		if err := begin(at + 1); err != nil {
			return err
		}
	}
	return flush()
}

func (c conversion) leave(ctx context.Context, from Options, dir string) (err error) {
	if there, err := c.exists(from.Dir, from); err != nil || !there {
		return errors.Join(err, errors.New("there is no journal"))
	}
	n, err := c.openOffline(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.store.close()) }()
	last, err := n.readAlone()
	if err != nil {
		return err
	}
	id, err := n.store.installation()
	if err != nil {
		return err
	}
	at, state, err := n.snaps.open()
	if err != nil {
		return err
	}
	if state != nil {
		defer state.Close()
	}
	alone, err := journalpebble.Create(journalpebble.Options{Dir: dir, FS: from.FS, Logger: from.Logger, Program: from.Program}, id, at,
		func(out io.Writer) error { _, err := io.Copy(out, state); return err })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, alone.Close()) }()
	for number := at + 1; number <= last; number++ {
		var failed error
		_, err := n.entry(number, func(entry journal.Entry, err error) bool {
			failed = errors.Join(err, alone.Append(ctx, entry.Number, entry.Batch))
			return true
		})
		if err = errors.Join(err, failed); err != nil {
			return err
		}
	}
	return nil
}

// openOffline opens a node that takes no part in Raft. The caller closes its store.
func (c conversion) openOffline(o Options) (_ *Node, err error) {
	n := &Node{options: o, log: c.log, machine: newMachine()}
	if n.store, err = openStore(o.FS, o.Dir, o.Program, c.log); err != nil {
		return nil, err
	}
	if n.snaps, err = openSnapshots(c.files, c.files.PathJoin(o.Dir, "snapshots")); err == nil {
		err = n.load()
	}
	if err != nil {
		return nil, errors.Join(err, n.store.close())
	}
	return n, nil
}

// readAlone applies the rest of the log, which is committed because this node alone is the majority. It returns the number of the last entry.
func (n *Node) readAlone() (last uint64, err error) {
	configuration, _, err := n.readRest()
	if err != nil {
		return 0, err
	}
	servers := configuration.Servers
	if len(servers) != 1 || string(servers[0].ID) != n.options.ID || servers[0].Suffrage != raft.Voter {
		return 0, fmt.Errorf("%w: %v, want %s alone", ErrMember, servers, n.options.ID)
	}
	return n.machine.last(), nil
}

// readRest applies the log after the latest snapshot to its end, whether it is known to be committed or not. It returns the members at its
// end, and the time at which the last command was appended; zero if the log has none.
func (n *Node) readRest() (configuration raft.Configuration, appended time.Time, err error) {
	latest := n.snaps.get()
	configuration = latest.configuration
	for index := max(latest.place.index+1, n.store.first.Load()); index <= n.store.last.Load(); index++ {
		err := n.store.read(index, func(l *raft.Log) error {
			switch l.Type {
			case raft.LogCommand:
				_ = n.machine.applyLocked(l)
				appended = l.AppendedAt
			case raft.LogConfiguration:
				configuration = raft.DecodeConfiguration(l.Data)
			}
			return nil
		})
		if err != nil {
			return configuration, appended, n.missing(index, err)
		}
	}
	return configuration, appended, nil
}
