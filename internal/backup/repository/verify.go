package repository

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/backup"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/plural"
	"github.com/musterhq/muster/internal/secretkey"
)

// Verified is the result of Verify.
type Verified struct {
	Summary  backup.Summary
	State    *cell.Cell
	Objects  int    // that were read
	Replayed uint64 // journal entries replayed from the previous backup; 0: that backup, or the journal between, is missing
	From     uint64 // the entry of that backup
}

// Verify reads all objects of all backups, loads the selected state, and proves its backup: replaying the journal from the previous
// backup gives the same state.
func (r *Repository) Verify(ctx context.Context, w Wanted, key *secretkey.Key) (v Verified, err error) {
	all, err := r.List(ctx)
	if err != nil {
		return v, err
	}
	if v.Objects, err = r.readAll(ctx, all); err != nil {
		return v, err
	}
	p, err := r.Find(ctx, w)
	if err != nil {
		return v, err
	}
	in, err := p.Open(ctx, key)
	if err != nil {
		return v, err
	}
	defer in.Close()
	if v.Summary, v.State, err = backup.Verify(in, cell.DefaultConfig(), key); err != nil {
		return v, err
	}
	err = r.prove(ctx, all, p, &v)
	return v, err
}

// readAll reads each object once.
func (r *Repository) readAll(ctx context.Context, all []Listed) (n int, err error) {
	var broken []error
	objects := map[string]Ref{}
	of := map[string]string{}
	for _, x := range all {
		if x.Err != nil {
			broken = append(broken, fmt.Errorf("backup %s: %w", x.Name, x.Err))
			continue
		}
		x.each(func(ref Ref) { objects[ref.Name], of[ref.Name] = ref, x.Name })
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(ahead)
	names := slices.Sorted(maps.Keys(objects))
	failed := make([]error, len(names))
	for i, name := range names {
		group.Go(func() error {
			_, err := r.get(ctx, objects[name])
			if errors.Is(err, backup.ErrDamaged) {
				failed[i] = fmt.Errorf("backup %s: %w", of[name], err)
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	if err := errors.Join(append(broken, failed...)...); err != nil {
		return 0, fmt.Errorf("%w\n%s; `muster backup --full` makes one that uses nothing from the damaged ones", err, describeWhole(all, names, failed))
	}
	return len(objects), nil
}

// describeWhole describes which backups need nothing that is damaged.
func describeWhole(all []Listed, names []string, failed []error) string {
	n, latest := 0, ""
	for _, x := range all {
		whole := x.Err == nil
		if whole {
			x.each(func(ref Ref) {
				i, _ := slices.BinarySearch(names, ref.Name)
				whole = whole && failed[i] == nil
			})
		}
		if whole {
			n, latest = n+1, x.Name
		}
	}
	if n == 0 {
		return "no backup is intact"
	}
	verb := "are"
	if n == 1 {
		verb = "is"
	}
	return fmt.Sprintf("%d of %s %s intact, the latest of them %s, which --backup restores", n, plural.Of(len(all), "backup", "backups"), verb, latest)
}

// prove replays the journal from the backup before that of p up to it, and compares the states.
func (r *Repository) prove(ctx context.Context, all []Listed, p *Point, v *Verified) error {
	var branch []*Manifest
	var before *Manifest
	for _, x := range all {
		if x.Err != nil || x.Head.Installation != p.Base.Head.Installation || x.Branch != p.Base.Branch {
			continue
		}
		branch = append(branch, x.Manifest)
		if e := x.Head.Entry; e < p.Base.Head.Entry && (before == nil || e > before.Head.Entry) {
			before = x.Manifest
		}
	}
	if before == nil {
		return nil
	}
	parts := behind(branch, before.Head.Entry, p.Base.Head.Entry)
	if parts == nil {
		return nil
	}
	replayed, err := (&Point{Base: before, Entry: p.Base.Head.Entry, repository: r, journal: parts}).replay(ctx, func([]archive.Record) error { return nil })
	if err != nil {
		return err
	}
	sum := &stateSum{}
	if err := replayed.Freeze().Write(sum); err != nil {
		return err
	}
	if got := sum.String(); got != p.Base.StateSum {
		return damaged("the state of backup %s differs from that of backup %s with the journal between them", p.Base.Name(), before.Name())
	}
	v.Replayed, v.From = p.Base.Head.Entry-before.Head.Entry, before.Head.Entry
	return nil
}
