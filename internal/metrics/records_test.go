package metrics

import (
	"net/http"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/enginetest"
)

func TestRecordsAreShown(t *testing.T) {
	config := cell.DefaultConfig()
	config.Hosting.LocationsMax = 7
	e := enginetest.Open(t, engine.Config{Cell: config})
	if err := e.Do(t.Context(), &hosting.CreateLocation{Name: "custom-home", Region: "us-east-1"}); err != nil {
		t.Fatal(err)
	}
	d, _ := door(t, true)
	d.Register(Records(e))
	status, text := ask(d, "", "")
	if status != http.StatusOK {
		t.Fatalf("got %d: %s", status, text)
	}
	for _, want := range []string{
		`muster_records{kind="locations"} 1`,
		`muster_records_limit{kind="locations"} 7`,
		`muster_records{kind="player_sessions"} 0`,
		`muster_commands_waiting 0`,
		`muster_commands_waiting_limit 100000`,
		`muster_follower_backlog 0`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, `kind="players"`) {
		t.Error("records of player flow are shown without player flow")
	}
}
