package repository

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/backup"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/journal"
)

// Wanted selects a state of an installation; its zero value selects the latest.
type Wanted struct {
	Backup string    // the name of a backup; empty: any
	Entry  uint64    // after this journal entry; 0: any
	Time   time.Time // at this time; zero: any
}

// Point is a state that can be restored: a backup, and the journal after it up to an entry.
type Point struct {
	Base  *Manifest
	Entry uint64

	repository *Repository
	journal    []Journal // has all entries after Base up to Entry
	later      *Manifest // the first backup after Entry; nil without journal
}

// Find returns the selected state.
func (r *Repository) Find(ctx context.Context, w Wanted) (*Point, error) {
	all, err := r.List(ctx)
	if err != nil {
		return nil, err
	}
	if w.Backup != "" {
		for _, x := range all {
			if x.Name == w.Backup {
				return &Point{x.Manifest, entryOf(x.Manifest), r, nil, nil}, x.Err
			}
		}
		return nil, fmt.Errorf("%s has no backup %s; `muster backup list` shows the names", r, w.Backup)
	}
	var whole []*Manifest // of one installation, the latest last
	var broken error      // of the latest backup, if it is damaged
	var former *Manifest  // the latest one of another installation, such as the one before a restore
	for _, x := range slices.Backward(all) {
		switch {
		case x.Err != nil && len(whole) == 0 && broken == nil:
			broken = fmt.Errorf("the latest backup, %s, is damaged: %w", x.Name, x.Err)
		case x.Err == nil && (len(whole) == 0 || x.Head.Installation == whole[0].Head.Installation):
			whole = append(whole, x.Manifest)
		case x.Err == nil && former == nil:
			former = x.Manifest
		}
	}
	if len(whole) == 0 {
		return nil, cmp.Or(broken, fmt.Errorf("%s has no backup", r))
	}
	latest := whole[0]
	if broken != nil {
		broken = fmt.Errorf("%w; --backup %s restores the latest one that can be read", broken, latest.Name())
	}
	slices.Reverse(whole)
	switch {
	case w.Entry != 0:
		p, err := r.at(branches(whole), w.Entry)
		return p, elsewhere(err, former)
	case !w.Time.IsZero():
		p, err := r.before(ctx, whole, w.Time)
		if err == nil && broken != nil && p.Base == last(whole) && w.Time.After(p.Base.Head.State) { // the damaged one may have the state of that time
			return nil, broken
		}
		if err == nil {
			err = afterLast(whole, w.Time)
		}
		return p, elsewhere(err, former)
	case broken != nil:
		return nil, broken
	}
	return &Point{latest, latest.Head.Entry, r, nil, nil}, nil
}

// branches sorts the backups of an installation by their branches, the latest last, and each branch by entries. all is in the order in which the
// backups were made. The journal of a branch continues no backup of another one: if the service was rolled back, the same numbers belong to other entries.
func branches(all []*Manifest) (sorted [][]*Manifest) {
	at := map[string]int{}
	for _, m := range all {
		i, known := at[m.Branch]
		if !known {
			i = len(sorted)
			at[m.Branch], sorted = i, append(sorted, nil)
		}
		sorted[i] = append(sorted[i], m)
	}
	for _, branch := range sorted {
		slices.SortStableFunc(branch, func(a, b *Manifest) int { return cmp.Compare(a.Head.Entry, b.Head.Entry) })
	}
	return sorted
}

// last returns the backup with the latest state; of several, the one that was made last.
func last(all []*Manifest) *Manifest {
	latest := all[0]
	for _, m := range all {
		if !m.Head.State.Before(latest.Head.State) {
			latest = m
		}
	}
	return latest
}

// afterLast refuses a time about which nothing is known, because no later backup was started. The state of a backup may be older than the
// backup, if nothing has changed since.
func afterLast(all []*Manifest, t time.Time) error {
	state := last(all).Head.State
	made := state
	for _, m := range all {
		if m.Head.State.Equal(state) && m.Head.Made.After(made) {
			made = m.Head.Made
		}
	}
	if !t.After(made) {
		return nil
	}
	return fmt.Errorf("%s is after the latest backup, which was made %s: no changes after that were backed up. Without --at, restore takes the state of the latest backup, which is of %s", t.Format(time.RFC3339), made.Format(time.RFC3339), state.Format(time.RFC3339))
}

