package engine_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/archive/archivetest"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/domain/session"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/journal/journaltest"
)

// wrongClock is the clock of a machine, which is off by some time.
type wrongClock struct{ off atomic.Int64 }

func (c *wrongClock) now() time.Time { return time.Now().Add(time.Duration(c.off.Load())) }

// timed is a cluster whose nodes have clocks of their own.
type timed struct {
	*cluster
	clocks  []*wrongClock
	decides atomic.Int32 // which one
	quiet   atomic.Bool  // no node hears the time
	stop    chan struct{}
	hears   sync.WaitGroup
}

func newTimed(t *testing.T, off ...time.Duration) *timed {
	x := &timed{cluster: &cluster{T: t, group: newGroup()}, stop: make(chan struct{})}
	for _, d := range off {
		x.clocks = append(x.clocks, &wrongClock{})
		x.clocks[len(x.clocks)-1].off.Store(int64(d))
		x.members = append(x.members, nil)
	}
	for i := range off {
		x.open(i, &disk{group: x.group})
	}
	x.hears.Go(func() {
		for {
			select {
			case <-time.After(time.Second):
				x.hear()
			case <-x.stop:
				return
			}
		}
	})
	return x
}

func (x *timed) open(i int, d *disk) {
	x.Helper()
	vault, err := archivetest.NewMemory(1).Open()
	if err != nil {
		x.Fatal(err)
	}
	e, err := engine.OpenReplica(x.Context(), engine.Config{Archive: vault, Cell: cell.DefaultConfig(), Now: x.clocks[i].now}, d)
	if err != nil {
		x.Fatal(err)
	}
	x.members[i] = &member{Engine: e, disk: d, vault: vault}
}

// hear tells every node the leader's time.
func (x *timed) hear() {
	if x.quiet.Load() {
		return
	}
	now := x.members[x.decides.Load()].Now()
	for _, m := range x.members {
		m.Heard(now, 0)
	}
}

func (x *timed) take(i int) {
	x.Helper()
	if err := x.lead(x.members[i], nil); err != nil {
		x.Fatal(err)
	}
	x.decides.Store(int32(i))
	synctest.Wait()
}

func (x *timed) close() {
	close(x.stop)
	x.hears.Wait()
	for _, m := range x.members {
		if err := m.Close(); err != nil {
			x.Error(err)
		}
	}
}

// wait starts a placement that no server can fulfil, with a timeout of ten minutes.
func (x *timed) wait(id string) {
	h := x.house(x.members[x.decides.Load()])
	h.must(&hosting.StartPlacement{Placement: placement.Placement{ID: id, Queue: "queue", PlayersMax: 2}})
}

func (x *timed) waits(id string) bool {
	x.Helper()
	status := placement.Pending
	if err := x.members[x.decides.Load()].Read(x.Context(), func(v *cell.View) error {
		p, ok := v.Placement(id)
		if !ok {
			x.Fatalf("no placement %s", id)
		}
		status = p.Status
		return nil
	}); err != nil {
		x.Fatal(err)
	}
	return status == placement.Pending
}

const drawn = 20 // one part in so many, by which the time of a cluster may be faster or slower than a clock

// between checks a duration against the clock. The tolerance is the permitted adjustment of the time, plus 50 ms for each change of leader.
func (x *timed) between(what string, got, want time.Duration, takeovers int) {
	x.Helper()
	within := want/drawn + time.Duration(takeovers)*50*time.Millisecond
	if got < want-within || got > want+within {
		x.Errorf("%s: %s, want %s within %s", what, got, want, within)
	}
}

// TestTimeOverTakeovers: nodes whose clocks are an hour apart take over from each other, there and back. Time goes on like a clock's at all of them, and deadlines end when
// they have to: those of clients that wait for the service, and others.
func TestTimeOverTakeovers(t *testing.T) {
	for name, off := range map[string][]time.Duration{
		"a right clock, then one an hour ahead, then one an hour behind": {0, time.Hour, -time.Hour},
		"an hour behind first": {-time.Hour, 0, time.Hour},
		"an hour ahead first":  {time.Hour, -time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newTimed(t, off...)
				defer x.close()
				x.take(0)
				h := x.house(x.members[0])
				h.hall()
				h.must(&hosting.CreateQueue{Queue: placement.Queue{
					Name: "queue", Region: "us-east-1", Account: "1", Timeout: 10 * time.Minute, Destinations: []string{"arn:aws:gamelift:us-east-1:1:fleet/" + testFleet},
				}})
				game := h.game("g1", 4)
				synctest.Wait()
				began, first := time.Now(), x.members[0].Now()
				if err := h.reserve(game, 1); err != nil {
					t.Fatal(err)
				}
				x.wait("placed")
				var reserved, placed time.Duration
				takeovers := 0
				last := make([]time.Time, len(off))
				for s := 1; placed == 0 && s < 1000; s++ {
					time.Sleep(time.Second)
					synctest.Wait()
					if s%45 == 0 {
						takeovers++
						x.take(takeovers % len(off))
					}
					for i, m := range x.members {
						now := m.Now()
						if now.Before(last[i]) {
							t.Errorf("after %d s node %d goes back by %s", s, i, last[i].Sub(now))
						}
						last[i] = now
						x.between("the time", now.Sub(first), time.Since(began), takeovers)
					}
					if reserved == 0 && x.house(x.members[x.decides.Load()]).status(1) == session.TimedOut {
						reserved = time.Since(began)
					}
					if !x.waits("placed") {
						placed = time.Since(began)
					}
				}
				if reserved < 57*time.Second || reserved > 2*time.Minute { // a takeover gives players who wait some time more
					t.Errorf("a reservation ended after %s", reserved)
				}
				x.between("a placement", placed, 10*time.Minute+time.Second, takeovers)
			})
		})
	}
}

