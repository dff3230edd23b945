package insist

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/warm"
)

var errOverloaded = domain.Refuse(domain.Overloaded, "100000 commands are waiting")

func door(t *testing.T) (r *Reports, closeDoor func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running warm.Group
	return New(Config{Open: ctx, Running: &running}), func() { cancel(); running.Wait() }
}

// A report is repeated while it is refused because too much waits or its outcome is unknown, and not after another refusal.
func TestRepeats(t *testing.T) {
	for name, c := range map[string]struct {
		fails []error
		want  int
	}{
		"success":       {nil, 1},
		"overload":      {[]error{errOverloaded, errOverloaded, errOverloaded}, 4},
		"unknown":       {[]error{errors.New("stopped")}, 2},
		"other refusal": {[]error{domain.Refuse(domain.NotFound, "gone")}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, closeDoor := door(t)
				made := 0
				r.Make(func() error {
					made++
					if made <= len(c.fails) {
						return c.fails[made-1]
					}
					return nil
				})
				time.Sleep(time.Minute)
				closeDoor()
				if made != c.want {
					t.Errorf("made %d times, want %d", made, c.want)
				}
			})
		})
	}
}

// While everything is refused, all reports together are made no more often than workersMost times in each pause. Afterwards all of them are made.
func TestRefusalsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const reports, refused = 10_000, 10 * time.Second
		r, closeDoor := door(t)
		began := time.Now()
		tries, made := make(chan bool, 2*reports), 0
		for range reports {
			r.Make(func() error {
				if time.Since(began) < refused {
					tries <- false
					return errOverloaded
				}
				tries <- true
				return nil
			})
		}
		time.Sleep(refused + 2*pause)
		closeDoor()
		close(tries)
		failed := 0
		for ok := range tries {
			if ok {
				made++
			} else {
				failed++
			}
		}
		if most := workersMost * int(refused/pause); failed > most || made != reports {
			t.Errorf("%d were refused, want at most %d; %d of %d were made", failed, most, made, reports)
		}
	})
}

// While the core does not answer, a bounded number of goroutines waits, and a door that closes does not wait for the other reports.
func TestWaitingReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var running warm.Group
		r := New(Config{Open: ctx, Running: &running})
		answer, began := make(chan struct{}), make(chan struct{}, 1000)
		for range 1000 {
			r.Make(func() error { began <- struct{}{}; <-answer; return nil })
		}
		synctest.Wait()
		if len(began) != workersMost {
			t.Errorf("%d reports are being made, want %d", len(began), workersMost)
		}
		cancel()
		close(answer)
		running.Wait()
		r.Make(func() error { t.Error("a closed door made a report"); return nil })
		if len(began) != workersMost {
			t.Errorf("%d reports were made, want %d", len(began), workersMost)
		}
	})
}
