// Package archivetest is the conformance suite of archives: Run tests every promise of archive.Archive on an engine, and Memory is an
// archive for simulations. It is for tests only.
package archivetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/musterhq/muster/internal/archive"
)

// Engine is the engine that Run tests.
type Engine struct {
	// Open opens the archive called name, and creates it if it does not exist. The same name is the same archive, also after it was
	// closed.
	Open func(name string) (archive.Archive, error)
}

// Run tests the engine's promises, each in an archive of its own.
func Run(t *testing.T, engine Engine) {
	for _, promise := range []struct {
		name string
		hold func(*testing.T, *archiveUnderTest)
	}{
		{"RecordsComeBack", recordsComeBack},
		{"PuttingAgainReplaces", puttingAgainReplaces},
		{"KindsAreApart", kindsAreApart},
		{"ListsAreInOrder", listsAreInOrder},
		{"ListsGoOnBehindACursor", listsGoOnBehindACursor},
		{"LargePuts", largePuts},
		{"ExpireRemovesWhatEnded", expireRemovesWhatEnded},
		{"ExpireIsBounded", expireIsBounded},
		{"ExpireKeepsWhatWasPutAgain", expireKeepsWhatWasPutAgain},
		{"LongestKeys", longestKeys},
		{"ImpossibleRecordsAreRefused", impossibleRecordsAreRefused},
		{"MarksComeWithPuts", marksComeWithPuts},
		{"CoverageIsDurable", coverageIsDurable},
		{"PagesHaveEverything", pagesHaveEverything},
		{"PagesWhileItIsWritten", pagesWhileItIsWritten},
		{"AddKeepsTheLaterOne", addKeepsTheLaterOne},
		{"ACopyIsComplete", aCopyIsComplete},
		{"ManyAtOnce", manyAtOnce},
		{"AClosedArchiveSaysSo", aClosedArchiveSaysSo},
	} {
		t.Run(promise.name, func(t *testing.T) {
			a := &archiveUnderTest{T: t, engine: engine, name: strings.ToLower(promise.name)}
			a.open()
			t.Cleanup(func() { _ = a.Archive.Close() })
			promise.hold(t, a)
		})
	}
}

type archiveUnderTest struct {
	*testing.T
	archive.Archive
	engine Engine
	name   string
}

func (a *archiveUnderTest) open() {
	a.Helper()
	opened, err := a.engine.Open(a.name)
	if err != nil {
		a.Fatalf("open archive %s: %v", a.name, err)
	}
	a.Archive = opened
}

func (a *archiveUnderTest) reopen() {
	a.Helper()
	if err := a.Archive.Close(); err != nil {
		a.Fatalf("close archive %s: %v", a.name, err)
	}
	a.open()
}

// playerSession is record n of these tests: ten of them in a group, three players, each ended an hour after the previous one.
func playerSession(n int) archive.Record {
	return archive.Record{
		Kind: archive.PlayerSession, ID: fmt.Sprintf("psess-%d", n), Created: int64(n/2) * 1000, Ended: int64(n) * hour,
		Group: fmt.Sprintf("gsess-%d", n/10), Player: fmt.Sprintf("player-%d", n%3),
		Data: bytes.Repeat(fmt.Appendf(nil, "data %d;", n), n%4),
	}
}

const hour = 3_600_000

func playerSessions(from, to int) (records []archive.Record) {
	for n := from; n < to; n++ {
		records = append(records, playerSession(n))
	}
	return records
}

func (a *archiveUnderTest) put(records ...archive.Record) {
	a.Helper()
	if err := a.Put(a.Context(), records); err != nil {
		a.Fatalf("put %d records: %v", len(records), err)
	}
}

func same(a, b archive.Record) bool {
	sameData := bytes.Equal(a.Data, b.Data)
	a.Data, b.Data = nil, nil
	return sameData && a.Kind == b.Kind && a.ID == b.ID && a.Created == b.Created && a.Ended == b.Ended &&
		a.Fleet == b.Fleet && a.Group == b.Group && a.Player == b.Player
}

func (a *archiveUnderTest) wantRecord(want archive.Record) {
	a.Helper()
	got, found, err := a.Get(a.Context(), want.Kind, want.ID)
	if err != nil || !found || !same(got, want) {
		a.Fatalf("get %s: got %+v, found %v, error %v, want %+v", want.ID, got, found, err, want)
	}
}

func (a *archiveUnderTest) wantNone(kind archive.Kind, id string) {
	a.Helper()
	if got, found, err := a.Get(a.Context(), kind, id); err != nil || found {
		a.Fatalf("get %s of kind %d: got %+v, found %v, error %v, want none", id, kind, got, found, err)
	}
}

