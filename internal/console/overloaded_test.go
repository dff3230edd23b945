package console

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/enginetest"
)

// What the service cannot do at the moment is neither a bad request nor the mistake of a person.
func TestOverloaded(t *testing.T) {
	x := newDeskOn(t, engine.Config{Cell: cell.DefaultConfig(), Peers: enginetest.Leaderless{}, Patience: time.Millisecond}, nil)
	x.wantPage(x.get(Prefix+"/fleets", x.signedInAs("LOOK")), http.StatusServiceUnavailable, "Service Unavailable", "no node of the cluster decides at the moment")

	var short atomic.Bool
	x = newDeskOn(t, engine.Config{Cell: cell.DefaultConfig(), Short: func() error {
		if short.Load() {
			return errors.New("the disk is full")
		}
		return nil
	}}, nil)
	x.withKeys()
	x.config.Audit = audit.NewLog(x.engine, t.TempDir(), x.engine.Now, x.log)
	t.Cleanup(x.config.Audit.Close)
	admin := x.signedInAs("ADMIN")
	short.Store(true)
	x.wantPage(x.send(admin, "create-key", "name", "lobby", "role", "readonly", "reason", "x"), http.StatusServiceUnavailable, "no room to record changes", `value="lobby"`)
	short.Store(false)
	x.config.Audit.Note(t.Context())
	page, err := audit.Read(t.Context(), x.engine, audit.Filter{Refused: true}, 0, 1)
	if err != nil || len(page.Entries) > 0 {
		t.Errorf("%v, refused: %+v", err, page.Entries)
	}
}
