package series

import (
	"context"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

var background = context.Background()

func timeOf(minute int64) time.Time { return time.Unix(minute*60, 0).UTC() }

// Slot has the samples of a minute or an hour.
type Slot struct {
	Minute int64 // first minute, in minutes since 1970
	Stat
}

// Minutes returns the minutes of a series from from up to but not including to.
func (s *Store) Minutes(k Key, from, to int64) ([]Slot, error) {
	return s.slots(k, 'b', 1, minutesInHour, from, to)
}

// Hours returns the hours of a series from minute from up to but not including minute to. The current hour has its
// samples so far.
func (s *Store) Hours(k Key, from, to int64) ([]Slot, error) {
	return s.slots(k, 'h', minutesInHour, hoursInDay, from, to)
}

// slots reads blocks of count periods, each of the given number of minutes.
func (s *Store) slots(k Key, kind byte, minutes, count, from, to int64) (all []Slot, err error) {
	s.mu.RLock()
	x, last := s.byKey[k], s.last
	if x == nil {
		s.mu.RUnlock()
		return nil, nil
	}
	span := minutes * count
	present := block{}
	if kind == 'b' {
		present.bytes = append(present.bytes, x.hour.bytes...)
	} else {
		present.bytes = append(present.bytes, x.day.bytes...)
	}
	id, inHour, hour := x.id, x.inHour, last/minutesInHour
	s.mu.RUnlock()
	kept := int64(MinutesKept)
	if kind == 'h' {
		kept = HoursKept * minutesInHour
	}
	from, to = max(from, 0, last-kept-span), min(to, last+1)
	for n := from / span; n*span < to; n++ {
		bytes := present.bytes
		if n != last/span || len(bytes) == 0 { // the present hour may have been closed by an Append that failed
			if bytes, err = s.get(key2(kind, n, id)); err != nil {
				return nil, err
			}
		}
		_, err := read(bytes, func(period int, stat Stat) {
			if at := n*span + int64(period)*minutes; at+minutes > from && at < to {
				all = append(all, Slot{at, stat})
			}
		})
		if err != nil {
			return nil, err
		}
	}
	at := hour * minutesInHour
	closed := len(all) > 0 && all[len(all)-1].Minute == at // by an Append since inHour was copied
	if kind == 'h' && !closed && inHour.Count > 0 && at+minutesInHour > from && at < to {
		all = append(all, Slot{at, inHour})
	}
	return all, nil
}

// get returns the value of a key; nil if there is none.
func (s *Store) get(key []byte) ([]byte, error) {
	done, err := s.db.Use() // a request may outlive the store: Pebble would panic
	if err != nil {
		return nil, err
	}
	defer done()
	value, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, s.db.Explain(err)
	}
	value = append([]byte(nil), value...)
	return value, closer.Close()
}

// Keys yields the series with samples since a minute, in no particular order.
func (s *Store) Keys(since int64, yield func(Key) bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for k, x := range s.byKey {
		if x.used >= since && !yield(k) {
			return
		}
	}
}

// Totals yields the totals of the series that have one, in no particular order.
func (s *Store) Totals(yield func(Key, Total) bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for k, x := range s.byKey {
		if x.counts && !yield(k, x.total) {
			return
		}
	}
}
