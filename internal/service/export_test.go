package service

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/localdoor"
	"github.com/musterhq/muster/internal/settings"
)

// An export has all records that the service has, also where the machine's clock is far ahead of the time of the service, as in a cluster.
func TestExportWithAClockThatIsAhead(t *testing.T) {
	s := settings.Defaults()
	s.Data, s.Dev, s.Listen = t.TempDir(), true, "127.0.0.1:0"
	x, err := StartWith(t.Context(), Options{Settings: s, Log: slog.New(slog.DiscardHandler), Clock: engine.NewClock(time.Now().Add(-2 * engine.DefaultRetention))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Stop(t.Context()) })
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(x.Engine().Do(t.Context(), &hosting.CreateQueue{Queue: placement.Queue{Name: "q", Timeout: 10 * time.Minute}}))
	do(x.Engine().Do(t.Context(), &hosting.StartPlacement{Placement: placement.Placement{ID: "cup-final", Queue: "q", PlayersMax: 2}}))
	do(x.Engine().Do(t.Context(), &hosting.StopPlacement{ID: "cup-final"}))
	do(x.Advance(t.Context(), time.Minute))
	var out bytes.Buffer
	do(x.export(t.Context(), &out, localdoor.ExportRequest{}))
	if !strings.Contains(out.String(), "cup-final") {
		t.Errorf("exported %s", out.String())
	}
}
