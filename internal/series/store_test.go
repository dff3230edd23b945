package series

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/embeddb/embeddbtest"
	"github.com/musterhq/muster/internal/logtest"
)

const start = 29_000_000 // a minute in 2025

func mustOpen(t testing.TB, o Options) *Store {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.BytesMax == 0 {
		o.BytesMax = 1 << 40
	}
	if o.SeriesMax == 0 {
		o.SeriesMax = 1000
	}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func keyNo(n int) Key { return MakeKey("Metric", Dimension{"No", fmt.Sprint(n)}) }

// model keeps the values that a Store should keep.
type model map[Key][]Slot

func (m model) add(minute int64, points []Point) {
	for _, p := range points {
		if p.Count > 0 {
			m[p.Key] = append(m[p.Key], Slot{minute, p.Stat})
		}
	}
}

func (m model) hours(k Key) (all []Slot) {
	for _, x := range m[k] {
		at := x.Minute / 60 * 60
		if len(all) == 0 || all[len(all)-1].Minute != at {
			all = append(all, Slot{Minute: at})
		}
		all[len(all)-1].Add(x.Stat)
	}
	return all
}

func (m model) check(t *testing.T, s *Store, from, to int64) {
	t.Helper()
	within := func(all []Slot, minutes int64) []Slot {
		return slices.DeleteFunc(slices.Clone(all), func(x Slot) bool { return x.Minute+minutes <= from || x.Minute >= to })
	}
	for k := range m {
		minutes, err := s.Minutes(k, from, to)
		if err != nil {
			t.Fatal(err)
		}
		if want := within(m[k], 1); !slices.Equal(minutes, want) {
			t.Fatalf("minutes of %q from %d to %d:\ngot  %v\nwant %v", k, from, to, minutes, want)
		}
		hours, err := s.Hours(k, from, to)
		if err != nil {
			t.Fatal(err)
		}
		if want := within(m.hours(k), 60); !slices.Equal(hours, want) {
			t.Fatalf("hours of %q from %d to %d:\ngot  %v\nwant %v", k, from, to, hours, want)
		}
	}
	s.Totals(func(k Key, got Total) bool {
		var want Total
		for _, x := range m[k] {
			want.Sum += x.Sum
			want.Count += x.Count
		}
		if got.Count != want.Count || got.Sum != want.Sum {
			t.Fatalf("total of %q is %+v, want %+v", k, got, want)
		}
		return true
	})
}

// TestWhatIsKept appends at random, with gaps and restarts by a power cut, and compares with a simple model.
func TestWhatIsKept(t *testing.T) {
	seeds := uint64(8)
	if testing.Short() { // with the race detector
		seeds = 2
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 1))
		disk := vfs.NewCrashableMem()
		o := Options{Dir: "metrics", FS: disk}
		s, m, minute := mustOpen(t, o), model{}, int64(start)
		for range 400 {
			minute += 1 + int64(random.IntN(3))
			switch random.IntN(80) {
			case 0:
				minute += int64(random.IntN(3000))
			case 1:
				disk = disk.CrashClone(vfs.CrashCloneCfg{})
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				o.FS = disk
				s = mustOpen(t, o)
				m.check(t, s, start, minute+1)
			}
			var points []Point
			for n := range 6 {
				p := Point{Key: keyNo(n), Counts: n%2 == 0}
				switch random.IntN(3) {
				case 0:
					p.Stat = Of(float64(random.IntN(4)))
				case 1:
					p.Stat = Stat{Count: 2, Sum: 8, Min: 1, Max: float64(random.IntN(9))}
				}
				points = append(points, p)
			}
			if err := s.Append(minute, points); err != nil {
				t.Fatal(err)
			}
			m.add(minute, points)
			from := start + int64(random.IntN(int(minute-start)))
			m.check(t, s, from, from+int64(random.IntN(4000)))
		}
		m.check(t, s, start, minute+1)
		if err := s.Append(minute, nil); err == nil {
			t.Fatal("a minute was taken twice")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBucketsAddUp(t *testing.T) {
	o := Options{Dir: "metrics", FS: vfs.NewMem()}
	s := mustOpen(t, o)
	for i := range int64(200) {
		if err := s.Append(start+i, []Point{{Key: keyNo(1), Stat: Stat{3, 6, 1, 3}, Counts: true, Buckets: []uint64{1, 0, 2}}}); err != nil {
			t.Fatal(err)
		}
		if i%70 == 0 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = mustOpen(t, o)
		}
	}
	defer s.Close()
	s.Totals(func(_ Key, x Total) bool {
		if x.Count != 600 || x.Sum != 1200 || !slices.Equal(x.Buckets, []uint64{200, 0, 400}) {
			t.Errorf("got %+v", x)
		}
		return true
	})
}

// Values that are older than the retention are removed, and then the series itself.
func TestOldGoes(t *testing.T) {
	s := mustOpen(t, Options{Dir: "metrics", FS: vfs.NewMem()})
	defer s.Close()
	append1 := func(minute int64, n int) {
		t.Helper()
		if err := s.Append(minute, []Point{{Key: keyNo(n), Stat: Of(1)}}); err != nil {
			t.Fatal(err)
		}
	}
	count := func(n int, from int64) (minutes, hours int) {
		t.Helper()
		a, err := s.Minutes(keyNo(n), from, start*2)
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Hours(keyNo(n), from, start*2)
		if err != nil {
			t.Fatal(err)
		}
		return len(a), len(b)
	}
	append1(start, 1)
	append1(start+60, 2)
	append1(start+MinutesKept/2, 2)
	if a, b := count(1, start); a != 1 || b != 1 {
		t.Fatalf("%d minutes, %d hours", a, b)
	}
	append1(start+MinutesKept+180, 2)
	append1(start+MinutesKept+300, 2)
	if a, b := count(1, start); a != 0 || b != 1 {
		t.Errorf("after 15 days: %d minutes, %d hours", a, b)
	}
	append1(start+HoursKept*60+3000, 2)
	append1(start+HoursKept*60+3100, 2)
	if _, b := count(1, start); b != 0 {
		t.Errorf("after 455 days: %d hours", b)
	}
	if n, _ := s.Used(); n != 1 {
		t.Errorf("%d series", n)
	}
}

// A store that has reached its maximum of series refuses more, logs that once an hour, and replaces series that get no more samples.
func TestSeriesAreBounded(t *testing.T) {
	var log logtest.Log
	s := mustOpen(t, Options{Dir: "metrics", FS: vfs.NewMem(), SeriesMax: 3, Log: slog.New(slog.NewTextHandler(&log, nil))})
	defer s.Close()
	points := func(numbers ...int) (all []Point) {
		for _, n := range numbers {
			all = append(all, Point{Key: keyNo(n), Stat: Of(1)})
		}
		return all
	}
	for i := range int64(30) {
		if err := s.Append(start+i, points(1, 2, 3, 4, 5)); err != nil {
			t.Fatal(err)
		}
	}
	if n, _ := s.Used(); n != 3 || s.Refused() != 60 {
		t.Errorf("%d series, %d points refused", n, s.Refused())
	}
	if n := strings.Count(log.String(), "because all series are in use"); n != 1 && n != 2 { // two hours may have been touched
		t.Errorf("%d lines:\n%s", n, log.String())
	}
	if err := s.Append(start+2*24*60, points(1, 7)); err != nil {
		t.Fatal(err)
	}
	if all, err := s.Minutes(keyNo(7), start, start*2); err != nil || len(all) != 1 {
		t.Errorf("the new series has %v %v", all, err)
	}
	s.SetLimits(1<<40, 4)
	if err := s.Append(start+2*24*60+1, points(8, 9, 10)); err != nil {
		t.Fatal(err)
	}
	if n, _ := s.Used(); n != 4 {
		t.Errorf("%d series after the limit was raised to 4", n)
	}
}

// A minute in which all series are in use, and one in which all make room for others. BenchmarkFullStore measures the first.
func TestFullStore(t *testing.T) {
	const many = 6000
	s := mustOpen(t, Options{Dir: "metrics", FS: vfs.NewMem(), SeriesMax: many})
	defer s.Close()
	if err := s.Append(start, pointsOf(0, many)); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(start+1, pointsOf(many, 3*many)); err != nil || s.Refused() != 2*many {
		t.Fatalf("%d points were refused, %v", s.Refused(), err)
	}
	// The series that have a sample in the minute stay, although they had none for days.
	later := int64(start + 3*hoursInDay*minutesInHour)
	if err := s.Append(later, append(pointsOf(2*many, 3*many), pointsOf(0, 100)...)); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]int{0: 1, 99: 1, 100: 0, 2*many + 1: 1, 3*many - 101: 1, 3*many - 100: 0} {
		if all, err := s.Minutes(keyNo(n), later, later+1); err != nil || len(all) != want {
			t.Errorf("series %d has %v, %v; want %d minutes", n, all, err, want)
		}
	}
}

