package playerapi

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/logtest"
	"github.com/musterhq/muster/internal/playerapi/objects"
)

// desk makes calls as an operator.
type desk struct {
	*lobby
	key identity.AccessKey
	log logtest.Log
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	x := &desk{}
	x.lobby = newLobby(t, func(c *Config) { c.Transport, c.Log = behindTLS, slog.New(slog.NewTextHandler(&x.log, nil)) })
	var err error
	if x.key, err = x.keys.Create(t.Context(), access.Actor{}, keyring.New{Role: identity.Admin, Name: "operator"}); err != nil {
		t.Fatal(err)
	}
	return x
}

// operate makes one call of an operator.
func (x *desk) operate(name, body string) (int, map[string]any) {
	x.Helper()
	return x.send(x.door.Operator(), x.key.ID+"."+x.key.Secret, objects.OperatorPrefix+"Operator."+name, body)
}

// TestEveryOperatorCallNeedsAReason: no call is executed without a reason, and each call's document says so.
func TestEveryOperatorCallNeedsAReason(t *testing.T) {
	x := newDesk(t)
	document, err := x.door.operator.Document()
	if err != nil {
		t.Fatal(err)
	}
	var api struct {
		Paths map[string]struct {
			Post *struct {
				RequestBody struct {
					Content map[string]struct {
						Schema struct {
							Ref string `json:"$ref"`
						}
					}
				}
			}
		}
		Components struct {
			Schemas map[string]struct {
				Required   []string
				Properties map[string]struct{ MinLength int }
			}
		}
	}
	if err := json.Unmarshal(document, &api); err != nil {
		t.Fatal(err)
	}
	calls := 0
	for path, p := range api.Paths {
		if p.Post == nil || !strings.HasPrefix(path, objects.OperatorPrefix) {
			continue
		}
		calls++
		name := p.Post.RequestBody.Content["application/json"].Schema.Ref
		schema := api.Components.Schemas[name[strings.LastIndex(name, "/")+1:]]
		if reason := schema.Properties["reason"]; !strings.Contains(fmt.Sprint(schema.Required), "reason") || reason.MinLength < 1 {
			t.Errorf("%s does not need a reason: %+v", path, schema)
		}
		for _, body := range []string{`{}`, `{"reason":""}`, `{"reason":"  "}`} {
			o := x.wants(400, "INVALID_ARGUMENT")(x.operate(strings.TrimPrefix(path, objects.OperatorPrefix+"Operator."), body))
			if message, _ := o["message"].(string); !strings.Contains(message, "reason") {
				t.Errorf("%s with %s: %v", path, body, o)
			}
		}
	}
	if calls < 12 {
		t.Errorf("the document has %d calls of operators", calls)
	}
	if text := x.log.String(); strings.Contains(text, "operator call") {
		t.Errorf("a call without a reason was carried out: %s", text)
	}
	x.login("ann")
	x.wants(200, "")(x.operate("GetPlayer", `{"reason":"she asked why","player_id":"ann"}`))
	for _, want := range []string{"operator call", "call=Operator.GetPlayer", "principal=" + x.key.ID, `reason="she asked why"`} {
		if text := x.log.String(); !strings.Contains(text, want) {
			t.Errorf("the log does not say %s: %s", want, text)
		}
	}
}

// TestGetPlayerTellsWhatHappened: the answer has commits with cause and caller, and the coming timers.
func TestGetPlayerTellsWhatHappened(t *testing.T) {
	x := newDesk(t)
	token := x.login("ann")
	x.wants(200, "")(x.call(token, "Party.CreateParty", `{}`))
	x.wants(200, "")(x.operate("ForceRelease", `{"reason":"stuck","player_id":"ann","keys":["PARTY_ID"]}`))
	x.wants(200, "")(x.call(token, "Party.CreateParty", `{}`))
	story := func(commits int) string {
		answer := x.wants(200, "")(x.operate("GetPlayer", fmt.Sprintf(`{"reason":"look","player_id":"ann","commits":%d}`, commits)))
		var lines []string
		for _, c := range answer["commits"].([]any) {
			c := c.(map[string]any)
			caller := c["caller"].(map[string]any)
			if c["commit"].(float64) < 1 || c["at"] == "" || caller["id"] == "" {
				t.Errorf("commit %v", c)
			}
			lines = append(lines, fmt.Sprintf("%v %v %v by %v", c["rev"], c["phase"], c["cause"], caller["kind"]))
		}
		if len(answer["timers"].([]any)) == 0 {
			t.Errorf("there are no timers: %v", answer)
		}
		return strings.Join(lines, ", ")
	}
	if got, want := story(0), "3 IN_PARTY CreateParty by PLAYER, 2 IDLE ForceRelease by OPERATOR, 1 IN_PARTY CreateParty by PLAYER"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := story(1), "3 IN_PARTY CreateParty by PLAYER"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	x.wants(404, "PLAYER_NOT_FOUND")(x.operate("GetPlayer", `{"reason":"look","player_id":"bob"}`))
}

// TestListPlayersFiltersAndPages goes through all pages of each filter. The players are offline, so the whole test takes less
// than the two minutes after which a party would remove them.
func TestListPlayersFiltersAndPages(t *testing.T) {
	x := newDesk(t)
	for _, player := range []string{"a", "b", "c"} {
		token := x.login(player)
		if player != "a" {
			x.wants(200, "")(x.call(token, "Party.CreateParty", `{}`))
			x.pass(50 * time.Second)
		}
	}
	for filter, want := range map[string]string{
		``: "a b c", `"phase":"IN_PARTY",`: "b c", `"phase":"IN_GAME",`: "", `"phase":"IN_PARTY","older_than_ms":90000,`: "b", `"host_lost":true,`: "", `"host_lost":false,`: "a b c",
	} {
		var names []string
		after := 0.0
		for {
			answer := x.wants(200, "")(x.operate("ListPlayers", fmt.Sprintf(`{"reason":"look",%s"limit":1,"after":%v}`, filter, after)))
			for _, p := range answer["players"].([]any) {
				names = append(names, p.(map[string]any)["player_id"].(string))
			}
			next, more := answer["next"].(float64)
			if !more {
				break
			}
			after = next
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: got %q, want %q", filter, got, want)
		}
	}
	if status, _ := x.operate("ListPlayers", `{"reason":"look","phase":"LOST"}`); status != http.StatusBadRequest {
		t.Errorf("an unknown phase gets status %d", status)
	}
}

// The log of operators' calls has their parameters, even where a field may be absent.
func TestOperatorCallsAreLoggedAsAsked(t *testing.T) {
	x := newDesk(t)
	x.wants(200, "")(x.operate("Drain", `{"reason":"it is over","drain":false}`))
	x.wants(200, "")(x.operate("ListPlayers", `{"reason":"who waits","host_lost":true}`))
	for _, want := range []string{`\"drain\":false`, `\"host_lost\":true`} {
		if text := x.log.String(); !strings.Contains(text, want) {
			t.Errorf("the log does not say %s: %s", want, text)
		}
	}
}
