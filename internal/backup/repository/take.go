package repository

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/backup"
	"github.com/musterhq/muster/internal/secretkey"
)

// smallMost is how many segments at the end of a backup may be less than half full. If there are more, they are read from the service again
// and become few.
const smallMost = 16

// Options define how to take a backup.
type Options struct {
	// Stream makes the service send a backup, without the contents of an earlier one.
	Stream func(ctx context.Context, since *backup.Since) (io.ReadCloser, error)
	Key    *secretkey.Key // the service's key for its secrets; nil: none
	Full   bool           // the backup builds on no other
	Log    *slog.Logger
}

// Take adds a backup. It exists once Take returns without an error.
func (r *Repository) Take(ctx context.Context, o Options) (*Manifest, error) {
	ctx, cancel := context.WithTimeout(ctx, runMax)
	defer cancel()
	if err := r.make(ctx); err != nil {
		return nil, err
	}
	there, err := r.find(ctx)
	if err != nil {
		return nil, err
	}
	earlier, err := r.names(ctx)
	if err != nil {
		return nil, err
	}
	var on *Manifest
	if o.Full {
		there.young = nil // nothing that may be damaged is used
	} else {
		if on, err = r.latest(ctx, earlier); err != nil {
			return nil, err
		}
		if on != nil && there.lacks(on) {
			o.Log.Warn("the latest backup is damaged: the new one is a full backup", "backup", on.Name())
			on, there.young = nil, nil
		}
	}
	kept, since := on.carried()
	stream, err := o.Stream(ctx, since)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	in, err := backup.NewReader(stream, o.Key)
	if err != nil {
		return nil, err
	}
	m := &Manifest{Run: runName(time.Now(), earlier), Head: in.Head, Secret: in.Sealed}
	m.Head.Since, m.name = nil, nameOf(m.Head.Entry, m.Run)
	p := newPutter(ctx, r.store, m.Run)
	defer func() { _ = p.wait() }() // no object is being stored when Take returns
	if in.Head.Since == nil {       // the first backup, or the first of another installation or history
		if on != nil && on.Head.Installation == m.Head.Installation {
			o.Log.Warn("the service was rolled back to a state from before the latest backup, or did not record that backup: the new one is a full backup", "backup", on.Name())
		}
		on, kept, m.Branch = nil, nil, m.Run
	} else {
		m.On, m.Damaged, m.Branch = on.name, on.Damaged, on.Branch
	}
	p.young = there.young
	if on != nil {
		on.each(func(x Ref) { p.known[x.Name[:2*sha256.Size]] = &x })
	}
	if err := m.take(p, in, kept); err != nil {
		return nil, cmp.Or(p.wait(), err) // everything after an object that could not be stored fails for the same reason
	}
	return m, r.finish(ctx, m)
}

// carried returns the segments that a backup on this one need not read again, and a description of what they cover.
func (m *Manifest) carried() (kept []Segment, since *backup.Since) {
	if m == nil {
		return nil, nil
	}
	since = &backup.Since{Installation: m.Head.Installation, Entry: m.Head.Entry, Next: m.Head.Next, Audited: m.Head.Audited}
	kept = slices.Clone(m.Records)
	for _, audit := range []bool{false, true} {
		var small []int // places in kept
		for i, x := range slices.Backward(kept) {
			if x.Audit != audit {
				continue
			}
			if x.Bytes >= segmentMax/2 {
				break
			}
			small = append(small, i)
		}
		if len(small) <= smallMost {
			continue
		}
		for _, i := range small { // from the end
			if audit {
				since.Audited = min(since.Audited, uint64(kept[i].First)-1)
			} else {
				since.Next = min(since.Next, kept[i].First)
			}
			kept = slices.Delete(kept, i, i+1)
		}
	}
	return kept, since
}

// found has the objects of a repository.
type found struct {
	size  map[string]int64 // by name
	young map[string]Ref   // objects that may be used although no backup refers to them, by the SHA-256 of their content
}