// elsewhere adds to the error of a state that the latest installation lacks where else the state may be.
func elsewhere(err error, former *Manifest) error {
	if err == nil || former == nil {
		return err
	}
	return fmt.Errorf("%w; --at considers the latest installation alone, but there are backups of another one, the last of them %s of %s: --backup NAME restores one", err, former.Name(), former.Head.State.Format(time.RFC3339))
}

func entryOf(m *Manifest) uint64 {
	if m == nil {
		return 0
	}
	return m.Head.Entry
}

// at returns the state after an entry. If several branches have the entry, the latest one counts.
func (r *Repository) at(all [][]*Manifest, entry uint64) (*Point, error) {
	first := uint64(math.MaxUint64)
	for _, branch := range slices.Backward(all) {
		first = min(first, branch[0].Head.Entry)
		if entry < branch[0].Head.Entry || entry > branch[len(branch)-1].Head.Entry {
			continue
		}
		p := &Point{nil, entry, r, nil, nil}
		for _, m := range branch {
			if m.Head.Entry <= entry {
				p.Base = m
			}
		}
		if p.Base.Head.Entry < entry {
			p.later = firstBehind(branch, entry)
			if p.journal = behind(branch, p.Base.Head.Entry, entry); p.journal == nil {
				break
			}
		}
		return p, nil
	}
	if entry < first {
		return nil, fmt.Errorf("entry %d is before the first backup, which is of entry %d; want one of %s", entry, first, reachable(all))
	}
	return nil, fmt.Errorf("no backup has the journal up to entry %d; want one of %s", entry, reachable(all))
}

// behind returns parts of the journal that have all entries after one up to another; nil: some are missing.
func behind(all []*Manifest, from, to uint64) (parts []Journal) {
	for from < to {
		best := Journal{}
		for _, m := range all {
			for _, x := range m.Entries {
				if x.First <= from+1 && x.Last > from && x.Last > best.Last {
					best = x
				}
			}
		}
		if best.Last == 0 {
			return nil
		}
		parts, from = append(parts, best), best.Last
	}
	return parts
}

// reachable describes the entries that can be restored.
func reachable(all [][]*Manifest) string {
	var ranges []string
	for _, branch := range all {
		for i := 0; i < len(branch); {
			first, last := branch[i].Head.Entry, branch[i].Head.Entry
			for i++; i < len(branch) && (branch[i].Head.Entry == last || behind(branch, last, branch[i].Head.Entry) != nil); i++ {
				last = branch[i].Head.Entry
			}
			if first == last {
				ranges = append(ranges, fmt.Sprint(first))
			} else {
				ranges = append(ranges, fmt.Sprintf("%d to %d", first, last))
			}
		}
	}
	return strings.Join(ranges, ", ")
}

// Reachable describes the entries that Find accepts, given all readable backups, the latest last. They are those of the latest backup's
// installation, even if another one also stores backups in the same place.
func Reachable(all []*Manifest) string {
	if len(all) == 0 {
		return ""
	}
	latest := all[len(all)-1].Head.Installation
	return reachable(branches(slices.DeleteFunc(slices.Clone(all), func(m *Manifest) bool { return m.Head.Installation != latest })))
}

// before returns the last state without any change from after a time.
func (r *Repository) before(ctx context.Context, all []*Manifest, t time.Time) (*Point, error) {
	past := slices.DeleteFunc(slices.Clone(all), func(m *Manifest) bool { return m.Head.State.After(t) })
	if len(past) == 0 {
		return nil, fmt.Errorf("%s is before the first backup, whose state is of %s", t.Format(time.RFC3339), first(all).Head.State.Format(time.RFC3339))
	}
	if len(past) == len(all) {
		base := last(past)
		return &Point{base, base.Head.Entry, r, nil, nil}, nil
	}
	base, next, parts := around(branches(all), t)
	if parts == nil {
		later := slices.DeleteFunc(slices.Clone(all), func(m *Manifest) bool { return !m.Head.State.After(t) })
		return nil, fmt.Errorf("no backup has the journal of %s; the states of the backups before and after it are of %s and %s", t.Format(time.RFC3339), last(past).Head.State.Format(time.RFC3339), first(later).Head.State.Format(time.RFC3339))
	}
	p := &Point{base, base.Head.Entry, r, nil, nil}
	for e, err := range r.entries(ctx, parts, p.Entry, next.Head.Entry) {
		if err != nil {
			return nil, err
		}
		last := domain.Time(0)
		if err := cell.EachEvent(e.Batch, func(at domain.Time, _ kernel.Event) { last = max(last, at) }); err != nil {
			return nil, err
		}
		if last.Std().After(t) {
			break
		}
		p.Entry = e.Number
	}
	p.journal, p.later = parts, next
	return p, nil
}