// If a minute cannot be stored, the series that it would have replaced, or that were due to be removed, are still there.
func TestNothingIsForgottenAfterAnError(t *testing.T) {
	for name, last := range map[string]int64{"a full store": start + 3*24*60, "old data": start + HoursKept*60 + 3000} {
		t.Run(name, func(t *testing.T) {
			disk := embeddbtest.NewDisk()
			s := mustOpen(t, Options{Dir: "metrics", FS: disk, SeriesMax: 2})
			defer s.Close()
			one := []Point{{Key: keyNo(1), Stat: Of(1)}}
			two := []Point{{Key: keyNo(2), Stat: Of(1)}, {Key: keyNo(3), Stat: Of(1)}}
			if err := errors.Join(s.Append(start, one), s.Append(last, two[:1])); err != nil {
				t.Fatal(err)
			}
			disk.FailAt(1, errors.New("failing on purpose"), false)
			next := last + 1 // in the same hour, so that the third series replaces the first one
			if name == "old data" {
				next = last + 100
			}
			if err := s.Append(next, two); err == nil {
				t.Fatal("a failing disk stored a minute")
			}
			var left []Key
			s.Keys(0, func(k Key) bool { left = append(left, k); return true })
			slices.Sort(left)
			if !slices.Equal(left, []Key{keyNo(1), keyNo(2)}) {
				t.Errorf("the store has %q", left)
			}
		})
	}
}