func (r *Repository) find(ctx context.Context) (f found, err error) {
	all, now, err := r.store.List(ctx, objectsBelow)
	f = found{map[string]int64{}, map[string]Ref{}}
	for _, x := range all {
		name := path.Base(x.Name)
		if !refName.MatchString(name) || objectName(name) != x.Name {
			continue
		}
		f.size[name] = x.Size
		if now.Sub(x.Modified) < youngFor {
			f.young[name[:2*sha256.Size]] = Ref{Name: name, Stored: x.Size}
		}
	}
	return f, err
}

// lacks reports whether an object of a backup is missing, or has another size. A new backup must not build on that.
func (f *found) lacks(m *Manifest) (lacks bool) {
	m.each(func(x Ref) {
		size, there := f.size[x.Name]
		lacks = lacks || !there || size != x.Stored
	})
	return lacks
}

// take stores the contents of the stream.
func (m *Manifest) take(p *putter, in *backup.Reader, kept []Segment) error {
	var state []*Ref
	sum := &stateSum{}
	cut := &cutter{done: func(piece []byte) error {
		ref, err := p.put(piece)
		state = append(state, ref)
		return err
	}}
	if _, err := io.Copy(io.MultiWriter(sum, cut), in.State()); err != nil {
		return err
	}
	if err := cut.flush(); err != nil {
		return err
	}
	m.StateSum = sum.String()

	entries := &gathered[Journal]{put: p.put}
	for e, err := range in.Entries() {
		if err != nil {
			return err
		}
		head := binary.AppendUvarint(binary.AppendUvarint(nil, e.Number), uint64(len(e.Batch)))
		if err := entries.add(func(x *Journal) {
			if x.First == 0 {
				x.First = e.Number
			}
			x.Last = e.Number
		}, head, e.Batch); err != nil {
			return err
		}
	}
	if err := entries.end(); err != nil {
		return err
	}

	records := map[bool]*gathered[Segment]{false: {put: p.put}, true: {put: p.put}}
	var line []byte
	for x, err := range in.Records() {
		if err != nil {
			return err
		}
		line = backup.AppendRecord(line[:0], &x)
		if err := records[x.Kind == archive.AuditEntry].add(func(s *Segment) { s.note(&x) }, line); err != nil {
			return err
		}
	}
	end, err := in.End()
	if err == nil {
		err = errors.Join(records[false].end(), records[true].end(), p.wait())
	}
	if err != nil {
		return err
	}
	for _, ref := range state {
		m.State = append(m.State, *ref)
	}
	m.Entries = entries.finished(func(x *Journal, ref Ref) { x.Ref = ref })
	oldest := m.Head.State.UnixMilli() - m.Head.Retention - archive.Grain // records expire by the time of the service, and not by the machine's clock
	for _, x := range kept {
		if x.Last >= oldest { // otherwise the service has removed all of them
			m.Records = append(m.Records, x)
		}
	}
	for _, audit := range []bool{false, true} {
		m.Records = append(m.Records, records[audit].finished(func(x *Segment, ref Ref) { x.Ref = ref })...)
	}
	m.Damaged += end.Damaged
	m.Made = p.made
	return nil
}

// note counts a record of the segment.
func (s *Segment) note(x *archive.Record) {
	if s.Count == nil {
		s.First, s.Count = math.MaxInt64, map[archive.Kind]uint64{}
	}
	first := x.Ended
	if s.Audit = x.Kind == archive.AuditEntry; s.Audit {
		first = int64(binary.BigEndian.Uint64([]byte(x.ID)))
	}
	s.First, s.Last = min(s.First, first), max(s.Last, x.Ended)
	s.Count[x.Kind]++
}

// gathered combines small contents into objects that are large enough.
type gathered[T any] struct {
	put  func([]byte) (*Ref, error)
	now  T
	text []byte
	all  []T
	refs []*Ref
}

func (g *gathered[T]) add(note func(*T), parts ...[]byte) error {
	note(&g.now)
	for _, p := range parts {
		g.text = append(g.text, p...)
	}
	if len(g.text) < segmentMax {
		return nil
	}
	return g.end()
}