// wantList checks a whole list, read at once and in pages of two.
func (a *archiveUnderTest) wantList(kind archive.Kind, index archive.Index, key string, want ...archive.Record) {
	a.Helper()
	for _, limit := range []int{len(want) + 1, 2} {
		var got []archive.Record
		after := archive.Cursor{}
		for {
			page, err := a.List(a.Context(), kind, index, key, after, limit)
			if err != nil {
				a.Fatalf("list by %s: %v", key, err)
			}
			got = append(got, page...)
			if len(page) < limit {
				break
			}
			after = page[len(page)-1].Cursor()
		}
		if !slices.EqualFunc(got, want, same) {
			a.Fatalf("list by %s in pages of %d: got %v, want %v", key, limit, ids(got), ids(want))
		}
	}
}

func ids(records []archive.Record) (ids []string) {
	for _, r := range records {
		ids = append(ids, fmt.Sprintf("%s@%d", r.ID, r.Created))
	}
	return ids
}

// where returns the records with that key, in the order of lists.
func where(records []archive.Record, index archive.Index, key string) (found []archive.Record) {
	for _, r := range records {
		if r.Key(index) == key {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b archive.Record) int { return a.Cursor().Compare(b.Cursor()) })
	return found
}

func recordsComeBack(t *testing.T, a *archiveUnderTest) {
	a.wantNone(archive.PlayerSession, "psess-1")
	a.wantList(archive.PlayerSession, archive.ByGroup, "gsess-0")
	all := playerSessions(0, 40)
	all = append(all, archive.Record{
		Kind: archive.GameSession, ID: strings.Repeat("arn:aws:gamelift/", 30), Created: 1 << 41, Ended: 1 << 42,
		Fleet: "fleet-1", Group: "g", Player: "p\x00\xff", Data: bytes.Repeat([]byte{0, 1, 255}, 50_000),
	})
	a.put(all[:7]...)
	a.put(all[7:]...)
	for range 2 {
		for _, record := range all {
			a.wantRecord(record)
		}
		a.wantNone(archive.PlayerSession, "psess-40")
		a.wantNone(archive.PlayerSession, "")
		a.wantList(archive.PlayerSession, archive.ByGroup, "gsess-2", where(all, archive.ByGroup, "gsess-2")...)
		a.wantList(archive.PlayerSession, archive.ByPlayer, "player-1", where(all, archive.ByPlayer, "player-1")...)
		a.wantList(archive.GameSession, archive.ByFleet, "fleet-1", all[40])
		a.wantList(archive.GameSession, archive.ByPlayer, "p\x00\xff", all[40])
		a.wantList(archive.PlayerSession, archive.ByFleet, "fleet-1") // player sessions here have no fleet
		a.reopen()
	}
}

func puttingAgainReplaces(t *testing.T, a *archiveUnderTest) {
	first := playerSession(11)
	a.put(first, playerSession(12))
	a.put(first) // a follower repeats its work from before a crash
	a.wantList(archive.PlayerSession, archive.ByGroup, "gsess-1", first, playerSession(12))

	second := first
	second.Created, second.Group, second.Data = 99_000, "gsess-7", []byte("later")
	third := second
	third.Data = []byte("in the same put, the last one counts")
	a.put(second, third)
	for range 2 {
		a.wantRecord(third)
		a.wantList(archive.PlayerSession, archive.ByGroup, "gsess-1", playerSession(12))
		a.wantList(archive.PlayerSession, archive.ByGroup, "gsess-7", third)
		a.wantList(archive.PlayerSession, archive.ByPlayer, first.Player, third)
		a.reopen()
	}
}

func kindsAreApart(t *testing.T, a *archiveUnderTest) {
	player := archive.Record{Kind: archive.PlayerSession, ID: "one", Fleet: "f", Data: []byte("player")}
	game := archive.Record{Kind: archive.GameSession, ID: "one", Fleet: "f", Data: []byte("game")}
	other := archive.Record{Kind: 77, ID: "one", Fleet: "f", Data: []byte("of a later release")}
	a.put(player, game, other)
	for _, record := range []archive.Record{player, game, other} {
		a.wantRecord(record)
		a.wantList(record.Kind, archive.ByFleet, "f", record)
	}
}

func listsAreInOrder(t *testing.T, a *archiveUnderTest) {
	var all []archive.Record
	for n := range 300 { // three per millisecond, put in another order than created, with ids in neither order
		all = append(all, archive.Record{
			Kind: archive.GameSession, ID: fmt.Sprintf("gsess-%d", n*7919%1000), Created: int64(1000 - n/3), Ended: hour, Fleet: "fleet-1",
		})
	}
	for part := range slices.Chunk(all, 70) {
		a.put(part...)
	}
	a.wantList(archive.GameSession, archive.ByFleet, "fleet-1", where(all, archive.ByFleet, "fleet-1")...)
}

