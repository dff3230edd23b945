package repository

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
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
	var whole []*Manifest // of one installation, by their entries
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
	slices.SortStableFunc(whole, func(a, b *Manifest) int { return cmp.Compare(a.Head.Entry, b.Head.Entry) })
	switch {
	case w.Entry != 0:
		p, err := r.at(whole, w.Entry)
		return p, elsewhere(err, former)
	case !w.Time.IsZero():
		p, err := r.before(ctx, whole, w.Time)
		if err == nil && broken != nil && p.Base == whole[len(whole)-1] && w.Time.After(p.Base.Head.State) { // the damaged one may have the state of that time
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

// afterLast refuses a time about which nothing is known, because no later backup was started. The state of a backup may be older than the
// backup, if nothing has changed since.
func afterLast(all []*Manifest, t time.Time) error {
	last := all[len(all)-1].Head
	made := last.State
	for _, m := range all {
		if m.Head.Entry == last.Entry && m.Head.Made.After(made) {
			made = m.Head.Made
		}
	}
	if !t.After(made) {
		return nil
	}
	return fmt.Errorf("%s is after the latest backup, which was made %s: no changes after that were backed up. Without --at, restore takes the state of the latest backup, which is of %s", t.Format(time.RFC3339), made.Format(time.RFC3339), last.State.Format(time.RFC3339))
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

// at returns the state after an entry.
func (r *Repository) at(all []*Manifest, entry uint64) (*Point, error) {
	var base *Manifest
	for _, m := range all {
		if m.Head.Entry <= entry {
			base = m
		}
	}
	if base == nil {
		return nil, fmt.Errorf("entry %d is before the first backup, which is of entry %d; want one of %s", entry, all[0].Head.Entry, reachable(all))
	}
	p := &Point{base, entry, r, nil, nil}
	if base.Head.Entry < entry {
		p.later = firstBehind(all, entry)
		if p.journal = behind(all, base.Head.Entry, entry); p.journal == nil {
			return nil, fmt.Errorf("no backup has the journal up to entry %d; want one of %s", entry, reachable(all))
		}
	}
	return p, nil
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
func reachable(all []*Manifest) string {
	var ranges []string
	for i := 0; i < len(all); {
		first, last := all[i].Head.Entry, all[i].Head.Entry
		for i++; i < len(all) && (all[i].Head.Entry == last || behind(all, last, all[i].Head.Entry) != nil); i++ {
			last = all[i].Head.Entry
		}
		if first == last {
			ranges = append(ranges, fmt.Sprint(first))
		} else {
			ranges = append(ranges, fmt.Sprintf("%d to %d", first, last))
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
	sorted := slices.DeleteFunc(slices.Clone(all), func(m *Manifest) bool { return m.Head.Installation != latest })
	slices.SortStableFunc(sorted, func(a, b *Manifest) int { return cmp.Compare(a.Head.Entry, b.Head.Entry) })
	return reachable(sorted)
}

// before returns the last state without any change from after a time.
func (r *Repository) before(ctx context.Context, all []*Manifest, t time.Time) (*Point, error) {
	base := -1
	for i, m := range all {
		if !m.Head.State.After(t) {
			base = i
		}
	}
	if base < 0 {
		return nil, fmt.Errorf("%s is before the first backup, whose state is of %s", t.Format(time.RFC3339), all[0].Head.State.Format(time.RFC3339))
	}
	p := &Point{all[base], all[base].Head.Entry, r, nil, nil}
	if base+1 == len(all) {
		return p, nil
	}
	parts := behind(all, p.Entry, all[base+1].Head.Entry)
	if parts == nil {
		return nil, fmt.Errorf("no backup has the journal of %s; the states of the backups before and after it are of %s and %s", t.Format(time.RFC3339), p.Base.Head.State.Format(time.RFC3339), all[base+1].Head.State.Format(time.RFC3339))
	}
	for e, err := range r.entries(ctx, parts, p.Entry, all[base+1].Head.Entry) {
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
	p.journal, p.later = parts, all[base+1]
	return p, nil
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
