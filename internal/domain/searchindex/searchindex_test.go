package searchindex

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/domain/search"
)

func (w *world) query(t *rapid.T) Query {
	text := w.filter(w.IntN(4))
	f, err := search.ParseFilter(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	q := Query{Fleet: testFleet, Filter: f, Order: w.order(), Most: 1 + w.IntN(20)}
	if w.IntN(4) == 0 {
		q.Location = pick(w, "custom-a", "custom-b", "custom-c")
	}
	if w.IntN(4) == 0 {
		q.Filter, text = search.Filter{}, ""
	}
	t.Logf("filter %q order %+v location %q", text, q.Order, q.Location)
	return q
}

// TestFindsWhatLookingAtEachFinds compares all pages of searches with a read of each game session.
func TestFindsWhatLookingAtEachFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.Uint64().Draw(t, "seed"))
		for range rapid.SampledFrom([]int{0, 3, 100, 1500}).Draw(t, "games") {
			w.add("moving")
		}
		for range 3 {
			for range 200 {
				w.change()
			}
			q := w.query(t)
			want := w.naive(q)
			var got []search.Place
			for {
				page := w.page(q, func() {})
				got = append(got, page...)
				if len(page) < q.Most {
					break
				}
				q.After = &page[len(page)-1]
			}
			if !slices.Equal(got, want) {
				t.Fatalf("got %d results\n%v\nwant %d\n%v", len(got), got, len(want), want)
			}
		}
		checkIndex(t, w)
	})
}

// TestPagesUnderChange reads page after page while game sessions are added, removed and changed, also in the middle of a search. Each
// unchanged one is found once.
func TestPagesUnderChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.Uint64().Draw(t, "seed"))
		w.same = rapid.IntRange(0, 4).Draw(t, "same") == 0
		for range rapid.SampledFrom([]int{30, 600}).Draw(t, "fixed") {
			w.add("fixed")
		}
		for range rapid.SampledFrom([]int{10, 600}).Draw(t, "moving") {
			w.add("moving")
		}
		busy := rapid.IntRange(1, 60).Draw(t, "changes")
		left := 3000 // changes; without a bound there might always be a next page
		happen := func() {
			left -= busy
			for range min(busy, left) {
				w.change()
			}
			if left > 0 {
				w.respread()
			}
		}
		q := w.query(t)
		seen := map[string]int{}
		for {
			page := w.page(q, happen)
			for i, p := range page {
				seen[p.ID]++
				if i > 0 && q.Order.Compare(page[i-1], p) >= 0 && !w.same {
					t.Fatalf("%+v stands before %+v", page[i-1], p)
				}
			}
			if len(page) < q.Most {
				break
			}
			q.After = &page[len(page)-1]
			happen()
		}
		for _, g := range w.games {
			want := 0
			if r := g.row(); (q.Location == "" || g.Location == q.Location) && q.Filter.Match(r) {
				want = 1
			}
			if got := seen[g.ID]; strings.Contains(g.ID, "fixed") && got != want {
				t.Errorf("%s is on %d pages, want %d", g.ID, got, want)
			}
		}
		checkIndex(t, w)
	})
}

// checkIndex checks that the index has exactly the game sessions of the world.
func checkIndex(t *rapid.T, w *world) {
	if got := w.index.Len(testFleet); got != len(w.games) {
		t.Errorf("%d game sessions are indexed, want %d", got, len(w.games))
	}
	for ref := range w.games {
		w.remove(ref)
	}
	if len(w.index.fleets) != 0 {
		t.Error("the index of a fleet without game sessions is still there")
	}
	for ref, at := range w.index.spots {
		if at.block != nil {
			t.Errorf("%d still has a row", ref)
		}
	}
}

// TestRowsOfAFleetShrink: blocks are joined again when a fleet becomes small.
func TestRowsOfAFleetShrink(t *testing.T) {
	w := newWorld(1)
	for range 50 * rows {
		w.add("moving")
	}
	most := len(w.index.fleets[testFleet].blocks)
	for ref := range w.games {
		if len(w.games) == rows/4 {
			break
		}
		w.remove(ref)
	}
	if f := w.index.fleets[testFleet]; len(f.blocks) > most/8 || len(f.names.codes) > rows {
		t.Errorf("%d blocks and %d names are left for %d game sessions; there were %d blocks", len(f.blocks), len(f.names.codes), len(w.games), most)
	}
}

// TestLabelsHaveTheOrderOfTexts also puts each text between the last two, which soon leaves no room for labels.
func TestLabelsHaveTheOrderOfTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDictionary()
		used := map[string]uint32{}
		for _, text := range rapid.SliceOf(rapid.StringMatching(`[ab]{0,70}`)).Draw(t, "texts") {
			for n := range len(text) + 1 {
				used[text[:n]] = d.use(text[:n])
			}
		}
		if len(used) > 3 && rapid.Bool().Draw(t, "release") {
			for text, code := range used {
				for d.uses[code] > 0 {
					d.release(code)
				}
				delete(used, text)
				if len(used) == 3 {
					break
				}
			}
		}
		texts := slices.Sorted(func(yield func(string) bool) {
			for text := range used {
				if !yield(text) {
					return
				}
			}
		})
		last := uint64(0)
		for _, text := range texts {
			label, exact, ok := d.seek(text)
			if !ok || !exact || label <= last || label >= labelEnd || label != d.labels[used[text]] {
				t.Errorf("%q has label %d behind %d; found %v %v", text, label, last, exact, ok)
			}
			last = label
		}
		if d.order.Len() != len(used) || len(d.codes) != len(used) {
			t.Errorf("%d texts in order, %d numbered, want %d", d.order.Len(), len(d.codes), len(used))
		}
	})
}
