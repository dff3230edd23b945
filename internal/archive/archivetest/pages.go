package archivetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/archive"
)

func coverageIsDurable(t *testing.T, a *archiveUnderTest) {
	want := func(c archive.Coverage, wantOK bool) {
		t.Helper()
		if got, ok, err := a.Coverage(); err != nil || ok != wantOK || got != c {
			t.Fatalf("coverage: got %+v, %t, error %v, want %+v, %t", got, ok, err, c, wantOK)
		}
	}
	want(archive.Coverage{}, false)
	a.put(playerSession(1))
	want(archive.Coverage{}, false)
	first, second := archive.Coverage{Entry: 1 << 40, Next: 5, Lacks: true, From: 3}, archive.Coverage{Entry: 1 << 41, Next: 9}
	if err := a.SetCoverage(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	want(first, true)
	a.put(playerSession(2))
	a.reopen()
	want(first, true)
	if _, err := a.Add(t.Context(), playerSessions(3, 5), second); err != nil {
		t.Fatal(err)
	}
	want(second, true)
	a.reopen()
	want(second, true)
	for n := 1; n < 5; n++ {
		a.wantRecord(playerSession(n))
	}
	if _, err := a.Add(t.Context(), nil, first); err != nil { // without records
		t.Fatal(err)
	}
	want(first, true)
}

// pages reads an archive after a place, page by page, and calls between after each.
func (a *archiveUnderTest) pages(behind archive.Place, bytesMax int, between func(archive.Page)) {
	a.Helper()
	for {
		page, err := a.Page(a.Context(), behind, bytesMax)
		if err != nil {
			a.Fatal(err)
		}
		if page.Damaged != 0 {
			a.Fatalf("%d places are damaged", page.Damaged)
		}
		between(page)
		if !page.More {
			return
		}
		if page.Next.Ended < behind.Ended || page.Next == behind {
			a.Fatalf("the page behind %+v ends at %+v", behind, page.Next)
		}
		behind = page.Next
	}
}

func pagesHaveEverything(t *testing.T, a *archiveUnderTest) {
	a.pages(archive.Place{}, 100, func(p archive.Page) {
		if len(p.Records) > 0 || p.More {
			t.Fatalf("an empty archive has the page %+v", p)
		}
	})
	all := playerSessions(0, 500)
	for i := range all {
		all[i].Ended = int64(i/7) * archive.Grain / 3 // some end together, and neighbours within the grain
	}
	shuffled := slices.Clone(all)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for some := range slices.Chunk(shuffled, 90) {
		a.put(some...)
	}
	old := all[3]
	all[3].Ended, all[3].Created = 9*archive.Grain, 77 // replaced by a later one
	a.put(all[3])
	a.put(all[5]) // put again
	for _, bytesMax := range []int{1, 3000, 1 << 20} {
		for _, from := range []int64{0, 5 * archive.Grain, 1 << 45} {
			got := map[string]archive.Record{}
			a.pages(archive.Place{Ended: from}, bytesMax, func(p archive.Page) {
				for _, r := range p.Records {
					if same(r, old) {
						t.Fatal("a replaced record came")
					}
					got[r.ID] = r
				}
				for _, r := range all {
					if _, came := got[r.ID]; !came && r.Ended >= from && (!p.More || r.Ended < p.Next.Ended-archive.Grain) {
						t.Fatalf("%s, which ended at %d, did not come up to %+v (pages of %d from %d)", r.ID, r.Ended, p.Next, bytesMax, from)
					}
				}
			})
			for _, r := range got {
				a.wantRecord(r)
			}
		}
	}
	if _, err := a.Page(t.Context(), archive.Place{}, 0); err == nil {
		t.Error("a page of no bytes")
	}
}

// pagesWhileItIsWritten tests that pages contain everything that is stored throughout, whatever else is put, put again, or expires between two pages.
func pagesWhileItIsWritten(t *testing.T, a *archiveUnderTest) {
	all := playerSessions(0, 300)
	a.put(all...)
	chance := rand.New(rand.NewPCG(2, 2))
	got := map[string]bool{}
	next := 1000
	a.pages(archive.Place{Ended: 100 * hour}, 400, func(p archive.Page) {
		for _, r := range p.Records {
			got[r.ID] = true
		}
		again := all[100+chance.IntN(200)]
		a.put(again, playerSession(next))
		if next++; next == 1010 {
			if _, err := a.Expire(t.Context(), 90*hour, 20); err != nil {
				t.Fatal(err)
			}
		}
	})
	for _, r := range all[100:] {
		if !got[r.ID] {
			t.Errorf("%s did not come", r.ID)
		}
	}
}

func addKeepsTheLaterOne(t *testing.T, a *archiveUnderTest) {
	attempt := func(n int64) archive.Record {
		r := playerSession(7)
		r.Created, r.Ended, r.Data = n*hour, (n+1)*hour, fmt.Appendf(nil, "attempt %d", n)
		return r
	}
	add := func(want int, records ...archive.Record) {
		t.Helper()
		if got, err := a.Add(t.Context(), records, archive.Coverage{}); err != nil || got != want {
			t.Fatalf("added %d, %v, want %d", got, err, want)
		}
	}
	add(1, attempt(2))
	a.wantRecord(attempt(2))
	add(0, attempt(2))
	add(0, attempt(1))
	a.wantRecord(attempt(2))
	add(1, attempt(4), attempt(3))
	a.wantRecord(attempt(4))
	a.put(attempt(5))
	add(0, attempt(4))
	a.wantRecord(attempt(5))
	a.wantList(archive.PlayerSession, archive.ByGroup, attempt(5).Group, attempt(5))
	invalid := playerSession(8)
	invalid.ID = ""
	if _, err := a.Add(t.Context(), []archive.Record{playerSession(9), invalid}, archive.Coverage{Entry: 5}); err == nil {
		t.Error("an invalid record was added")
	}
	a.wantNone(archive.PlayerSession, playerSession(9).ID)
}

// aCopyIsComplete tests that an archive that gets all pages of another one, while both receive the same further records, has the same records.
func aCopyIsComplete(t *testing.T, a *archiveUnderTest) {
	copied := &archiveUnderTest{T: t, engine: a.engine, name: a.name + "-copy"}
	copied.open()
	t.Cleanup(func() { _ = copied.Close() })
	attempt := func(n int, which int64) archive.Record {
		r := playerSession(n)
		r.Created, r.Ended, r.Data = r.Created+which, r.Ended+which, append(r.Data, byte(which))
		return r
	}
	want := map[string]archive.Record{}
	put := func(to []*archiveUnderTest, r archive.Record) {
		want[r.ID] = r
		for _, x := range to {
			x.put(r)
		}
	}
	for n := range 200 {
		put([]*archiveUnderTest{a}, attempt(n, 0))
	}
	copied.put(attempt(3, 0), attempt(4, 0)) // the copy's earlier content
	put([]*archiveUnderTest{a}, attempt(3, 10))
	chance := rand.New(rand.NewPCG(3, 3))
	a.pages(archive.Place{}, 700, func(p archive.Page) {
		for range 3 { // from now on both get the same records
			put([]*archiveUnderTest{a, copied}, attempt(chance.IntN(300), int64(len(want))*1000))
		}
		if _, err := copied.Add(t.Context(), p.Records, archive.Coverage{}); err != nil {
			t.Fatal(err)
		}
	})
	for _, r := range want {
		a.wantRecord(r)
		copied.wantRecord(r)
	}
}
