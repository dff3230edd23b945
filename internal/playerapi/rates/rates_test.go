package rates

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/playerrates"
	"github.com/musterhq/muster/internal/rate"
)

func TestBuckets(t *testing.T) {
	now := time.Unix(1000, 0)
	b := New(func() time.Time { return now }, nil, 0)
	b.rates.Get()[Party] = rate.Limit{Every: time.Second / 2, Burst: 3}
	for i := range 3 {
		if wait, ok := b.Take(Party, "ann"); !ok {
			t.Fatalf("call %d of a burst of 3 has to wait %s", i+1, wait)
		}
	}
	if wait, ok := b.Take(Party, "ann"); ok || wait != time.Second/2 {
		t.Errorf("a call beyond the burst: %s, %t, want to wait 500ms", wait, ok)
	}
	if _, ok := b.Take(Party, "bob"); !ok {
		t.Error("one player's calls count for another")
	}
	if _, ok := b.Take(LeaveParty, "ann"); !ok {
		t.Error("a player cannot get out of the party")
	}
	now = now.Add(time.Second / 2)
	if _, ok := b.Take(Party, "ann"); !ok {
		t.Error("after the wait the call is refused again")
	}
	now = now.Add(time.Hour)
	b.Take(Party, "carl")
	if len(b.fullAt) != 1 {
		t.Errorf("%d buckets are kept, want that of carl only", len(b.fullAt))
	}
}

// A raised rate helps the callers who have used up the former one.
func TestRaisedRate(t *testing.T) {
	now := time.Unix(1000, 0)
	b := New(func() time.Time { return now }, nil, 1)
	for ok := true; ok; {
		_, ok = b.Take(LoginAddress, "192.0.2.1")
	}
	b.Set(nil, 60)
	if wait, ok := b.Take(LoginAddress, "192.0.2.1"); ok || wait != time.Second {
		t.Errorf("with 60 logins a minute instead of one: %s, %t, want to wait a second", wait, ok)
	}
	now = now.Add(time.Second)
	if wait, ok := b.Take(LoginAddress, "192.0.2.1"); !ok {
		t.Errorf("a second later: %s to wait", wait)
	}
}

// Logins come in at the rate, in the order of their first try; players in a game pass those who wait. TestLoginRateChanges: a waiting
// line moves at the new rate, and no player loses the place in it.
func TestLoginRateChanges(t *testing.T) {
	now := time.Unix(1000, 0)
	q := NewLoginQueue(func() time.Time { return now })
	q.SetRate(1)
	for i := range 100 {
		q.Admit(fmt.Sprint("player-", i), false)
	}
	before, _, _ := q.Admit("player-99", false)
	q.SetRate(100)
	if after, wait, _ := q.Admit("player-99", false); after != before || wait > time.Second {
		t.Errorf("at a hundredfold rate: position %d after %d, and %s to wait", after, before, wait)
	}
	now = now.Add(time.Second)
	if _, _, ok := q.Admit("player-99", false); !ok {
		t.Error("the last one still waits after a second")
	}
	q.SetRate(0)
	if _, _, ok := q.Admit("somebody", false); !ok || len(q.places) != 0 {
		t.Errorf("without a limit a player waits, or %d places are kept", len(q.places))
	}
	// After a limit was lifted and set again, the old line is gone, whether a player came meanwhile or not.
	q.SetRate(1)
	for i := range 100 {
		q.Admit(fmt.Sprint("player-", i), false)
	}
	q.SetRate(0)
	q.SetRate(50)
	if position, wait, ok := q.Admit("somebody", false); !ok {
		t.Errorf("the first player waits for %s at position %d", wait, position)
	}
}

// TestLoginLineIsBounded: when all places are taken, newcomers get none, and players with a place keep it.
func TestLoginLineIsBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	q := NewLoginQueue(func() time.Time { return now })
	q.SetRate(1)
	waiting := 0
	for i := 0; waiting < placesMax; i++ {
		if _, _, ok := q.Admit(fmt.Sprint("player-", i), false); !ok {
			waiting++
		}
	}
	if q.Waiting() != placesMax {
		t.Fatalf("%d players have a place, want %d", q.Waiting(), placesMax)
	}
	if position, wait, ok := q.Admit("late", false); ok || position != placesMax || wait != loginRetryMax {
		t.Errorf("one more: position %d, wait %s, let in %v", position, wait, ok)
	}
	if q.Waiting() != placesMax {
		t.Errorf("%d players have a place, want %d", q.Waiting(), placesMax)
	}
	if position, _, ok := q.Admit("player-10", false); ok || position >= placesMax {
		t.Errorf("one who has a place: position %d, let in %v", position, ok)
	}
}

func TestLoginQueue(t *testing.T) {
	now := time.Unix(1000, 0)
	q := NewLoginQueue(func() time.Time { return now })
	q.SetRate(10)
	in := 0
	var waiting []string
	for i := range 100 {
		player := fmt.Sprint("player-", i)
		if position, wait, ok := q.Admit(player, false); ok {
			in++
		} else {
			waiting = append(waiting, player)
			if position < 1 || wait <= 0 {
				t.Fatalf("%s waits at position %d for %s", player, position, wait)
			}
		}
	}
	if in != 11 { // what was saved up, and the one that is due
		t.Errorf("%d of 100 came in at once, want 11", in)
	}
	if _, _, ok := q.Admit("in a game", true); !ok {
		t.Error("a player in a game has to wait")
	}
	late := 0
	for len(waiting) > 0 && late < 1000 {
		now = now.Add(100 * time.Millisecond)
		late++
		if len(waiting) > 1 {
			if _, _, ok := q.Admit(waiting[len(waiting)-1], false); ok {
				t.Fatalf("the last in line came in before %d others", len(waiting)-1)
			}
		}
		if _, _, ok := q.Admit(waiting[0], false); ok {
			waiting = waiting[1:]
		}
	}
	if late > 95 {
		t.Errorf("89 waiting players took %d steps of the rate", late)
	}
	q.Admit("never back", false)
	q.Admit("never back either", false)
	now = now.Add(time.Hour)
	q.Admit("somebody", false)
	if len(q.places) != 0 {
		t.Errorf("places are kept for those who did not come back: %v", q.places)
	}
}

// Every class has a name that operators may say, and they may say no other one.
func TestClassesHaveNames(t *testing.T) {
	said := map[string]bool{classNames[LoginAddress]: true} // by a setting of its own
	for _, k := range playerrates.Defaults() {
		said[k.Name] = true
	}
	for c, name := range classNames {
		if name == "" || !said[name] {
			t.Errorf("class %d has the name %q, which is none of playerrates", c, name)
		}
		delete(said, name)
	}
	if len(said) > 0 {
		t.Errorf("no class has the names %v", said)
	}
}