func listsGoOnBehindACursor(t *testing.T, a *archiveUnderTest) {
	all := playerSessions(0, 60)
	a.put(all...)
	sorted := where(all, archive.ByPlayer, "player-0")
	for _, test := range []struct {
		after archive.Cursor
		want  []archive.Record
	}{
		{archive.Cursor{}, sorted},
		{archive.Cursor{Created: sorted[4].Created}, sorted[4:]},                       // before every id of that millisecond
		{archive.Cursor{Created: sorted[4].Created, ID: "psess"}, sorted[4:]},          // an id that does not exist
		{archive.Cursor{Created: sorted[4].Created, ID: "q"}, sorted[5:]},              //
		{archive.Cursor{Created: sorted[len(sorted)-1].Created + 1, ID: "a"}, nil},     // after everything
		{archive.Cursor{Created: 1 << 60}, nil},                                        //
		{sorted[len(sorted)-1].Cursor(), nil},                                          //
		{archive.Cursor{Created: sorted[7].Created - 1, ID: "\xff\xff"}, sorted[7:]},   // between two
		{archive.Cursor{Created: sorted[0].Created, ID: sorted[0].ID[:3]}, sorted[0:]}, // a part of an id is before it
	} {
		got, err := a.List(a.Context(), archive.PlayerSession, archive.ByPlayer, "player-0", test.after, 100)
		if err != nil || !slices.EqualFunc(got, test.want, same) {
			t.Errorf("list behind %+v: got %v and error %v, want %v", test.after, ids(got), err, ids(test.want))
		}
	}
}

func largePuts(t *testing.T, a *archiveUnderTest) {
	const records = 20_000
	all := make([]archive.Record, records)
	for n := range all {
		all[n] = playerSession(n)
		all[n].Ended = int64(n)
	}
	a.put(all...)
	for n := 0; n < records; n += 1777 {
		a.wantRecord(all[n])
		a.wantList(archive.PlayerSession, archive.ByGroup, all[n].Group, where(all, archive.ByGroup, all[n].Group)...)
	}
	a.put() // an empty put
}

func (a *archiveUnderTest) expire(before int64, limit int) int {
	a.Helper()
	removed, err := a.Expire(a.Context(), before, limit)
	if err != nil {
		a.Fatalf("expire before %d: %v", before, err)
	}
	return removed
}

func expireRemovesWhatEnded(t *testing.T, a *archiveUnderTest) {
	all := playerSessions(0, 30)
	a.put(all...)
	if removed := a.expire(0, 1000); removed != 0 {
		t.Errorf("expire before everything: %d removed", removed)
	}
	a.expire(11*hour+archive.Grain, 1000) // records that ended at hour 11 at the latest
	a.put(playerSession(40))              // removals are durable with the next put at the latest
	all = append(all, playerSession(40))
	for range 2 {
		for n, record := range all {
			if n <= 11 {
				a.wantNone(record.Kind, record.ID)
			} else {
				a.wantRecord(record)
			}
		}
		a.wantList(archive.PlayerSession, archive.ByGroup, "gsess-0")
		a.wantList(archive.PlayerSession, archive.ByGroup, "gsess-1", where(all[12:], archive.ByGroup, "gsess-1")...)
		a.wantList(archive.PlayerSession, archive.ByPlayer, "player-2", where(all[12:], archive.ByPlayer, "player-2")...)
		a.reopen()
	}
	if removed := a.expire(1<<60, 1000); removed != 19 {
		t.Errorf("expire everything: %d removed, want 19", removed)
	}
	a.put(playerSession(3)) // the id can be reused
	a.wantRecord(playerSession(3))
}

func expireIsBounded(t *testing.T, a *archiveUnderTest) {
	all := make([]archive.Record, 5000)
	for n := range all {
		all[n] = playerSession(n)
	}
	a.put(all...)
	total, calls := 0, 0
	for {
		removed := a.expire(1<<60, 500)
		if removed == 0 {
			break
		}
		if removed > 1000 {
			t.Errorf("expire at most 500: %d removed", removed)
		}
		total, calls = total+removed, calls+1
		if rest := all[total:]; len(rest) > 0 { // oldest first
			a.wantRecord(rest[len(rest)-1])
		}
	}
	if total != len(all) || calls < 5 {
		t.Errorf("expire everything: %d removed in %d calls, want %d", total, calls, len(all))
	}
}

