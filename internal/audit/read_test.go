package audit

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/audit"
)

// shelf is a log in memory, which counts how often it is read.
type shelf struct {
	head   audit.Head
	chunks map[uint64][]Stored
	reads  int
}

func (s *shelf) AuditHead(context.Context) (audit.Head, error) { return s.head, nil }

func (s *shelf) AuditStored(_ context.Context, no uint64) ([]Stored, error) {
	s.reads++
	return s.chunks[no/audit.GroupSize], nil
}

func (s *shelf) Now() time.Time { return time.Unix(0, 0).Add(1000 * time.Hour) }

func (s *shelf) remove(first, last uint64) {
	for chunk, some := range s.chunks {
		s.chunks[chunk] = slices.DeleteFunc(slices.Clone(some), func(x Stored) bool { return x.No >= first && x.No <= last })
	}
}

// newShelf returns a shelf with entries 1 to last, of which those before `kept` have expired and are gone.
func newShelf(kept, last uint64) *shelf {
	s := &shelf{chunks: map[uint64][]Stored{}}
	var e audit.Entry
	for no := uint64(1); no <= last; no++ {
		until := domain.TimeOf(s.Now().Add(-24 * time.Hour))
		if no >= kept {
			until = domain.TimeOf(s.Now().Add(24 * time.Hour))
		}
		e = audit.Entry{No: no, Previous: s.head.Hash, PreviousUntil: s.head.Until, Until: until, By: audit.Origin{Operation: "change"}}
		s.head = audit.Head{No: no, Hash: audit.Hash(e.Stored()), Until: until}
		if no >= kept {
			s.chunks[no/audit.GroupSize] = append(s.chunks[no/audit.GroupSize], Stored{no, e.Stored()})
		}
	}
	return s
}

// TestVerifyBeginsAtTheOldest: a check reads only the stored entries, not a place for each entry that ever existed. It still finds all missing ones.
func TestVerifyBeginsAtTheOldest(t *testing.T) {
	t.Parallel()
	const kept, last = 19_000, 20_000
	for _, c := range []struct {
		name        string
		kept        uint64
		first, most uint64 // removed; 0: none
		problem     string
	}{
		{"whole", kept, 0, 0, ""},
		{"never expired", 1, 0, 0, ""},
		{"the oldest are missing", kept, kept, kept + 299, "entry 19299 is missing: it should have been kept until"},
		{"a gap over several chunks", 1, 8_000, 12_000, "entries 8000 to 12000: each is missing"},
		{"the last are missing", kept, last - 299, last, "entries 19701 to 20000: each is missing"},
		{"all are missing", kept, kept, last, "entries 1 to 20000: each is missing"},
		{"all have expired", last + 1, 0, 0, ""},
	} {
		s := newShelf(c.kept, last)
		if c.most > 0 {
			s.remove(c.first, c.most)
		}
		v, err := Verify(t.Context(), s, nil)
		if err != nil || (c.problem == "") != (len(v.Problems) == 0) || c.problem != "" && !strings.HasPrefix(v.Problems[0], c.problem) {
			t.Errorf("%s: %+v, %v; want %q", c.name, v, err, c.problem)
		}
		if most := int(last-c.kept)/audit.GroupSize + 15; c.problem == "" && c.kept > 1 && c.kept <= last && s.reads > most {
			t.Errorf("%s: %d reads, want at most %d", c.name, s.reads, most)
		}
	}
}