// around returns two successive backups of a branch, one from before a time and one from after it, with the journal between them.
func around(all [][]*Manifest, t time.Time) (base, next *Manifest, parts []Journal) {
	for _, branch := range slices.Backward(all) {
		i := slices.IndexFunc(branch, func(m *Manifest) bool { return m.Head.State.After(t) })
		if i < 1 {
			continue
		}
		base, next = branch[i-1], branch[i]
		if parts = behind(branch, base.Head.Entry, next.Head.Entry); parts != nil {
			break
		}
	}
	return base, next, parts
}

// first returns the backup with the earliest state.
func first(all []*Manifest) *Manifest {
	return slices.MinFunc(all, func(a, b *Manifest) int { return a.Head.State.Compare(b.Head.State) })
}

func firstBehind(all []*Manifest, entry uint64) *Manifest {
	for _, m := range all {
		if m.Head.Entry >= entry {
			return m
		}
	}
	return nil
}

// entries yields the journal entries after one up to another.
func (r *Repository) entries(ctx context.Context, parts []Journal, from, to uint64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		next := from + 1
		for _, x := range parts {
			content, err := r.get(ctx, x.Ref)
			if err != nil {
				yield(journal.Entry{}, err)
				return
			}
			more := true
			backup.EachEntry(bytes.NewReader(content), func(e journal.Entry, err error) bool {
				switch {
				case err != nil:
					err = damaged("object %s: %s", x.Name, err)
				case e.Number < next:
					return true
				case e.Number > next:
					err = damaged("object %s: entry %d of the journal after entry %d", x.Name, e.Number, next-1)
				}
				next++
				more = yield(e, err) && err == nil && e.Number < to
				return more
			})
			if !more {
				return
			}
		}
		if next <= to {
			yield(journal.Entry{}, damaged("the journal after entry %d is missing", next-1))
		}
	}
}

// Advise adds to the error of a state that cannot be restored because of damage which backup can be restored.
func (p *Point) Advise(ctx context.Context, err error) error {
	if !errors.Is(err, backup.ErrDamaged) {
		return err
	}
	all, listing := p.repository.List(ctx)
	if listing != nil {
		return errors.Join(err, listing)
	}
	what, at := "backup "+p.Base.Name(), slices.IndexFunc(all, func(x Listed) bool { return x.Name == p.Base.Name() })
	if p.later != nil { // the damage may be in the journal after the backup
		what, at = fmt.Sprintf("the data that restores entry %d", p.Entry), at+1
	}
	err = fmt.Errorf("%s is damaged: %w", what, err)
	read := map[string]error{}
	for _, x := range slices.Backward(all[:max(at, 0)]) {
		whole, reading := p.repository.whole(ctx, x, read)
		if reading != nil {
			return errors.Join(err, reading)
		}
		if whole {
			return fmt.Errorf("%w; --backup %s restores the latest intact backup before it, of %s", err, x.Name, x.Head.State.Format(time.RFC3339))
		}
	}
	return fmt.Errorf("%w; no earlier backup is intact", err)
}

// whole reads those objects of a backup that read does not have.
func (r *Repository) whole(ctx context.Context, x Listed, read map[string]error) (bool, error) {
	if x.Err != nil {
		return false, nil
	}
	var refs []Ref
	x.each(func(ref Ref) { refs = append(refs, ref) })
	for _, ref := range refs {
		err, known := read[ref.Name]
		if !known {
			_, err = r.get(ctx, ref)
			read[ref.Name] = err
		}
		if errors.Is(err, backup.ErrDamaged) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}
