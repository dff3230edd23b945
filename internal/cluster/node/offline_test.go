package node_test

import (
	"errors"
	"testing"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/cluster/node"
	"github.com/musterhq/muster/internal/cluster/trust"
	"github.com/musterhq/muster/internal/datadir"
	"github.com/musterhq/muster/internal/journal/raft"
)

// A node that ended just after another node's snapshot arrived does not know yet that its archive lacks records. Its recovery reports and accepts that.
func TestRecoverWhileASnapshotArrived(t *testing.T) {
	dir := t.TempDir()
	m := start(t, options(dir, ""))
	m.create("custom-1")
	before := m.Applied()
	m.create("custom-2")
	state, err := m.Engine.Backup(t.Context())
	if err == nil {
		err = m.Journal().SaveSnapshot(t.Context(), state.Entry, state.Write)
	}
	if err != nil {
		t.Fatal(err)
	}
	m.end()
	o := datadir.Options{Dir: dir, Program: "test"}
	const next = 1_700_000_000_000
	d, err := datadir.OpenMember(o)
	if err == nil { // as if the snapshot were another node's, and the engine had not seen it
		err = errors.Join(d.Archive.SetCoverage(t.Context(), archive.Coverage{Entry: before, Next: next}), d.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	no := errors.New("no")
	confirm := func(answer error) func(string, raft.Recovered, archive.Coverage) error {
		return func(_ string, has raft.Recovered, ended archive.Coverage) error {
			if want := (archive.Coverage{Entry: has.Snapshot, Next: next, Lacks: true, From: next}); ended != want {
				t.Errorf("its archive covers %+v, want %+v", ended, want)
			}
			return answer
		}
	}
	if err := node.RecoverCluster(o, confirm(no)); !errors.Is(err, no) {
		t.Errorf("not confirmed: %v", err)
	}
	if err := node.RecoverCluster(o, confirm(nil)); err != nil {
		t.Fatal(err)
	}
	m = start(t, options(dir, ""))
	if _, lacks := m.ArchiveLacks(); lacks {
		t.Error("the archive lacks records that no node has")
	}
	m.sees("custom-2")
}

// A node that ended while it left its cluster, when its authority was already removed, leaves with the next call.
func TestLeaveIsInterrupted(t *testing.T) {
	dir := t.TempDir()
	m := start(t, options(dir, ""))
	m.end()
	if err := trust.Delete(dir); err != nil {
		t.Fatal(err)
	}
	o := datadir.Options{Dir: dir, Program: "test"}
	if err := node.LeaveCluster(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if is, err := datadir.IsNode(dir); is || err != nil {
		t.Errorf("the directory is a node's: %t, %v", is, err)
	}
}
