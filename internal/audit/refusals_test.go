package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/audit"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// noted has the entries that a Log makes.
type noted struct {
	all  []audit.Refusal
	fail error
}

func (n *noted) Do(_ context.Context, cmd kernel.Command) error {
	if n.fail == nil {
		n.all = append(n.all, cmd.(*audit.NoteRefusals).Refusals...)
	}
	return n.fail
}

// still returns a Log whose clock only the test moves, and which writes only when it is told to.
func still(e Engine, now *time.Time) *Log {
	l := NewLog(e, filepath.Join("testdata", "none"), func() time.Time { return *now }, slog.New(slog.DiscardHandler))
	l.cancel()
	l.done.Wait()
	return l
}

// TestRefusalsAreBounded: a flood of attempts, each with another principal, makes no more entries than the bounds allow, and counts all of them.
func TestRefusalsAreBounded(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	e := &noted{}
	l := still(e, &now)
	const attempts = 10_000
	for n := range attempts {
		l.RefusedAs(Origin{Principal: fmt.Sprint("AK", n), Door: DoorAPI, Operation: "DeleteFleet"}, "AccessDenied")
		l.SignInFailed(DoorAPI, fmt.Sprint(n), fmt.Sprint("AK", n), "wrong_secret")
		if n%100 == 0 {
			l.Note(t.Context())
		}
	}
	if n := len(e.all); n > callersBurst+strangersBurst {
		t.Errorf("%d entries at once, want at most %d", n, callersBurst+strangersBurst)
	}
	for range 2 * groupsMax { // each step allows one entry of either kind, and ten of callers
		now = now.Add(strangersPeriod)
		l.Note(t.Context())
	}
	total := uint64(0)
	for _, r := range e.all {
		total += r.Count
	}
	if most := callersBurst + strangersBurst + 2*(groupsMax+1); total != 2*attempts || len(e.all) > most {
		t.Errorf("%d attempts in %d entries, want %d in at most %d", total, len(e.all), 2*attempts, most)
	}
}

// TestRefusalsWait: refusals that cannot be recorded now are recorded later, together with newer ones.
func TestRefusalsWait(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	e := &noted{fail: errors.New("no node decides")}
	l := still(e, &now)
	by := Origin{Principal: "AKOPS", Door: DoorConsole, Operation: "DrainHost"}
	l.RefusedAs(by, "NotFound")
	l.Note(t.Context())
	l.RefusedAs(by, "NotFound")
	e.fail = nil
	l.Note(t.Context())
	if len(e.all) != 1 || e.all[0].Count != 2 || e.all[0].By != by {
		t.Errorf("%+v", e.all)
	}
}
