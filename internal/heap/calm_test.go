package heap

import "testing"

func TestACalmProcessGivesMemoryBack(t *testing.T) {
	const mib = 1 << 20
	var w calmWatch
	at := uint64(0)
	look := func(what string, allocated, live, held uint64, want bool) {
		t.Helper()
		at += allocated
		if got := w.worth(usage{allocated: at, live: live, held: held}); got != want {
			t.Errorf("%s: gives memory back: %v, want %v", what, got, want)
		}
	}
	look("under load", 500*mib, 100*mib, 200*mib, false)
	look("calm for one look", 2*mib, 100*mib, 200*mib, false)
	look("for two", 2*mib, 100*mib, 200*mib, false)
	look("for three", 2*mib, 100*mib, 200*mib, true)
	look("when all is given back", 2*mib, 100*mib, 104*mib, false)
	look("when little has gathered", 2*mib, 100*mib, 115*mib, false)
	look("when enough has gathered", 2*mib, 100*mib, 117*mib, true)
	look("when much is live", 2*mib, 800*mib, 899*mib, false)
	look("when much is live and an eighth has gathered", 2*mib, 800*mib, 900*mib, true)
	look("under load again", 6*mib, 100*mib, 200*mib, false)
	look("calm for one look again", 0, 100*mib, 200*mib, false)
	look("for two", 0, 100*mib, 200*mib, false)
	look("before the first collection", 0, 0, 30*mib, true)
}

func TestUsageCounts(t *testing.T) {
	before := used()
	block := make([]byte, 32<<20)
	after := used()
	if grown := after.allocated - before.allocated; grown < uint64(len(block)) {
		t.Errorf("%d bytes count as allocated after %d more", grown, len(block))
	}
	if after.held < uint64(len(block)) {
		t.Errorf("%d bytes count as held, although %d are in use", after.held, len(block))
	}
}