// TestTimeGoesOnInAnIdleCluster: no entry is written for hours, and the next leader continues at the correct time, not at that of the last entry.
func TestTimeGoesOnInAnIdleCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTimed(t, 0, time.Hour)
		defer x.close()
		x.take(0)
		x.house(x.members[0]).hall()
		time.Sleep(5 * time.Hour)
		x.take(1)
		if got := time.Until(x.members[1].Now()).Abs(); got > time.Second {
			t.Errorf("the time is off by %s", got)
		}
		x.quiet.Store(true) // also when no node heard anything for long
		time.Sleep(30 * time.Minute)
		now := x.members[0].Now()
		x.take(0)
		x.between("the time after a takeover", x.members[0].Now().Sub(now), 0, 1)
	})
}

// TestTimeIsDrawnToTheLeader: the time approaches the leader's clock, never faster than the bound, and stays there.
func TestTimeIsDrawnToTheLeader(t *testing.T) {
	for name, off := range map[string]time.Duration{"back": -time.Hour, "forward": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newTimed(t, 0, off)
				defer x.close()
				x.take(0)
				time.Sleep(time.Minute)
				x.take(1)
				behind := func() time.Duration { return x.clocks[1].now().Sub(x.members[1].Now()).Abs() }
				for hour := range 19 {
					time.Sleep(time.Hour)
					x.between("what is left", time.Hour-behind(), time.Duration(hour+1)*time.Hour/drawn, 1)
				}
				time.Sleep(2 * time.Hour)
				if got := behind(); got > time.Millisecond {
					t.Errorf("after 21 hours the time is off by %s", got)
				}
				if got := x.members[0].Now().Sub(x.members[1].Now()).Abs(); got > 60*time.Millisecond {
					t.Errorf("the other node is off by %s", got)
				}
			})
		})
	}
}

// TestClockIsSet: an operator sets the leader's clock. The time does not step.
func TestClockIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTimed(t, 0)
		defer x.close()
		x.take(0)
		for _, by := range []time.Duration{time.Hour, -2 * time.Hour} {
			began, before := time.Now(), x.members[0].Now()
			x.clocks[0].off.Add(int64(by))
			time.Sleep(10 * time.Minute)
			x.between("the time", x.members[0].Now().Sub(before), time.Since(began), 0)
		}
	})
}

// TestWholeClusterWasDown: the clock of the first leader determines how long the cluster was down. If that clock is behind, the time continues
// from where it was.
func TestWholeClusterWasDown(t *testing.T) {
	for name, test := range map[string]struct{ off, want time.Duration }{
		"a right clock":          {0, 3 * time.Hour},
		"a clock an hour ahead":  {time.Hour, 4 * time.Hour},
		"a clock far behind":     {-24 * time.Hour, 0},
		"a clock an hour behind": {-time.Hour, 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newTimed(t, 0, 0)
				x.take(0)
				h := x.house(x.members[0])
				h.hall()
				game := h.game("g1", 4)
				if err := h.reserve(game, 1); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				before := x.members[0].Now()
				x.close()
				time.Sleep(3 * time.Hour)
				y := newTimed(t)
				defer y.close()
				y.group = x.group
				y.clocks, y.members = []*wrongClock{{}}, []*member{nil}
				y.clocks[0].off.Store(int64(test.off))
				y.open(0, x.members[0].disk)
				y.take(0)
				y.between("the downtime", y.members[0].Now().Sub(before), test.want, 1)
				h = y.house(y.members[0])
				time.Sleep(55 * time.Second)
				if got := h.status(1); got != session.Reserved {
					t.Errorf("55 s after the start a reservation is %s", got)
				}
				time.Sleep(10 * time.Second)
				if got := h.status(1); got != session.TimedOut {
					t.Errorf("65 s after the start a reservation is %s", got)
				}
			})
		})
	}
}

// TestElectedInVain: a node that knows nothing of the time yet is elected, and replaced before it has decided anything. It takes the time from its successor.
func TestElectedInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTimed(t, 0, time.Hour)
		defer x.close()
		x.take(0)
		x.house(x.members[0]).hall()
		x.quiet.Store(true)
		d := x.members[1].disk
		if err := x.members[1].Close(); err != nil {
			t.Fatal(err)
		}
		x.open(1, d)
		synctest.Wait()
		if err := x.lead(x.members[1], func() journaltest.Fault { return journaltest.NotWritten }); err == nil {
			x.members[1].StepDown()
		}
		synctest.Wait() // the first node has noticed that it no longer decides
		x.take(0)
		x.quiet.Store(false)
		time.Sleep(2 * time.Second)
		x.take(1)
		if got := time.Until(x.members[1].Now()).Abs(); got > time.Second {
			t.Errorf("the time is off by %s", got)
		}
	})
}
