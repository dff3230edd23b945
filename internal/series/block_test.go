package series

import (
	"math"
	"math/rand/v2"
	"testing"
)

// FuzzBlock reads any bytes, and checks that the result can be written and read again.
func FuzzBlock(f *testing.F) {
	f.Add([]byte{one | 4, same | 3, skip | 2, one | seeVarint, 200, 1, full, 4, 8, 0, 8})
	f.Add([]byte{one | seeFloat, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, bytes []byte) {
		type slot struct {
			period int
			stat   Stat
		}
		var all []slot
		var again block
		if _, err := read(bytes, func(period int, s Stat) {
			if s.Count != 0 && !math.IsNaN(s.Sum+s.Min+s.Max+s.Count) {
				all = append(all, slot{period, s})
				again.add(period, s)
			}
		}); err != nil {
			return
		}
		i := 0
		if _, err := read(again.bytes, func(period int, s Stat) {
			if i >= len(all) || all[i] != (slot{period, s}) {
				t.Fatalf("period %d is %+v, want %+v", period, s, all)
			}
			i++
		}); err != nil || i != len(all) {
			t.Fatalf("%d periods, want %d: %v", i, len(all), err)
		}
	})
}

// A block that is read can be continued, and gives the same periods as one that was never stored.
func TestBlocksContinue(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var b block
		want := map[int]Stat{}
		for period := range 60 {
			var s Stat
			switch random.IntN(6) {
			case 0:
				continue
			case 1:
				s = Of(float64(random.IntN(5)))
			case 2:
				s = Of(float64(random.Int64N(1<<50) - 1<<49))
			case 3:
				s = Of(random.NormFloat64())
			case 4:
				s = Stat{3, random.Float64(), -1, 7}
			default:
				s = b.before
			}
			if s.Count == 0 {
				continue
			}
			b.add(period, s)
			want[period] = s
			if random.IntN(10) == 0 {
				var err error
				if b, err = read(b.bytes, func(int, Stat) {}); err != nil {
					t.Fatal(err)
				}
			}
		}
		got := map[int]Stat{}
		if _, err := read(b.bytes, func(period int, s Stat) { got[period] = s }); err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Fatalf("%d periods, want %d", len(got), len(want))
		}
		for period, s := range want {
			if got[period] != s {
				t.Fatalf("period %d is %+v, want %+v", period, got[period], s)
			}
		}
	}
}

func TestSteadySeriesAreSmall(t *testing.T) {
	var steady, counting block
	for period := range 60 {
		steady.add(period, Of(17))
		counting.add(period, Of(float64(1000+period)))
	}
	if len(steady.bytes) > 3 || len(counting.bytes) > 64 {
		t.Errorf("an hour takes %d and %d bytes", len(steady.bytes), len(counting.bytes))
	}
}

func TestKeys(t *testing.T) {
	k := MakeKey("RuleEvaluationsPassed", Dimension{"ConfigurationName", "duel"}, Dimension{"RuleName", "a\x00b\x7f"})
	name, dimensions, err := k.Parse()
	if err != nil || name != "RuleEvaluationsPassed" || len(dimensions) != 2 || dimensions[1] != (Dimension{"RuleName", "a\x00b\x7f"}) {
		t.Errorf("got %q %q %v", name, dimensions, err)
	}
	for _, bad := range []Key{"", "\x05ab", "\x01a\x01b", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		if _, _, err := bad.Parse(); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