func expireKeepsWhatWasPutAgain(t *testing.T, a *archiveUnderTest) {
	old, other := playerSession(1), playerSession(2)
	a.put(old, other)
	renewed := old
	renewed.Ended = 100 * hour
	a.put(renewed)
	if removed := a.expire(50*hour, 1000); removed != 1 {
		t.Errorf("expire: %d removed, want 1", removed)
	}
	a.wantRecord(renewed)
	a.wantList(archive.PlayerSession, archive.ByPlayer, renewed.Player, renewed)
	a.wantNone(other.Kind, other.ID)
}

// The longest id of a player in the API has 1,024 characters, in any script.
func longestKeys(t *testing.T, a *archiveUnderTest) {
	r, other := playerSession(1), playerSession(2)
	r.Player = strings.Repeat("\U0001F600", 1024)
	other.Player = r.Player[:len(r.Player)-1] + "x"
	a.put(r, other)
	a.wantRecord(r)
	a.wantList(archive.PlayerSession, archive.ByPlayer, r.Player, r)
}

func impossibleRecordsAreRefused(t *testing.T, a *archiveUnderTest) {
	for name, change := range map[string]func(*archive.Record){
		"without kind":    func(r *archive.Record) { r.Kind = 0 },
		"without id":      func(r *archive.Record) { r.ID = "" },
		"before 1970":     func(r *archive.Record) { r.Created = -1 },
		"ended then":      func(r *archive.Record) { r.Ended = -1 },
		"with a long id":  func(r *archive.Record) { r.ID = strings.Repeat("i", archive.MaxKeyBytes+1) },
		"with a long key": func(r *archive.Record) { r.Player = strings.Repeat("p", archive.MaxKeyBytes+1) },
		"with much data":  func(r *archive.Record) { r.Data = make([]byte, archive.MaxDataBytes+1) },
	} {
		impossible := playerSession(2)
		change(&impossible)
		if err := a.Put(a.Context(), []archive.Record{playerSession(1), impossible}); !errors.Is(err, archive.ErrInvalid) {
			t.Errorf("put a record %s: got %v, want ErrInvalid", name, err)
		}
	}
	a.wantNone(archive.PlayerSession, "psess-1") // not even some of them
	for name, err := range map[string]error{
		"no key":   listError(a, archive.PlayerSession, archive.ByFleet, "", 1),
		"no index": listError(a, archive.PlayerSession, 0, "k", 1),
		"no kind":  listError(a, 0, archive.ByFleet, "k", 1),
		"no limit": listError(a, archive.PlayerSession, archive.ByFleet, "k", 0),
	} {
		if !errors.Is(err, archive.ErrInvalid) {
			t.Errorf("list with %s: got %v, want ErrInvalid", name, err)
		}
	}
	a.put(playerSession(1))
}

func listError(a *archiveUnderTest, kind archive.Kind, index archive.Index, key string, limit int) error {
	_, err := a.List(a.Context(), kind, index, key, archive.Cursor{}, limit)
	return err
}

func manyAtOnce(t *testing.T, a *archiveUnderTest) {
	var all sync.WaitGroup
	for writer := range 4 {
		all.Go(func() {
			for n := writer * 100; n < writer*100+100; n += 10 {
				if err := a.Put(t.Context(), playerSessions(n, n+10)); err != nil {
					t.Errorf("put beside others: %v", err)
				}
			}
		})
	}
	all.Go(func() {
		for range 20 {
			if _, err := a.Expire(t.Context(), 5*hour, 10); err != nil {
				t.Errorf("expire beside others: %v", err)
			}
		}
	})
	all.Go(func() {
		for n := range 200 {
			if _, _, err := a.Get(t.Context(), archive.PlayerSession, fmt.Sprintf("psess-%d", n)); err != nil {
				t.Errorf("get beside others: %v", err)
			}
			if _, err := a.List(t.Context(), archive.PlayerSession, archive.ByPlayer, "player-1", archive.Cursor{}, 50); err != nil {
				t.Errorf("list beside others: %v", err)
			}
		}
	})
	all.Wait()
	for n := 10; n < 400; n++ {
		a.wantRecord(playerSession(n))
	}
}

func aClosedArchiveSaysSo(t *testing.T, a *archiveUnderTest) {
	a.put(playerSession(1))
	for range 2 {
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, _, getErr := a.Get(a.Context(), archive.PlayerSession, "psess-1")
	_, expireErr := a.Expire(a.Context(), 1, 1)
	for doing, err := range map[string]error{
		"put":    a.Put(a.Context(), playerSessions(2, 3)),
		"get":    getErr,
		"list":   listError(a, archive.PlayerSession, archive.ByPlayer, "player-1", 1),
		"expire": expireErr,
	} {
		if !errors.Is(err, archive.ErrClosed) {
			t.Errorf("%s after close: got %v, want ErrClosed", doing, err)
		}
	}
	a.open()
	a.wantRecord(playerSession(1))
}
