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

// LeaveCluster makes the data directory of the last node of a cluster, which does not run, that of a single machine. It loses nothing. A call that was
// interrupted is finished by the next one. While the cluster has other members the error is journal/raft.ErrMember, and while the archive lacks
// records it is engine.ErrArchiveLacks.
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
	if err := data.Leave(); err != nil {
		return err
	}
	return trust.Delete(o.Dir)
}

// RecoverCluster makes a node, which does not run, the only member of its cluster, whose majority is lost for good. confirm decides with what the node has; its error is
// returned, and nothing has changed then. Records that the node's archive lacks are lost. The node gets a new authority, so that nodes of the old cluster, should they run again, are refused.
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

// forgottenIn counts the records that had left the memory of a state for the archive.
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

// acceptLoss makes an archive count as complete up to a snapshot: as one that lacks nothing to the nodes of a cluster, and with the mark as one that is not older than the
// journal to a single machine.
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

// coverageAt is the coverage of an archive whose node goes on from the snapshot after an entry. A snapshot that the archive has not heard of is another node's, which
// has arrived in the moment at which this node ended.
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
