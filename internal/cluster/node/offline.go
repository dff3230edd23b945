package node

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/cluster/trust"
	"github.com/musterhq/muster/internal/datadir"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/engine"
	journalraft "github.com/musterhq/muster/internal/journal/raft"
)

// LeaveCluster turns the data directory of the last node of a cluster, which must not be running, into that of a single machine. It loses nothing. An
// interrupted call is completed by the next one. If the cluster has other members, the error is journal/raft.ErrMember; if the archive is incomplete,
// it is engine.ErrArchiveLacks.
func LeaveCluster(ctx context.Context, o datadir.Options) (err error) {
	data, err := datadir.OpenMember(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	if covers, _, err := data.Archive.Coverage(); err != nil || covers.Lacks {
		return cmp.Or(err, engine.ErrArchiveLacks)
	}
	from := journalraft.Options{Dir: data.JournalDir(), ID: data.ID(), Program: o.Program, Logger: o.Log}
	if err := journalraft.Leave(ctx, from, data.SingleJournalDir()); err != nil {
		return err
	}
	if err := trust.Delete(o.Dir); err != nil { // first: when the directory is no longer a node's, no further call completes this one
		return err
	}
	return data.Leave()
}

// RecoverCluster makes a node, which must not be running, the only member of its cluster after the majority was permanently lost. confirm decides,
// given the data that the node has; if it returns an error, nothing has changed. Records missing from the node's archive are lost. The node gets a
// new authority, so that nodes of the old cluster are refused if they run again.
func RecoverCluster(o datadir.Options, confirm func(node string, has journalraft.Recovered, ended archive.Coverage) error) (err error) {
	data, err := datadir.OpenMember(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	options := journalraft.Options{Dir: data.JournalDir(), ID: data.ID(), Program: o.Program, Logger: o.Log}
	var ended archive.Coverage
	forgotten, upTo := uint64(0), uint64(0)
	err = journalraft.Recover(options, func(has journalraft.Recovered) (err error) {
		if ended, err = coverageAt(data.Archive, has.Snapshot); err != nil {
			return err
		}
		if ended.Lacks && has.State != nil {
			if forgotten, err = forgottenIn(has.State); err != nil {
				return err
			}
			upTo = has.Snapshot
		}
		return confirm(data.ID(), has, ended)
	})
	if err != nil {
		return err
	}
	if ended.Lacks {
		if err := acceptLoss(data.Archive, ended, archive.Mark{Journal: upTo, Forgotten: forgotten}); err != nil {
			return err
		}
	}
	authority, err := trust.New(data.Cluster(), time.Now())
	if err != nil {
		return err
	}
	return authority.Save(o.Dir, o.Key)
}

// forgottenIn returns how many records a state had dropped from memory for the archive.
func forgottenIn(open func() (io.ReadCloser, error)) (n uint64, err error) {
	from, err := open()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	state := cell.New(cell.DefaultConfig())
	if err := state.Load(from); err != nil {
		return 0, err
	}
	return state.Forgotten(), nil
}

// acceptLoss declares an archive complete up to a snapshot. The coverage makes it complete for the nodes of a cluster; the mark makes it not older
// than the journal for a single machine.
func acceptLoss(a archive.Archive, ended archive.Coverage, m archive.Mark) error {
	old, _, err := a.Mark()
	if err != nil {
		return err
	}
	a.SetMark(archive.Mark{Journal: max(old.Journal, m.Journal), Forgotten: max(old.Forgotten, m.Forgotten)})
	if err := a.Put(context.Background(), nil); err != nil {
		return err
	}
	ended.Lacks, ended.From = false, 0
	return a.SetCoverage(context.Background(), ended)
}

// coverageAt returns the coverage of an archive whose node continues from the snapshot after an entry. A snapshot unknown to the archive is another
// node's, which arrived just as this node ended.
func coverageAt(a archive.Archive, entry uint64) (archive.Coverage, error) {
	c, known, err := a.Coverage()
	if err != nil || entry <= c.Entry {
		return c, err
	}
	mark, _, err := a.Mark()
	if err != nil {
		return c, err
	}
	if known || mark.Journal == 0 { // otherwise this was a single machine, and the snapshot is its own
		if !c.Lacks {
			c.From = c.Next
		}
		c.Entry, c.Lacks, c.From = entry, true, min(c.From, c.Next)
	}
	return c, nil
}
