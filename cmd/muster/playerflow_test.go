package main

import (
	"strings"
	"testing"
)

// muster config shows the options of player flow, and from where they are; and what is wrong with their file.
func TestConfigShowsPlayerFlow(t *testing.T) {
	file := settingsFile(t, `{"PartyServiceConfig": {"maxMembers": 4}}`)
	out := mustRun(t, nil, "config", "--player-flow", "--player-flow-config", file, "--player-penalties", "ENFORCE")
	for option, want := range map[string]string{
		"PartyServiceConfig.maxMembers": "4 " + file,
		"PartyServiceConfig.leaderMode": "SINGLE default",
		"PenaltyServiceConfig.mode":     "ENFORCE player-penalties",
	} {
		if got := configLine(out, option); got != want {
			t.Errorf("%s: got %q, want %q", option, got, want)
		}
	}
	bad := settingsFile(t, `{"PartyServiceConfig": {"maxMembers": 400}}`)
	_, err := runForTest(t, nil, "config", "--player-flow", "--player-flow-config", bad)
	if err == nil || !strings.Contains(err.Error(), bad+": PartyServiceConfig.maxMembers: 400, want 1 to 100") {
		t.Errorf("got %v", err)
	}
}
