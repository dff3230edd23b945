package matchmaker

import (
	"testing"

	"github.com/musterhq/muster/internal/domain/matchmaking"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

// TestPoolFitsUntilWhatItFindsChanges: slots of game sessions count with a queue only, and so do those kept free.
func TestPoolFitsUntilWhatItFindsChanges(t *testing.T) {
	rules, problems := ruleset.Parse(`{"ruleLanguageVersion": "1.0", "teams": [{"name": "a", "minPlayers": 1, "maxPlayers": 3}]}`)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	of := func(standalone bool, additional int32) *matchmaking.Configuration {
		return &matchmaking.Configuration{Name: "c", Version: 1, Standalone: standalone, AdditionalPlayers: additional}
	}
	for _, c := range []struct {
		made, now *matchmaking.Configuration
		fits      bool
	}{
		{of(true, 0), of(true, 2), true},
		{of(false, 2), of(false, 2), true},
		{of(false, 0), of(false, 2), false},
		{of(true, 0), of(false, 0), false},
		{of(false, 2), of(true, 2), false},
	} {
		if fits := NewPool(*c.made, rules).Fits(c.now); fits != c.fits {
			t.Errorf("made for %+v, wanted %+v: fits %t, want %t", *c.made, *c.now, fits, c.fits)
		}
	}
}
