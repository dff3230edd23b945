package playerapi

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/playerapi/objects"
	"github.com/musterhq/muster/internal/policy"
)

// Every call of trusted servers and operators is an action, with the roles that may make it, and every action of player flow is a call.
func TestCallsAreActions(t *testing.T) {
	d := newLobby(t, nil).door
	used := map[string]bool{}
	check := func(path string) {
		a, ok := actionOf(path)
		if !ok {
			t.Errorf("%s is no action", path)
			return
		}
		used[a.String()] = true
		if _, ok := Actions()[a]; !ok && path != objects.ServerStreamPath {
			t.Errorf("%s: nobody may take its action", path)
		}
	}
	for path := range d.partner.Classes() {
		if path != exchangePath {
			check(path)
		}
	}
	for path := range d.operator.Classes() {
		check(path)
	}
	check(objects.EventsPath)
	check(objects.ServerStreamPath)
	for a := range Actions() {
		if name := a.String(); !used[name] || strings.HasPrefix(name, "gamelift:") {
			t.Errorf("no call is %s", name)
		}
	}
	for _, name := range policy.Actions() {
		if strings.HasPrefix(name, "muster:") && !used[name] {
			if room, _, _ := strings.Cut(strings.TrimPrefix(name, "muster:"), "."); room == "Game" || room == "Flow" {
				t.Errorf("no call is %s", name)
			}
		}
	}
}