// A store that needs more than its budget keeps the newest.
func TestBudget(t *testing.T) {
	var log logtest.Log
	s := mustOpen(t, Options{Dir: filepath.Join(t.TempDir(), "metrics"), BytesMax: 200 << 10, Log: slog.New(slog.NewTextHandler(&log, nil))})
	defer s.Close()
	random := rand.New(rand.NewPCG(1, 1))
	minute := int64(start)
	for range 24 * 3 {
		for range 4 {
			var points []Point
			for n := range 100 {
				points = append(points, Point{Key: keyNo(n), Stat: Of(random.Float64())})
			}
			if err := s.Append(minute, points); err != nil {
				t.Fatal(err)
			}
			minute += 15
		}
	}
	if _, bytes := s.Used(); bytes > 8<<20 {
		t.Errorf("%d bytes on the disk", bytes)
	}
	old, err := s.Minutes(keyNo(1), start, start+60)
	if err != nil || len(old) != 0 {
		t.Errorf("the oldest minutes are still there: %v %v", old, err)
	}
	if now, err := s.Minutes(keyNo(1), minute-60, minute); err != nil || len(now) != 4 {
		t.Errorf("the newest minutes: %v %v", now, err)
	}
	if !strings.Contains(log.String(), "reached their disk budget") {
		t.Errorf("the log says %s", log.String())
	}
}

