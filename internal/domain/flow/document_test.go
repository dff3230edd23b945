package flow

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestDocumentSetsOptions(t *testing.T) {
	base := DefaultConfig()
	c, wrong := base.With(`{
		"SessionServiceConfig": {"duplicateLogin": "REJECT", "pingInterval": "5s"},
		"PartyServiceConfig": {"requireReady": false, "maxMembers": 4, "readyTimeout": "1m"},
		"GameInstanceServiceConfig": {"reconnect": "OFF", "enableKeepAlive": true, "keepAliveInterval": "30s", "enableAbsoluteTimeout": false},
		"PenaltyServiceConfig": {"dodgeSteps": ["0s", "90s"]},
		"queues": [{"name": "ranked", "maxParty": 5, "clientVersions": ["2"], "reconnect": "REQUIRED", "enableKeepAlive": false, "takeover": "DENY", "absoluteTimeout": "1h", "enableAbsoluteTimeout": true}]
	}`)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	want := DefaultConfig()
	want.Sessions.RejectDuplicates, want.Sessions.PingInterval = true, 5*time.Second
	want.Parties.NoReadyRequired, want.Parties.MembersMax, want.Parties.ReadyTimeout = true, 4, time.Minute
	want.Games.Reconnect, want.Games.KeepAliveInterval, want.Games.KeepAlive, want.Games.AbsoluteTimeout = ReconnectOff, 30*time.Second, 30*time.Second, 0
	want.Penalties.DodgeSteps = []time.Duration{0, 90 * time.Second}
	want.Queues = c.Queues
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
	ranked := want.Games.Rules
	ranked.Reconnect, ranked.KeepAlive, ranked.DenyTakeover, ranked.AbsoluteTimeout = ReconnectRequired, 0, true, time.Hour
	if got := c.RulesOf("ranked"); got != ranked {
		t.Errorf("rules of the queue: %+v, want %+v", got, ranked)
	}
	if got := c.RulesOf("other"); got != want.Games.Rules {
		t.Errorf("rules of another queue: %+v, want the service's", got)
	}
	if q, ok := c.Queue("ranked"); !ok || q.PartyMax != 5 || q.ClientVersions[0] != "2" {
		t.Errorf("queue: %+v, %v", q, ok)
	}
	again, wrong := base.With(c.Document())
	if len(wrong) > 0 || !reflect.DeepEqual(again, c) {
		t.Errorf("read back: %v\ngot  %+v\nwant %+v", wrong, again, c)
	}
}

// Every option is in the document, under its own name, and its default makes sense.
func TestDocumentHasEveryOption(t *testing.T) {
	c := DefaultConfig()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	var document map[string]json.RawMessage
	if err := json.Unmarshal([]byte(c.Document()), &document); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, o := range Options() {
		if seen[o.Path()] {
			t.Errorf("%s is given twice", o.Path())
		}
		seen[o.Path()] = true
		if !Says(c.Document(), &o) {
			t.Errorf("%s is not in the document", o.Path())
		}
		if !strings.HasSuffix(o.Note, ".") {
			t.Errorf("%s does not say in sentences what it does: %q", o.Path(), o.Note)
		}
		if o.When == ForNewGames && !o.Queue {
			t.Errorf("%s is a rule of games that no queue can have its own of", o.Path())
		}
	}
}

func TestDocumentFaults(t *testing.T) {
	for _, test := range []struct{ document, want string }{
		{``, "want a JSON object"},
		{`[]`, "want a JSON object"},
		{`{"x": {}}`, "x: there is no such section; want SessionServiceConfig, "},
		{`{"queues": [], "queues": []}`, "queues: is given twice"},
		{`{} {}`, "want nothing after the object"},
		{`{"PartyServiceConfig": {"maxMembers": 1`, `EOF`},
		{`{"PartyServiceConfig": 7}`, "PartyServiceConfig: want a JSON object"},
		{`{"PartyServiceConfig": {"maxmembers": 1}}`, "PartyServiceConfig.maxmembers: there is no such option"},
		{`{"PartyServiceConfig": {"maxMembers": 1, "maxMembers": 2}}`, "PartyServiceConfig.maxMembers: is given twice"},
		{`{"PartyServiceConfig": {"maxMembers": "1"}}`, `PartyServiceConfig.maxMembers: "1", want a whole number (1 to 100)`},
		{`{"PartyServiceConfig": {"maxMembers": 1.5}}`, `PartyServiceConfig.maxMembers: 1.5, want a whole number (1 to 100)`},
		{`{"PartyServiceConfig": {"maxMembers": null}}`, `PartyServiceConfig.maxMembers: null, want a whole number (1 to 100)`},
		{`{"PartyServiceConfig": {"maxMembers": 101}}`, `PartyServiceConfig.maxMembers: 101, want 1 to 100`},
		{`{"PartyServiceConfig": {"leaderMode": "BOTH"}}`, `PartyServiceConfig.leaderMode: "BOTH", want one of SINGLE, MULTIPLE`},
		{`{"PartyServiceConfig": {"leaderMode": null}}`, `PartyServiceConfig.leaderMode: null, want one of SINGLE, MULTIPLE`},
		{`{"PartyServiceConfig": {"requireReady": "yes"}}`, `PartyServiceConfig.requireReady: "yes", want true or false`},
		{`{"PartyServiceConfig": {"leaderGrace": 30}}`, `PartyServiceConfig.leaderGrace: 30, want a time such as "10s", "15m" or "1h30m" (0s to 10m)`},
		{`{"PartyServiceConfig": {"leaderGrace": "11m"}}`, `PartyServiceConfig.leaderGrace: "11m", want 0s to 10m`},
		{`{"PartyServiceConfig": {"leaderGrace": "1us"}}`, `PartyServiceConfig.leaderGrace: "1us", want a time`},
		{`{"PartyServiceConfig": {"supportedClientVersions": [""]}}`, `PartyServiceConfig.supportedClientVersions: [""], want at most`},
		{`{"PenaltyServiceConfig": {"dodgeSteps": []}}`, `PenaltyServiceConfig.dodgeSteps: [], want 1 to 20 times`},
		{`{"PenaltyServiceConfig": {"dodgeSteps": ["1m", 5]}}`, `PenaltyServiceConfig.dodgeSteps: ["1m", 5], element 1: want a time`},
		{`{"SessionServiceConfig": {"pingInterval": "20s"}}`, `SessionServiceConfig.deadAfter: "25s", want at least twice pingInterval, which is 20s`},
		{`{"SessionServiceConfig": {"tokenRotation": "45m"}}`, `SessionServiceConfig.tokenRotation: there is no such option`},
		{`{"GameInstanceServiceConfig": {"keepAliveInterval": "1h"}}`, `GameInstanceServiceConfig.keepAliveInterval: "1h", want 1s to 2m`},
		{`{"queues": {}}`, `queues: {}, want a list`},
		{`{"queues": [{}]}`, `queues[0].name: empty`},
		{`{"queues": [{"name": "a"}, {"name": "a"}]}`, `queues[1].name: "a" is in the list twice`},
		{`{"queues": [{"name": "a", "maxParty": 11}]}`, `queues[0].maxParty: 11, want 1 to 10`},
		{`{"queues": [{"name": "a", "maxMembers": 4}]}`, `queues[0].maxMembers: there is no such option of a queue; want name,`},
		{`{"queues": [{"name": "a", "reconnectWindow": "3h"}]}`, `queues[0].reconnectWindow: "3h", want 0s to 2h`},
	} {
		base := DefaultConfig()
		got, wrong := base.With(test.document)
		if !strings.Contains(wrong.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.document, wrong, test.want)
		}
		if err := got.Validate(); err != nil {
			t.Errorf("%s: what is left makes no sense: %v", test.document, err)
		}
	}
}

