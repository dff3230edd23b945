package playerapi_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/settings"
)

// option finds an option in the answer of GetConfig.
func option(t *testing.T, config answer, name string) answer {
	t.Helper()
	for _, x := range config["options"].([]any) {
		if o := x.(answer); o["name"] == name {
			return o
		}
	}
	t.Fatalf("there is no option %s", name)
	return nil
}

func TestOperatorsConfigure(t *testing.T) {
	file := filepath.Join(t.TempDir(), "flow.json")
	if err := os.WriteFile(file, []byte(`{"PartyServiceConfig": {"maxMembers": 4, "leaderGrace": "1s"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	x := run(t, func(s *settings.Settings) { s.PlayerFlowConfig, s.PlayerPenalties = file, "OFF" })
	got := x.call(http.StatusOK, "operator/Operator.SetConfig", "", `{"reason": "a try", "config": {
		"PartyServiceConfig": {"maxMembers": 2}, "SessionServiceConfig": {"pingInterval": "1s"}, "LoginServiceConfig": {"targetCcu": 1}}}`)
	for name, want := range map[string]answer{
		"PartyServiceConfig.maxMembers":     {"value": 2.0, "default": 8.0, "source": "OPERATOR", "range": "1 to 100", "applies": "NEW_PARTIES"},
		"PartyServiceConfig.leaderGrace":    {"value": "1s", "default": "30s", "source": "START", "applies": "NEW_DEADLINES"},
		"PenaltyServiceConfig.mode":         {"value": "OFF", "default": "REPORT_ONLY", "source": "START", "applies": "AT_ONCE"},
		"PartyServiceConfig.inviteTimeout":  {"value": "2m", "default": "2m", "source": "DEFAULT"},
		"SessionServiceConfig.pingInterval": {"value": "1s", "source": "OPERATOR"},
	} {
		o := option(t, got, name)
		for key, value := range want {
			if o[key] != value {
				t.Errorf("%s: %s is %v, want %v", name, key, o[key], value)
			}
		}
	}
	if change := got["changes"].([]any)[0].(answer); change["reason"] != "a try" || change["config"].(answer)["LoginServiceConfig"] == nil {
		t.Errorf("change: %v", change)
	}
	a := x.login("a")
	if p := x.call(http.StatusTooManyRequests, "player/Session.Login", "", loginBody("b")); p["code"] != "LOGIN_QUEUED" {
		t.Errorf("with targetCcu 1 a second player got %v", p)
	}
	f := x.stream(a)
	if hello := x.next(f, "hello"); hello["ping_interval_ms"] != 1000.0 {
		t.Errorf("hello: %v", hello)
	}
	x.next(f, "ping")
	if party := x.call(http.StatusOK, "player/Party.CreateParty", a, `{}`)["party"].(answer); party["max_members"] != 2.0 {
		t.Errorf("party: %v", party)
	}
	x.call(http.StatusOK, "operator/Operator.SetConfig", "", `{"reason": "back", "config": {"LoginServiceConfig": null, "PartyServiceConfig": null}}`)
	x.login("b")
	got = x.call(http.StatusOK, "operator/Operator.GetConfig", "", `{"reason": "look"}`)
	if o := option(t, got, "PartyServiceConfig.maxMembers"); o["value"] != 4.0 || o["source"] != "START" {
		t.Errorf("taken back: %v", o)
	}
	if set := got["overrides"].(answer); len(set) != 1 || set["SessionServiceConfig"] == nil {
		t.Errorf("overrides: %v", set)
	}
}

// All errors of a change are reported, and no part of it takes effect.
func TestOperatorsMisconfigure(t *testing.T) {
	x := run(t, nil)
	p := x.call(http.StatusBadRequest, "operator/Operator.SetConfig", "", `{"reason": "a try", "config": {
		"PartyServiceConfig": {"maxMembers": 2, "leaderGrace": "1 minute"}, "queues": [{"name": "a", "reconnect": "PERHAPS"}], "X": {}}}`)
	var fields []string
	for _, f := range p["details"].(answer)["fields"].([]any) {
		fields = append(fields, f.(answer)["field"].(string))
	}
	if got := strings.Join(fields, " "); p["code"] != "INVALID_ARGUMENT" || got != "X PartyServiceConfig.leaderGrace queues[0].reconnect" {
		t.Errorf("%v: fields %s", p["code"], got)
	}
	got := x.call(http.StatusOK, "operator/Operator.GetConfig", "", `{"reason": "look"}`)
	if o := option(t, got, "PartyServiceConfig.maxMembers"); o["value"] != 8.0 || len(got["changes"].([]any)) != 0 {
		t.Errorf("something of it counts: %v", o)
	}
	x.call(http.StatusBadRequest, "operator/Operator.SetConfig", "", `{"config": {}}`)
	x.call(http.StatusBadRequest, "operator/Operator.SetConfig", "", `{"reason": "a try", "config": []}`)
}
