package series

import (
	"encoding/binary"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/musterhq/muster/internal/embeddb"
)

// Flags for what a point of an m entry has besides its value.
const (
	flagFull   = 1 << iota // a whole Stat, not a single sample
	flagCounts             // Point.Counts
	flagBuckets
)

func appendPoint(b []byte, id uint32, p *Point) []byte {
	flags := byte(0)
	if !p.single() {
		flags |= flagFull
	}
	if p.Counts {
		flags |= flagCounts
	}
	if len(p.Buckets) > 0 {
		flags |= flagBuckets
	}
	b = append(binary.AppendUvarint(b, uint64(id)), flags)
	b = appendNumber(b, p.Sum)
	if flags&flagFull != 0 {
		b = appendNumber(appendNumber(appendNumber(b, p.Count), p.Min), p.Max)
	}
	if flags&flagBuckets != 0 {
		b = appendBuckets(b, p.Buckets)
	}
	return b
}

func appendBuckets(b []byte, buckets []uint64) []byte {
	b = binary.AppendUvarint(b, uint64(len(buckets)))
	for _, n := range buckets {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

// bucketsMax is far more than the buckets of any metric.
const bucketsMax = 1000

func readBuckets(b []byte) (buckets []uint64, rest []byte, err error) {
	n, b, err := readUvarint(b)
	if err != nil || n > bucketsMax {
		return nil, nil, errBlock
	}
	for range n {
		var x uint64
		if x, b, err = readUvarint(b); err != nil {
			return nil, nil, err
		}
		buckets = append(buckets, x)
	}
	return buckets, b, nil
}

// replay adds an m entry to the series in memory.
func (s *Store) replay(minute int64, entry []byte) error {
	for rest := entry; len(rest) > 0; {
		id, after, err := readUvarint(rest)
		if err != nil || len(after) == 0 {
			return errBlock
		}
		flags := after[0]
		p := Point{Counts: flags&flagCounts != 0}
		var sum float64
		if sum, rest, err = readNumber(after[1:]); err != nil {
			return err
		}
		p.Stat = Of(sum)
		if flags&flagFull != 0 {
			for _, v := range []*float64{&p.Count, &p.Min, &p.Max} {
				if *v, rest, err = readNumber(rest); err != nil {
					return err
				}
			}
		}
		if flags&flagBuckets != 0 {
			if p.Buckets, rest, err = readBuckets(rest); err != nil {
				return err
			}
		}
		if x := s.byID[uint32(id)]; x != nil {
			x.add(minute, &p)
		}
	}
	return nil
}

func (t *Total) append(b []byte) []byte {
	return appendBuckets(appendNumber(appendNumber(b, t.Count), t.Sum), t.Buckets)
}

func (t *Total) read(b []byte) (err error) {
	if t.Count, b, err = readNumber(b); err != nil {
		return err
	}
	if t.Sum, b, err = readNumber(b); err != nil {
		return err
	}
	t.Buckets, _, err = readBuckets(b)
	return err
}

// closeHour turns the minutes of the current hour into blocks, and removes expired data.
func (s *Store) closeHour() error {
	hour := s.last / minutesInHour
	batch := s.db.NewBatch()
	defer batch.Close()
	s.mu.Lock()
	all := make([]*series, 0, len(s.byID))
	for _, x := range s.byID {
		if x.inHour.Count > 0 {
			all = append(all, x)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b *series) int { return int(a.id) - int(b.id) })
	days := make([]block, len(all))
	for i, x := range all {
		days[i] = x.day
		days[i].bytes = slices.Clone(x.day.bytes)
		days[i].add(int(hour%hoursInDay), x.inHour)
		err := batch.Set(key2('b', hour, x.id), x.hour.bytes, nil)
		if err == nil {
			err = batch.Set(key2('h', hour/hoursInDay, x.id), days[i].bytes, nil)
		}
		if err == nil && x.counts {
			err = batch.Set(key1('c', int64(x.id)), x.total.append(nil), nil)
		}
		if err != nil {
			return err
		}
	}
	for _, old := range []struct {
		kind  byte
		until int64
	}{{'m', (hour + 1) * minutesInHour}, {'b', hour - MinutesKept/minutesInHour}, {'h', (hour - HoursKept) / hoursInDay}} {
		if old.until > 0 {
			if err := batch.DeleteRange([]byte{old.kind}, key1(old.kind, old.until), nil); err != nil {
				return err
			}
		}
	}
	old, err := s.removeOld(batch, hour)
	if err == nil {
		err = s.commit(batch)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	for _, x := range old {
		s.forget(x)
	}
	for i, x := range all {
		x.day = days[i]
		x.hour.reset()
		x.inHour = Stat{}
	}
	s.mu.Unlock()
	return s.keepBudget(hour)
}

// beginDay drops the blocks of the day that has ended from memory. s.mu is held.
func (s *Store) beginDay() {
	for _, x := range s.byID {
		x.day.reset()
	}
}

// removeOld removes the series of which no data is kept any more from the disk. The caller forgets them once that is durable.
func (s *Store) removeOld(batch embeddb.Batch, hour int64) (old []*series, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, x := range s.byID {
		if x.used < (hour-HoursKept)*minutesInHour {
			old = append(old, x)
			if err := x.remove(batch); err != nil {
				return nil, err
			}
		}
	}
	return old, nil
}

// keepBudget removes the oldest minutes while the store exceeds its budget and, once less than a day of minutes is left, the oldest hours.
func (s *Store) keepBudget(hour int64) error {
	budget, _ := s.Limits()
	if int64(s.db.DiskUsed()) <= budget {
		return nil
	}
	kind, newest, unit := byte('b'), hour, int64(minutesInHour)
	oldest, err := s.oldest('b', hour)
	if err == nil && hour-oldest < hoursInDay {
		kind, newest, unit = 'h', hour/hoursInDay, hoursInDay*minutesInHour
		oldest, err = s.oldest('h', newest)
	}
	if err != nil || oldest == newest {
		return err
	}
	until := oldest + max(1, (newest-oldest)/8)
	from, to := []byte{kind}, key1(kind, until)
	if err := s.db.DeleteRange(from, to, pebble.Sync); err != nil {
		return err
	}
	s.Log.Warn("the stored metrics reached their disk budget: the oldest were removed early; raise --metrics-max to keep them longer",
		"budget", budget, "removed_until", timeOf(until*unit))
	if err := s.db.Compact(background, from, to, false); err != nil {
		return err
	}
	return s.db.Err()
}

// oldest returns the oldest period of a kind; newest if there is none.
func (s *Store) oldest(kind byte, newest int64) (int64, error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{kind}, UpperBound: []byte{kind + 1}})
	if err != nil {
		return 0, err
	}
	if it.First() {
		newest = int64(binary.BigEndian.Uint32(it.Key()[1:]))
	}
	return newest, it.Close()
}
