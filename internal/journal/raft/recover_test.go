package raft

import (
	"errors"
	"io"
	"testing"

	"github.com/musterhq/muster/internal/embeddb/embeddbtest"
	"github.com/musterhq/muster/internal/waittest"
)

// The survivor of a cluster whose majority is lost continues alone with all its data, including the unacknowledged entry, and accepts new members.
func TestRecoverOnTheSurvivor(t *testing.T) {
	for _, snapshot := range []bool{false, true} {
		inCluster(t, three, func(t *testing.T, c *cluster, disks map[string]*embeddbtest.Disk) {
			j, a := leading(t, c)
			mustAppend(t, j, 1, 7)
			if snapshot {
				err := j.SaveSnapshot(t.Context(), 7, func(w io.Writer) error { _, err := w.Write(state(7)); return err })
				if err = errors.Join(err, j.Trim(t.Context(), 8)); err != nil {
					t.Fatal(err)
				}
			}
			c.isolate(a)
			if err := j.Append(t.Context(), 8, batch(8)); err == nil {
				t.Fatal("an append without a majority succeeded")
			}
			for _, id := range []string{"a", "b", "c"} {
				if err := c.stop(id); err != nil {
					t.Fatal(err)
				}
			}
			o := c.open(a)
			o.ID = a
			no := errors.New("no")
			if err := Recover(o, func(Recovered) error { return no }); !errors.Is(err, no) {
				t.Fatalf("not confirmed: %v", err)
			}
			err := Recover(o, func(r Recovered) error {
				if len(r.Members) != 3 || r.Last != 8 || r.Appended.IsZero() || (r.Snapshot == 7) != snapshot {
					t.Errorf("the survivor has %+v", r)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			n, err := c.start(a, false)
			if err != nil {
				t.Fatal(err)
			}
			alone, err := n.Lead(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if members := n.Status().Members; len(members) != 1 || members[0].ID != a {
				t.Errorf("its members are %+v", members)
			}
			first := uint64(1)
			if snapshot {
				first = 8
			}
			mustAppend(t, alone, 9, 10)
			wantEntries(t, n, first, first, 10)
			fresh, err := c.start("d", false)
			if err == nil {
				err = errors.Join(n.AddObserver(t.Context(), "d", "at-d"), n.Promote(t.Context(), "d"))
			}
			if err != nil {
				t.Fatal(err)
			}
			waittest.Until(t, "the new node has the last entry", func() bool { return fresh.Last() >= 10 })
		})
	}
}
