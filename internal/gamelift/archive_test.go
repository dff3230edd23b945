package gamelift

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/musterhq/muster/internal/archive"
)

// memoryArchive is an archive for one test.
type memoryArchive struct {
	archive.Archive // nil: copies between nodes are not asked for here
	mu              sync.Mutex
	records         []archive.Record
}

func (a *memoryArchive) Put(_ context.Context, records []archive.Record) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range records {
		if err := r.Check(); err != nil {
			return err
		}
		a.records = slices.DeleteFunc(a.records, func(old archive.Record) bool { return old.Kind == r.Kind && old.ID == r.ID })
		a.records = append(a.records, r)
	}
	return nil
}

func (a *memoryArchive) Get(_ context.Context, kind archive.Kind, id string) (archive.Record, bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.records, func(r archive.Record) bool { return r.Kind == kind && r.ID == id })
	if i < 0 {
		return archive.Record{}, false, nil
	}
	return a.records[i], true, nil
}

func (a *memoryArchive) List(_ context.Context, kind archive.Kind, index archive.Index, key string, after archive.Cursor, limit int) ([]archive.Record, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var page []archive.Record
	for _, r := range a.records {
		indexed := map[archive.Index]string{archive.ByFleet: r.Fleet, archive.ByGroup: r.Group, archive.ByPlayer: r.Player}[index]
		behind := cmp.Or(cmp.Compare(r.Created, after.Created), cmp.Compare(r.ID, after.ID)) > 0
		if r.Kind == kind && indexed == key && behind {
			page = append(page, r)
		}
	}
	slices.SortFunc(page, func(x, y archive.Record) int {
		return cmp.Or(cmp.Compare(x.Created, y.Created), cmp.Compare(x.ID, y.ID))
	})
	return page[:min(limit, len(page))], nil
}

func (*memoryArchive) SetMark(archive.Mark) {}

func (*memoryArchive) Mark() (archive.Mark, bool, error) { return archive.Mark{}, false, nil }

func (a *memoryArchive) Expire(context.Context, int64, int) (int, error) { return 0, nil }
func (a *memoryArchive) Close() error                                    { return nil }

func (*memoryArchive) Coverage() (archive.Coverage, bool, error) {
	return archive.Coverage{}, false, nil
}