// All that is wrong is named at once, and what is right beside it is taken.
func TestDocumentNamesAllFaults(t *testing.T) {
	base := DefaultConfig()
	c, wrong := base.With(`{"PartyServiceConfig": {"maxMembers": 0, "leaderGrace": "1s"}, "LoginServiceConfig": {"targetCcu": -1}, "queues": [{"name": ""}, {"name": "a"}]}`)
	if len(wrong) != 3 {
		t.Errorf("%d faults, want 3: %v", len(wrong), wrong)
	}
	want := DefaultConfig()
	want.Parties.LeaderGrace, want.Queues = time.Second, []QueueConfig{{Name: "a"}}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v\nwant %+v", c, want)
	}
}

func TestMergeDocuments(t *testing.T) {
	for _, test := range []struct{ document, change, want string }{
		{`{}`, `{}`, `{}`},
		{`{}`, `{"PartyServiceConfig": {"maxMembers": 4}}`, `{"PartyServiceConfig":{"maxMembers":4}}`},
		{`{"PartyServiceConfig": {"maxMembers": 4, "requireReady": true}}`, `{"PartyServiceConfig": {"maxMembers": 5}, "LoginServiceConfig": {"targetCcu": 1}}`,
			`{"LoginServiceConfig":{"targetCcu":1},"PartyServiceConfig":{"maxMembers":5,"requireReady":true}}`},
		{`{"PartyServiceConfig": {"maxMembers": 4, "requireReady": true}}`, `{"PartyServiceConfig": {"maxMembers": null}}`, `{"PartyServiceConfig":{"requireReady":true}}`},
		{`{"PartyServiceConfig": {"maxMembers": 4}}`, `{"PartyServiceConfig": {"maxMembers": null}}`, `{}`},
		{`{"PartyServiceConfig": {"maxMembers": 4}}`, `{"PartyServiceConfig": null}`, `{}`},
		{`{"queues": [{"name": "a"}]}`, `{"queues": [{"name": "b"}, {"name": "c"}]}`, `{"queues":[{"name":"b"},{"name":"c"}]}`},
		{`{"queues": [{"name": "a"}]}`, `{"queues": null}`, `{}`},
	} {
		if got, wrong := MergeDocuments(test.document, test.change); got != test.want || len(wrong) > 0 {
			t.Errorf("%s with %s: %s, %v, want %s", test.document, test.change, got, wrong, test.want)
		}
	}
	for _, change := range []string{`{"PartyServiceConfig": {"maxmembers": null}}`, `{"x": null}`, `{"x": {"y": null}}`, `{"PartyServiceConfig": 7}`} {
		if _, wrong := MergeDocuments(`{}`, change); len(wrong) != 1 {
			t.Errorf("%s: %v", change, wrong)
		}
	}
}

func FuzzDocument(f *testing.F) {
	c := DefaultConfig()
	f.Add(c.Document())
	f.Add(`{"queues": [{"name": "a", "reconnect": "OFF"}], "PartyServiceConfig": {"maxMembers": 1e1}}`)
	f.Fuzz(func(t *testing.T, document string) {
		got, wrong := c.With(document)
		if err := got.Validate(); err != nil {
			t.Fatal(err)
		}
		if len(wrong) > 0 {
			return
		}
		if again, wrong := c.With(got.Document()); len(wrong) > 0 || again.Document() != got.Document() {
			t.Fatalf("read back: %v: %s", wrong, again.Document())
		}
	})
}
