package mustertest

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/settings"
)

func TestSetting(t *testing.T) {
	s := settings.Defaults()
	for name, text := range map[string]string{
		"reservation": "90s", "limits": "gamelift", "dev": "true", "limit-fleets": "7", "limit-players-per-game-session": "9",
		"snapshot-every": "2MiB",
	} {
		if err := set(&s, name, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	want := settings.Defaults()
	want.Reservation, want.Limits, want.Dev, want.LimitFleets, want.LimitPlayersPerGameSession, want.SnapshotEvery = 90*time.Second, "gamelift", true, 7, 9, 2<<20
	if s != want {
		t.Errorf("got %+v\nwant %+v", s, want)
	}
	for _, c := range [][3]string{
		{"reservations", "90s", "no setting"}, {"reservation", "90", "such as 90s"}, {"dev", "maybe", "true or false"},
		{"limit-fleets", "many", "whole number"}, {"limit-players-per-game-session", "3000000000", "whole number"}, {"snapshot-every", "2", "KiB"},
	} {
		if err := set(&s, c[0], c[1]); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s=%s: got %v, want %q in it", c[0], c[1], err, c[2])
		}
	}
}
