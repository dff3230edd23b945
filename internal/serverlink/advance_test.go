package serverlink

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/linkclient"
	"github.com/musterhq/muster/internal/waittest"
)

func (w *world) passLinks(d time.Duration) {
	w.Helper()
	if err := w.door.AdvanceLinks(background, d); err != nil {
		w.Fatal(err)
	}
}

// A silent process is unhealthy once AdvanceLinks returns. Its connection stays, since its pings are answered.
func TestAdvanceLinksToSilence(t *testing.T) {
	w := newWorld(t)
	s := w.ready("p")
	w.passLinks(w.config.Periods.Silence - time.Second)
	if got := w.process("p").Health; got != fleet.Healthy {
		t.Errorf("before its silence is over it is %s", got)
	}
	w.passLinks(2 * time.Second)
	if got := w.process("p").Health; got != fleet.Unhealthy {
		t.Errorf("after its silence it is %s", got)
	}
	s.ok(s.Heartbeat(background, true))
	waittest.Until(w, "the process to be healthy again", func() bool { return w.process("p").Health == fleet.Healthy })
}

// A connection whose other end answers no ping is lost once AdvanceLinks returns, and only that one.
func TestAdvanceLinksToLoss(t *testing.T) {
	w := newWorld(t)
	deaf := w.ready("deaf", func(o *linkclient.Options) { o.Deaf = true })
	fine := w.ready("fine")
	w.passLinks(2 * w.config.Periods.Ping)
	if !w.process("deaf").Linked {
		t.Error("lost before its time")
	}
	w.passLinks(w.config.Periods.Ping)
	if w.process("deaf").Linked || !w.process("fine").Linked {
		t.Errorf("linked: deaf %t, fine %t", w.process("deaf").Linked, w.process("fine").Linked)
	}
	if code := deaf.ended(); code != 0 {
		t.Errorf("connection ended with close code %d, want none: the game server shall come back", code)
	}
	fine.ok(fine.Heartbeat(background, true))
	for _, d := range []time.Duration{-1, advanceMax + 1} {
		if err := w.door.AdvanceLinks(background, d); err == nil {
			t.Errorf("advance by %s is not refused", d)
		}
	}
}
