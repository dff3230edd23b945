package series

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/embeddb"
)

// How long series are kept.
const (
	MinutesKept = 15 * 24 * 60
	HoursKept   = 455 * 24

	minutesInHour = 60
	hoursInDay    = 24
)

// Options of a Store.
type Options struct {
	Dir       string
	FS        vfs.FS // nil: the operating system's
	Program   string // names this process in the error of a second one that finds the directory in use
	BytesMax  int64  // the disk budget: beyond it, the oldest minutes and then the oldest hours go early
	SeriesMax int
	Log       *slog.Logger
}

// Store keeps series. One goroutine appends; any number reads.
//
// # Layout
//
// A Pebble database with these keys; numbers in them are big-endian, so that a period's entries are neighbours and go with one range:
//
//	s id           the key of a series
//	m minute       what all series added in a minute of the present hour
//	b hour id      the block of a series' minutes in an hour that is over
//	h day id       the block of a series' hours in a day
//	c id           the total of a series at the end of the last hour in which it changed
//
// At the end of an hour one batch turns its m entries into b, h and c entries. So a kill loses the minute that was not appended yet, and nothing else.
type Store struct {
	Options // the limits in it are guarded by mu
	db      *embeddb.DB

	mu     sync.RWMutex
	byKey  map[Key]*series
	byID   map[uint32]*series
	nextID uint32
	last   int64 // the newest minute, since 1970; 0: none yet

	// Of the present Append:
	evicted []*series
	idle    []*series // that can make room, the one without samples for the longest time last
	ranked  bool      // idle is known

	warned  int64  // the hour of the last warning that there is no room for another series
	refused uint64 // points without a series, since the start
}

// series is the state of a series in memory.
type series struct {
	id     uint32
	key    Key
	used   int64 // the newest minute with a sample
	hour   block // minutes of the current hour
	inHour Stat
	day    block // completed hours of the current day
	total  Total
	counts bool
}

// damagedSuffix is the suffix of a directory that could not be read and was moved aside.
const damagedSuffix = ".damaged"

// Open opens the store in a directory, and creates it if there is none. It moves a damaged store aside and starts a new one.
func Open(o Options) (*Store, error) {
	s, err := open(o)
	if _, damaged := errors.AsType[*embeddb.Damaged](err); !damaged && !errors.Is(err, errBlock) && !errors.Is(err, errKey) || o.FS != nil {
		return s, err
	}
	aside := o.Dir + damagedSuffix
	o.Log.Warn("the stored metrics are damaged: they are moved aside, and the service begins to store new ones", "directory", aside, "error", err)
	if err := errors.Join(os.RemoveAll(aside), os.Rename(o.Dir, aside)); err != nil {
		return nil, fmt.Errorf("put damaged metrics aside: %w", err)
	}
	return open(o)
}

