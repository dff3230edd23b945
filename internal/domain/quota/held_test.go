package quota

import (
	"errors"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain"
)

// One holder may have three quarters of the bytes, and a key of the role client a half. What has no holder has all.
func TestOneHolderLeavesRoom(t *testing.T) {
	var h Held
	room := func(by Holder, m domain.Maker, bytes int) bool { return h.Room(Tickets, by, m, bytes, 100) == nil }
	h.Add(7, 50)
	if room(7, 7, 1) || !room(7, 0, 25) || room(7, 0, 26) || !room(8, 8, 50) || !room(0, 0, 50) || room(0, 0, 51) {
		t.Errorf("beside 50 bytes of one holder: %v %v %v %v %v %v", room(7, 7, 1), room(7, 0, 25), room(7, 0, 26), room(8, 8, 50), room(0, 0, 50), room(0, 0, 51))
	}
	h.Add(0, 50)
	if room(8, 0, 1) || h.Total() != (Amount{2, 100}) {
		t.Errorf("%+v", h.Total())
	}
	h.Remove(7, 50)
	h.Remove(0, 50)
	if !room(7, 0, 75) || len(h.by) != 0 || h.Total() != (Amount{}) {
		t.Errorf("%+v of %d holders are left", h.Total(), len(h.by))
	}
}

func TestQuotas(t *testing.T) {
	var held, other Held
	for range 3 {
		held.Add(7, 10)
		other.Add(7, 10)
	}
	held.Add(8, 0)
	if held.Equal(&other) || held.Of(7).Count != 3 || held.Of(9) != (Amount{}) {
		t.Errorf("%+v", held)
	}
	if got := held.Highest(1); len(got) != 1 || got[0] != (Holding{7, Amount{3, 30}}) {
		t.Errorf("highest: %+v", got)
	}
	var q Quotas
	check := func(h Holder, more int) bool { return q.Check(Queues, &held, h, more, 10_000) == nil }
	if !check(7, 7_497) || check(7, 7_498) || !check(0, 20_000) {
		t.Error("by default one holder may have three quarters of a large limit, and what has no holder is not counted")
	}
	if q.Check(Queues, &held, 7, 7, 10) != nil || q.Check(Queues, &held, 7, 8, 10) == nil {
		t.Error("one holder may have all of a small limit")
	}
	q.Set(&Table{Each: Numbers{Queues: 4}, Of: map[Holder]Numbers{8: {Queues: 2}}})
	if !check(7, 1) || check(7, 2) || !check(8, 1) || check(8, 2) || !check(9, 4) || check(9, 5) {
		t.Error("quotas that were set are not in force")
	}
	err := q.Check(Queues, &held, 7, 2, 10_000)
	refusal, ok := errors.AsType[*domain.Refusal](err)
	if !ok || refusal.Reason != domain.LimitExceeded || refusal.Quota != "queues" || !strings.Contains(refusal.Detail, "queues of this holder: 3; its quota queues is 4") {
		t.Errorf("refusal: %+v", refusal)
	}
	if err := (*Quotas)(nil).Check(Subscriptions, &held, 7, 29, 0); err != nil {
		t.Error(err)
	}
}

func TestNamesOfKinds(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Kinds() {
		back, err := KindNamed(k.String())
		if k.String() == "" || seen[k.String()] || err != nil || back != k {
			t.Errorf("%d: %q, %v, %v", k, k, back, err)
		}
		seen[k.String()] = true
	}
	if _, err := KindNamed("players"); err == nil || !strings.Contains(err.Error(), "game_sessions") {
		t.Errorf("an unknown kind: %v", err)
	}
}

// A client key was the holder of what it made before there were holders, and still is.
func TestMakersAreHolders(t *testing.T) {
	if HolderOf(0, 7) != 7 || HolderOf(5, 7) != 5 || Stored(7, 7) != 0 || Stored(5, 7) != 5 || HolderOf(Stored(7, 7), 7) != 7 {
		t.Error("holder and maker")
	}
	if h := HolderNamed("MUSTERKEY"); h <= Players || h != HolderNamed("MUSTERKEY") || h == HolderNamed("MUSTERKEZ") {
		t.Errorf("%x", h)
	}
}
