package pebble

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/embeddb"
)

// damagedPlacesMax is how many damaged places are remembered and logged, once each.
const damagedPlacesMax = 64

// damageLog remembers the places that could not be read.
type damageLog struct {
	log *slog.Logger // nil: nothing is logged

	mu     sync.Mutex
	places []string
	more   int // findings at other places
}

// found records damage in a table.
func (d *damageLog) found(damaged *embeddb.Damaged) { d.note(damaged.Place(), damaged.Err) }

func (d *damageLog) note(place string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.Contains(d.places, place) {
		return
	}
	if len(d.places) == damagedPlacesMax {
		d.more++
		return
	}
	d.places = append(d.places, place)
	if d.log != nil {
		d.log.Error("the archive is damaged: the records in this place cannot be read; stop the service and run `muster archive repair`", "place", place, "error", err)
	}
}

// Damage lists the places that could not be read since the archive was opened: at most damagedPlacesMax, and a line about the
// rest.
func (a *Archive) Damage() []string {
	d := &a.damage
	d.mu.Lock()
	defer d.mu.Unlock()
	places := slices.Clone(d.places)
	if d.more > 0 {
		places = append(places, fmt.Sprintf("%d findings at other places", d.more))
	}
	return places
}

// atPlace converts the database's corruption errors to *archive.Damaged, and returns other errors unchanged.
func atPlace(place string, err error) error {
	if err != nil && pebble.IsCorruptionError(err) {
		return &archive.Damaged{Place: place, Err: err}
	}
	return err
}

// survivor iterates over keys in order and skips those that cannot be read.
type survivor struct {
	db           embeddb.Snapshot
	lower, upper []byte
	damaged      func(place string, err error)

	keys embeddb.Iterator
	last []byte
	err  error
}

// next reports whether there is another key, which is then in last.
func (s *survivor) next() bool {
	for {
		valid, err := s.step()
		switch {
		case valid:
			s.last = append(s.last[:0], s.keys.Key()...)
			return true
		case err == nil:
			return false
		case !pebble.IsCorruptionError(err):
			s.err = err
			return false
		}
		behind := s.lower
		if len(s.last) > 0 {
			behind = s.last
		}
		s.damaged(fmt.Sprintf("keys after %x", behind), err)
		s.close()
		if s.lower = pastDamage(behind, s.upper, s.readable); s.lower == nil {
			return false
		}
	}
}

func (s *survivor) step() (valid bool, err error) {
	if s.lower == nil { // all readable keys were read
		return false, nil
	}
	if s.keys == nil {
		if s.keys, err = s.db.NewIter(&pebble.IterOptions{LowerBound: s.lower, UpperBound: s.upper}); err != nil {
			return false, err
		}
		valid = s.keys.First()
	} else {
		valid = s.keys.Next()
	}
	return valid, s.keys.Error()
}

// readable reports whether reading at a key succeeds.
func (s *survivor) readable(lower []byte) bool {
	keys, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: s.upper})
	if err != nil {
		return false
	}
	keys.First()
	err = keys.Error()
	_ = keys.Close()
	return err == nil
}

func (s *survivor) close() {
	if s.keys != nil {
		_ = s.keys.Close()
		s.keys = nil
	}
}
