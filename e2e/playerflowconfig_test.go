package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// Options that operators set survive a kill and override the settings file. A drain closes clients' streams with 4503, and so does the
// end of the service.
func TestPlayerFlowIsConfiguredAndDrained(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "flow.json")
	must(t, os.WriteFile(file, []byte(`{"PartyServiceConfig": {"maxMembers": 3}, "SessionServiceConfig": {"duplicateLogin": "REJECT"}}`), 0o600))
	s := startService(t, "--player-flow", "--player-flow-config", file)
	s.flowCall(t, "operator", "Operator.SetConfig", "", http.StatusBadRequest, object{"reason": "e2e", "config": object{"PartyServiceConfig": object{"maxMembers": 0}}})
	s.flowCall(t, "operator", "Operator.SetConfig", "", http.StatusOK, object{"reason": "e2e", "config": object{"PartyServiceConfig": object{"maxMembers": 2}}})
	s.kill()
	s.start()
	got := s.flowCall(t, "operator", "Operator.GetConfig", "", http.StatusOK, object{"reason": "e2e"})
	members, login := got.at("config", "PartyServiceConfig", "maxMembers"), got.at("config", "SessionServiceConfig", "duplicateLogin")
	if members != 2.0 || login != "REJECT" {
		t.Errorf("after the kill: maxMembers %v, duplicateLogin %v", members, login)
	}

	ann := s.login(t, "ann")
	ann.attach()
	ann.until("OnSync")
	if party := ann.call("Party.CreateParty", object{}); party.at("party", "max_members") != 2.0 {
		t.Errorf("a new party: %v", party)
	}
	ann.until("OnPartyChanged")
	s.flowCall(t, "operator", "Operator.Drain", "", http.StatusOK, object{"reason": "e2e", "reconnect_after_ms": 1000})
	ann.until("bye")
	if code := ann.untilClosed(); code != 4503 {
		t.Errorf("the drain closed the stream with %d, want 4503", code)
	}
	s.flowCall(t, "operator", "Operator.Drain", "", http.StatusOK, object{"reason": "e2e", "drain": false})
	ann.attach()
	if flow := ann.call("Session.GetFlow", object{}); flow.text("flow", "keys", "PARTY_ID") == "" {
		t.Errorf("the party is gone: %v", flow)
	}
	s.noViolations(t)
	s.stop()
	if code := ann.untilClosed(); code != 4503 {
		t.Errorf("the end of the service closed the stream with %d, want 4503", code)
	}
}