func open(o Options) (*Store, error) {
	db, err := embeddb.Open(embeddb.Config{Dir: o.Dir, FS: o.FS, Logger: o.Log, Program: o.Program}, func(p *pebble.Options) {
		p.CacheSize = 2 << 20
		p.MemTableSize = 2 << 20
		p.MaxOpenFiles = 100
		for i := range p.Levels {
			p.Levels[i].BlockSize = 16 << 10
		}
	})
	if err != nil {
		return nil, err
	}
	s := &Store{Options: o, db: db, byKey: map[Key]*series{}, byID: map[uint32]*series{}, nextID: 1}
	if err := s.load(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// Close releases the directory.
func (s *Store) Close() error { return s.db.Close() }

// SetLimits changes the disk budget and the number of series. Data beyond a lower budget is removed at the end of the hour; series beyond a lower
// number stay.
func (s *Store) SetLimits(bytesMax int64, seriesMax int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.BytesMax, s.SeriesMax = bytesMax, seriesMax
}

// Limits returns the disk budget and the number of series.
func (s *Store) Limits() (bytesMax int64, seriesMax int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.BytesMax, s.SeriesMax
}

// StopWaiting ends a write that waits for disk space, so that the service can stop.
func (s *Store) StopWaiting() { s.db.StopWaiting() }

func key1(kind byte, n int64) []byte { return binary.BigEndian.AppendUint32([]byte{kind}, uint32(n)) }

func key2(kind byte, n int64, id uint32) []byte {
	return binary.BigEndian.AppendUint32(key1(kind, n), id)
}

// load reads the state in memory: the names of the series, their totals, and the current hour and day.
func (s *Store) load() error {
	err := s.each('s', 0, math.MaxUint32, func(key, value []byte) error {
		id := binary.BigEndian.Uint32(key[1:])
		k := Key(value)
		if _, _, err := k.Parse(); err != nil {
			return err
		}
		x := &series{id: id, key: k}
		s.byKey[x.key], s.byID[id] = x, x
		s.nextID = max(s.nextID, id+1)
		return nil
	})
	if err != nil {
		return err
	}
	err = s.each('c', 0, math.MaxUint32, func(key, value []byte) error {
		x := s.byID[binary.BigEndian.Uint32(key[1:])]
		if x == nil {
			return nil
		}
		x.counts = true
		return x.total.read(value)
	})
	if err != nil {
		return err
	}
	// The last use of each series is known only to the day, which is enough to choose the ones to evict.
	newest, day := int64(0), int64(0)
	err = s.each('h', 0, math.MaxUint32, func(key, value []byte) error {
		day = max(day, int64(binary.BigEndian.Uint32(key[1:])))
		x := s.byID[binary.BigEndian.Uint32(key[5:])]
		if x == nil {
			return nil
		}
		b, err := read(value, func(int, Stat) {})
		if err != nil {
			return err
		}
		x.used = (day*hoursInDay+int64(b.next))*minutesInHour - 1
		newest = max(newest, x.used)
		return nil
	})
	if err != nil {
		return err
	}
	s.last = newest
	if err := s.each('m', 0, math.MaxUint32, func(key, _ []byte) error {
		s.last = int64(binary.BigEndian.Uint32(key[1:]))
		return nil
	}); err != nil {
		return err
	}
	day = s.last / (minutesInHour * hoursInDay)
	if err := s.each('h', day, day, func(key, value []byte) error {
		if x := s.byID[binary.BigEndian.Uint32(key[5:])]; x != nil {
			var err error
			if x.day, err = read(append([]byte(nil), value...), func(int, Stat) {}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return s.each('m', 0, math.MaxUint32, func(key, value []byte) error {
		return s.replay(int64(binary.BigEndian.Uint32(key[1:])), value)
	})
}

// each yields the entries of a kind whose first number is between two.
func (s *Store) each(kind byte, from, to int64, yield func(key, value []byte) error) error {
	upper := []byte{kind + 1}
	if to < math.MaxUint32 {
		upper = key1(kind, to+1)
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: key1(kind, from), UpperBound: upper})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err == nil {
			err = yield(it.Key(), value)
		}
		if err != nil {
			return errors.Join(err, it.Close())
		}
	}
	return it.Close()
}

// Last returns the newest minute that was appended, as minutes since 1970; 0 if there is none.
func (s *Store) Last() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.last
}

// Append adds the points of a minute, which must be newer than all earlier ones. After an error, none of them has been added.
func (s *Store) Append(minute int64, points []Point) error {
	if err := s.db.Err(); err != nil {
		return err
	}
	if minute <= s.last {
		return fmt.Errorf("minute %d: want one after %d", minute, s.last)
	}
	if s.last != 0 && minute/minutesInHour != s.last/minutesInHour {
		if err := s.closeHour(); err != nil {
			return err
		}
		if minute/(minutesInHour*hoursInDay) != s.last/(minutesInHour*hoursInDay) {
			s.mu.Lock()
			s.beginDay()
			s.mu.Unlock()
		}
	}
	batch := s.db.NewBatch()
	defer batch.Close()
	all := make([]*series, len(points))
	entry, first, err := s.gather(batch, minute, points, all)
	if err == nil {
		err = batch.Set(key1('m', minute), entry, nil)
	}
	if err == nil {
		err = s.commit(batch)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	evicted := s.evicted
	s.evicted, s.idle, s.ranked = nil, nil, false
	if err != nil {
		for _, x := range all {
			if x != nil && x.id >= first {
				s.forget(x)
			}
		}
		for _, x := range evicted {
			s.byKey[x.key], s.byID[x.id] = x, x
		}
		return err
	}
	for i, x := range all {
		if x != nil {
			x.add(minute, &points[i])
		}
	}
	s.last = minute
	return nil
}

// gather finds or creates the series of the points, and returns the entry of the minute. New series have ids from first on.
func (s *Store) gather(batch embeddb.Batch, minute int64, points []Point, all []*series) (entry []byte, first uint32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = s.nextID
	for i := range points { // before another series needs room
		if x := s.byKey[points[i].Key]; x != nil && points[i].Count > 0 {
			x.used = minute
		}
	}
	for i := range points {
		if points[i].Count == 0 {
			continue
		}
		if all[i], err = s.find(batch, minute, points[i].Key); err != nil {
			return nil, first, err
		}
		if all[i] != nil {
			entry = appendPoint(entry, all[i].id, &points[i])
		}
	}
	return entry, first, nil
}

func (s *Store) commit(batch embeddb.Batch) error {
	if err := batch.Commit(pebble.Sync); err != nil {
		return err
	}
	return s.db.Err()
}

func (x *series) add(minute int64, p *Point) {
	x.used = minute
	x.hour.add(int(minute%minutesInHour), p.Stat)
	x.inHour.Add(p.Stat)
	if p.Counts {
		x.counts = true
		x.total.add(p)
	}
}

// find returns the series of a key, and creates it if there is room for one; otherwise nil. s.mu is held.
func (s *Store) find(batch embeddb.Batch, minute int64, k Key) (*series, error) {
	if x := s.byKey[k]; x != nil {
		return x, nil
	}
	if len(s.byKey) >= s.SeriesMax && !s.evict(batch, minute) {
		s.refused++
		if hour := minute / minutesInHour; hour != s.warned {
			s.warned = hour
			metric, _, _ := k.Parse()
			s.Log.Warn("metrics are not stored, because all series are in use: raise --metrics-series, or have fewer fleets, queues and configurations",
				"series", len(s.byKey), "metric", metric)
		}
		return nil, nil
	}
	x := &series{id: s.nextID, key: k, used: minute}
	if err := batch.Set(key1('s', int64(x.id)), []byte(k), nil); err != nil {
		return nil, err
	}
	s.nextID++
	s.byKey[k], s.byID[x.id] = x, x
	return x, nil
}

// evict removes the series that has had no samples for the longest time, and for at least a day. s.mu is held.
func (s *Store) evict(batch embeddb.Batch, minute int64) bool {
	if !s.ranked { // once in a minute: with all series in use, each further point asks for room
		s.ranked = true
		for _, x := range s.byID {
			if x.used < minute-hoursInDay*minutesInHour {
				s.idle = append(s.idle, x)
			}
		}
		slices.SortFunc(s.idle, func(a, b *series) int { return cmp.Compare(b.used, a.used) })
	}
	if len(s.idle) == 0 {
		return false
	}
	oldest := s.idle[len(s.idle)-1]
	s.idle = s.idle[:len(s.idle)-1]
	s.forget(oldest)
	s.evicted = append(s.evicted, oldest)
	return oldest.remove(batch) == nil
}

// remove removes a series from the disk, except its data, which expire.
func (x *series) remove(batch embeddb.Batch) error {
	if err := batch.Delete(key1('s', int64(x.id)), nil); err != nil {
		return err
	}
	return batch.Delete(key1('c', int64(x.id)), nil)
}

func (s *Store) forget(x *series) {
	delete(s.byKey, x.key)
	delete(s.byID, x.id)
}

// Used returns the number of series and the bytes on the disk.
func (s *Store) Used() (series int, bytes int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.byKey), int64(s.db.DiskUsed())
}

// Refused returns how many points were dropped because there was no room for their series.
func (s *Store) Refused() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.refused
}