func (g *gathered[T]) end() error {
	if len(g.text) == 0 {
		return nil
	}
	ref, err := g.put(g.text)
	if err != nil {
		return err
	}
	var none T
	g.all, g.refs = append(g.all, g.now), append(g.refs, ref)
	g.now, g.text = none, nil
	return nil
}

// finished returns all, with their objects, once these are stored.
func (g *gathered[T]) finished(set func(*T, Ref)) []T {
	for i := range g.all {
		set(&g.all[i], *g.refs[i])
	}
	return g.all
}

// finish stores the manifest, which makes the backup exist. The backup that it builds on must still exist; otherwise another program may
// have removed objects of both.
func (r *Repository) finish(ctx context.Context, m *Manifest) error {
	ctx, cancel := context.WithTimeout(ctx, settleFor/2)
	defer cancel()
	content, err := m.encode()
	if err != nil {
		return err
	}
	if len(content) > manifestMax {
		return fmt.Errorf("the manifest would have %d MiB; want at most %d", len(content)>>20, manifestMax>>20)
	}
	if err := r.store.Put(ctx, m.name, content); err != nil { // perhaps it is stored, and only the answer was lost
		if left := r.takeBack(ctx, m); left != nil {
			err = fmt.Errorf("%w; the manifest may have been stored nevertheless, and could not be removed: %w", err, left)
		}
		return err
	}
	if m.On == "" {
		return nil
	}
	_, err = r.store.Get(ctx, m.On, manifestMax)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("the backup %s was removed while this one, which builds on it, was being made: make it again", m.On)
	}
	if err != nil {
		err = errors.Join(err, r.takeBack(ctx, m))
	}
	return err
}

// takeBack removes the manifest of a backup that may not be whole.
func (r *Repository) takeBack(ctx context.Context, m *Manifest) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleFor/4)
	defer cancel()
	return r.store.Delete(ctx, m.name)
}

// Keep removes all backups except the latest n, and old objects that no backup needs any more. It returns how many backups it removed. A
// backup that was made within the last minutes is neither removed nor counted, because its program may still take it back (finish). A
// damaged backup, or one that lacks objects, is not counted.
func (r *Repository) Keep(ctx context.Context, n int) (removed int, err error) {
	objects, now, err := r.store.List(ctx, manifestsBelow)
	if err != nil {
		return 0, err
	}
	there, err := r.find(ctx)
	if err != nil {
		return 0, err
	}
	for _, name := range slices.Backward(inOrder(objects, func(x Object) bool { return now.Sub(x.Modified) > settleFor })) {
		if n > 0 {
			m, err := r.manifest(ctx, name)
			switch {
			case errors.Is(err, fs.ErrNotExist), errors.Is(err, backup.ErrDamaged):
			case err != nil:
				return removed, err
			case !there.lacks(m):
				n--
			}
			continue
		}
		if err := r.store.Delete(ctx, name); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, r.sweep(ctx)
}

// sweep removes old objects that no backup needs, and old manifests that were never complete. A backup made meanwhile needs none of these
// objects: it refers to young objects, and to those of another backup, which still exists.
func (r *Repository) sweep(ctx context.Context) error {
	names, err := r.names(ctx)
	if err != nil {
		return err
	}
	needed := map[string]bool{}
	for _, name := range names { // one manifest at a time: with a large archive, each has megabytes
		m, err := r.manifest(ctx, name)
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
		case err != nil:
			return fmt.Errorf("no object is removed while a backup that may need it cannot be read: %w", err)
		default:
			m.each(func(ref Ref) { needed[objectName(ref.Name)] = true })
		}
	}
	objects, now, err := r.store.List(ctx, objectsBelow)
	if err != nil {
		return err
	}
	manifests, _, err := r.store.List(ctx, manifestsBelow)
	if err != nil {
		return err
	}
	for _, x := range manifests {
		if strings.HasPrefix(path.Base(x.Name), ".") { // a program was killed while it wrote a manifest to a directory
			objects = append(objects, x)
		}
	}
	for _, x := range objects {
		if !needed[x.Name] && now.Sub(x.Modified) > oldAfter {
			if err := r.store.Delete(ctx, x.Name); err != nil {
				return err
			}
		}
	}
	return nil
}