// A store that cannot be read does not stop the service: it is put aside.
func TestDamageIsPutAside(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "metrics")
	s := mustOpen(t, Options{Dir: dir})
	if err := s.Append(start, []Point{{Key: keyNo(1), Stat: Of(1)}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if err := os.WriteFile(f, []byte("no manifest"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = mustOpen(t, Options{Dir: dir})
	defer s.Close()
	if s.Last() != 0 {
		t.Error("the damaged store was read")
	}
	if _, err := os.Stat(dir + damagedSuffix); err != nil {
		t.Error(err)
	}
}

// The log names the damage, whether the database finds it or only this package.
func TestDamageIsNamed(t *testing.T) {
	for name, damage := range map[string]func(*testing.T, *Store){
		"a malformed total": func(t *testing.T, s *Store) {
			if err := s.db.Set(key1('c', 1), []byte{1}, pebble.Sync); err != nil {
				t.Fatal(err)
			}
		},
		"a malformed name": func(t *testing.T, s *Store) {
			if err := s.db.Set(key1('s', 1), []byte{9}, pebble.Sync); err != nil {
				t.Fatal(err)
			}
		},
		"a table": func(t *testing.T, s *Store) {
			if err := s.db.Flush(); err != nil {
				t.Fatal(err)
			}
			tables, err := filepath.Glob(filepath.Join(s.Dir, "*.sst"))
			if err != nil || len(tables) == 0 {
				t.Fatal(tables, err)
			}
			for _, table := range tables {
				content, err := os.ReadFile(table)
				if err != nil {
					t.Fatal(err)
				}
				for i := range content[:min(len(content), 60)] {
					content[i] ^= 0x55
				}
				if err := os.WriteFile(table, content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			o := Options{Dir: filepath.Join(t.TempDir(), "metrics"), Log: slog.New(slog.NewTextHandler(&log, nil))}
			s := mustOpen(t, o)
			if err := s.Append(start, []Point{{Key: keyNo(1), Stat: Of(1), Counts: true}}); err != nil {
				t.Fatal(err)
			}
			damage(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = mustOpen(t, o)
			defer s.Close()
			if s.Last() != 0 || !strings.Contains(log.String(), "moved aside") || strings.Contains(log.String(), "PANIC") || !strings.Contains(log.String(), "error=") {
				t.Errorf("the last minute is %d, and the log %s", s.Last(), log.String())
			}
		})
	}
}

// A reader gets each hour once, also while it ends.
func TestHoursEndWhileTheyAreRead(t *testing.T) {
	s := mustOpen(t, Options{Dir: "metrics", FS: vfs.NewMem()})
	defer s.Close()
	const days = 15
	done := make(chan error, 1)
	go func() {
		for hour := range int64(days * hoursInDay) {
			if err := s.Append((start/1440*hoursInDay+hour)*minutesInHour, []Point{{Key: keyNo(1), Stat: Of(1)}}); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for {
		all, err := s.Hours(keyNo(1), s.Last()-3*minutesInHour, s.Last()+1)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range all {
			if i > 0 && x.Minute <= all[i-1].Minute || x.Stat != Of(1) {
				t.Fatalf("the hours are %v", all)
			}
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}

// BenchmarkOpen measures the time that a start of the service waits: for the default maximum of series, with two hours of minutes.
// pointsOf returns a point of each of some series.
func pointsOf(from, to int) (all []Point) {
	for n := from; n < to; n++ {
		all = append(all, Point{Key: keyNo(n), Stat: Of(1)})
	}
	return all
}

// BenchmarkFullStore appends a minute with twice as many points of new series as there is room for series, which are all in use. Readers wait
// meanwhile, so the time must not grow with the product of both.
func BenchmarkFullStore(b *testing.B) {
	const many = 6000
	s := mustOpen(b, Options{Dir: "metrics", FS: vfs.NewMem(), SeriesMax: many})
	defer s.Close()
	if err := s.Append(start, pointsOf(0, many)); err != nil {
		b.Fatal(err)
	}
	others, minute := pointsOf(many, 3*many), int64(start)
	for b.Loop() {
		minute++
		if err := s.Append(minute, others); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	o := Options{Dir: filepath.Join(b.TempDir(), "metrics"), SeriesMax: 20_000}
	s := mustOpen(b, o)
	points := make([]Point, o.SeriesMax)
	for minute := range int64(120) {
		for i := range points {
			points[i] = Point{Key: keyNo(i), Stat: Of(float64(minute) * float64(i%100))}
		}
		if err := s.Append(start+minute, points); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s := mustOpen(b, o)
		b.StopTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// A request may still read when the service closes the store.
func TestReadsDuringClose(t *testing.T) {
	s := mustOpen(t, Options{Dir: t.TempDir()})
	for minute := range int64(3 * 60) {
		if err := s.Append(start+minute, []Point{{Key: keyNo(0), Stat: Of(1)}}); err != nil {
			t.Fatal(err)
		}
	}
	began, ended := make(chan struct{}), make(chan error)
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			if _, err := s.Minutes(keyNo(0), start, start+3*60); err != nil {
				ended <- err
				return
			}
			if i == 10 {
				close(began)
			}
		}
	}()
	<-began
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, embeddb.ErrClosed) {
		t.Errorf("a read after Close: %v, want %v", err, embeddb.ErrClosed)
	}
}
