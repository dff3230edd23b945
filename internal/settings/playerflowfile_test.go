package settings

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/flow"
)

func withPlayerFlowFile(t *testing.T, content string) Settings {
	t.Helper()
	s := Defaults()
	s.PlayerFlow, s.PlayerFlowConfig = true, filepath.Join(t.TempDir(), "flow.json")
	if err := os.WriteFile(s.PlayerFlowConfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPlayerFlowFile(t *testing.T) {
	s := withPlayerFlowFile(t, `{"PartyServiceConfig": {"maxMembers": 4}, "queues": [{"name": "ranked", "reconnect": "REQUIRED"}]}`)
	s.PlayerReconnectWindow, s.PlayerDirectCreate = 2*time.Minute, "europe"
	c := s.Cell().PlayerFlow.Flow
	if err := s.ReadPlayerFlow(c); err != nil {
		t.Fatal(err)
	}
	if c.Parties.MembersMax != 4 || c.Games.ReconnectWindow != 2*time.Minute || c.RulesOf("ranked").Reconnect != flow.ReconnectRequired {
		t.Errorf("%+v", c)
	}
	options, err := s.PlayerFlowOptions()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]PlayerFlowOption{}
	for _, o := range options {
		got[o.Name] = o
	}
	for name, want := range map[string]PlayerFlowOption{
		"PartyServiceConfig.maxMembers":               {Value: "4", From: s.PlayerFlowConfig},
		"PartyServiceConfig.leaderMode":               {Value: "SINGLE", From: "default"},
		"GameInstanceServiceConfig.reconnectWindow":   {Value: "2m", From: "player-reconnect-window"},
		"GameInstanceServiceConfig.directCreate":      {Value: "true", From: "player-direct-create"},
		"GameInstanceServiceConfig.directCreateQueue": {Value: "europe", From: "player-direct-create"},
		"queues": {Value: `{"name":"ranked","reconnect":"REQUIRED"}`, From: s.PlayerFlowConfig},
	} {
		if want.Name = name; got[name] != want {
			t.Errorf("%+v, want %+v", got[name], want)
		}
	}
}

// All errors of the file are reported at once, with its name, and no part of it takes effect.
func TestPlayerFlowFileFaults(t *testing.T) {
	for content, want := range map[string][]string{
		`nonsense`: {"want a JSON object"},
		`{"PartyServiceConfig": {"maxMembers": 0, "lead": 1}, "x": {}}`: {
			"PartyServiceConfig.maxMembers: 0, want 1 to 100", "PartyServiceConfig.lead: there is no such option", "x: there is no such section",
		},
		`{"GameInstanceServiceConfig": {"reconnect": "OFF"}, "LoginServiceConfig": {"targetCcu": 5}}`: {
			"GameInstanceServiceConfig.reconnect: the flag or setting player-reconnect sets it as well",
		},
		`{"GameInstanceServiceConfig": {"directCreate": false, "directCreateQueue": "asia"}}`: {
			"GameInstanceServiceConfig.directCreate: the flag or setting player-direct-create sets it as well",
			"GameInstanceServiceConfig.directCreateQueue: the flag or setting player-direct-create sets it as well",
		},
	} {
		s := withPlayerFlowFile(t, content)
		s.PlayerReconnect, s.PlayerDirectCreate = "REQUIRED", "europe"
		c := s.Cell().PlayerFlow.Flow
		before := c.Document()
		err := s.ReadPlayerFlow(c)
		if err == nil {
			t.Errorf("%s was read", content)
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != len(want) {
			t.Errorf("%s: %d errors, want %d:\n%v", content, len(lines), len(want), err)
		}
		for _, text := range want {
			if !strings.Contains(err.Error(), s.PlayerFlowConfig+": "+text) {
				t.Errorf("%s: %q is not in: %v", content, text, err)
			}
		}
		if c.Document() != before {
			t.Errorf("%s: something of it counts", content)
		}
		if _, err := s.PlayerFlowOptions(); err == nil {
			t.Errorf("%s: the listing does not say what is wrong", content)
		}
	}
	s := withPlayerFlowFile(t, `{}`)
	s.PlayerFlowConfig += ".not"
	if err := s.ReadPlayerFlow(s.Cell().PlayerFlow.Flow); err == nil || !strings.Contains(err.Error(), "player-flow-config") {
		t.Errorf("a file that there is not: %v", err)
	}
	s.PlayerFlow = false
	if err := s.Check(); err == nil || !strings.Contains(err.Error(), "without player-flow") {
		t.Errorf("a file without player flow: %v", err)
	}
}

var update = flag.Bool("update", false, "write the example file anew")

// The example lists every option with its default. `go test ./internal/settings -run Example -update` rewrites it.
func TestPlayerFlowExample(t *testing.T) {
	const name = "../../docs/examples/player-flow.json"
	defaults := flow.DefaultConfig()
	var want bytes.Buffer
	if err := json.Indent(&want, []byte(defaults.Document()), "", "  "); err != nil {
		t.Fatal(err)
	}
	want.WriteByte('\n')
	if *update {
		if err := os.WriteFile(name, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Fatalf("%s does not list every option with its default (%v); go test ./internal/settings -run Example -update writes it anew", name, err)
	}
	s := Defaults()
	s.PlayerFlow, s.PlayerFlowConfig = true, name
	if err := s.ReadPlayerFlow(s.Cell().PlayerFlow.Flow); err != nil {
		t.Error(err)
	}
}
