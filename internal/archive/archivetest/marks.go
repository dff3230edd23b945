package archivetest

import (
	"testing"

	"github.com/musterhq/muster/internal/archive"
)

func marksComeWithPuts(t *testing.T, a *archiveUnderTest) {
	want := func(m archive.Mark, wantOK bool) {
		t.Helper()
		if got, ok, err := a.Mark(); err != nil || ok != wantOK || got != m {
			t.Fatalf("mark: got %+v, %t, error %v, want %+v, %t", got, ok, err, m, wantOK)
		}
	}
	want(archive.Mark{}, false)
	a.put(playerSession(1))
	want(archive.Mark{}, false)
	first, second := archive.Mark{Journal: 7, Forgotten: 1}, archive.Mark{Journal: 1 << 40, Forgotten: 2}
	a.SetMark(first)
	want(archive.Mark{}, false)
	a.put(playerSession(2))
	want(first, true)
	a.SetMark(second)
	want(first, true)
	a.reopen() // a mark without a Put is gone
	want(first, true)
	a.SetMark(second)
	a.put() // without records
	want(second, true)
	a.reopen()
	want(second, true)
	a.put(playerSession(3))
	want(second, true)
	a.wantRecord(playerSession(3))
}
