package playerapi

import (
	"crypto/tls"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
	"github.com/musterhq/muster/internal/playerapi/calls"
	"github.com/musterhq/muster/internal/playerapi/objects"
)

// The roles besides admin that may make a call of trusted servers or operators. Each call is in one of these lists.
const (
	ofBackends = "a backend"
	ofServers  = "a backend, and the server of the game"
	ofLookers  = "a backend, and who looks"
	ofAdmins   = "an operator"
	ofWatchers = "an operator, and who looks"
	ofProcess  = "whoever shows what the process has" // the proof is in the body
)

// TestRoles makes every call of both realms with every principal. A call that is added needs a line here.
func TestRoles(t *testing.T) {
	const own, other, player = "gi-00000000-0000-4000-8000-000000000001", "gi-00000000-0000-4000-8000-000000000002", `"player_id":"ann"`
	all := map[string]struct{ may, body string }{
		"partner/Events.List":               {ofBackends, ``},
		"partner/Events.Subscribe":          {ofBackends, ``},
		"partner/Events.Unsubscribe":        {ofBackends, `"subscription_id":"evs-00000000-0000-4000-8000-000000000001"`},
		"partner/Flow.CreateGameInstance":   {ofBackends, `"queue":"q","players":[{"player_id":"ann"}]`},
		"partner/Flow.GetPlayers":           {ofLookers, `"player_ids":["ann"]`},
		"partner/Flow.SetBlocks":            {ofBackends, player + `,"blocked":[]`},
		"partner/Flow.SetPlayerAttributes":  {ofBackends, player + `,"attributes":{}`},
		"partner/Flow.ShutDownParty":        {ofBackends, `"party_id":"pty-00000000-0000-4000-8000-000000000001"`},
		"partner/Game.AddPlayers":           {ofServers, `"players":[{"player_id":"ann"}]`},
		"partner/Game.EndGame":              {ofServers, ``},
		"partner/Game.EnterMatchmaking":     {ofServers, ``},
		"partner/Game.GetStartData":         {ofServers, ``},
		"partner/Game.KeepAlive":            {ofServers, ``},
		"partner/Game.LeaveMatchmaking":     {ofServers, ``},
		"partner/Game.PlayerConnected":      {ofServers, `"player_session_id":"psess-00000000-0000-4000-8000-000000000001"`},
		"partner/Game.PlayerDisconnected":   {ofServers, `"player_session_id":"psess-00000000-0000-4000-8000-000000000001","reason":"QUIT"`},
		"partner/Game.Ready":                {ofServers, ``},
		"partner/Game.ReleasePlayers":       {ofServers, `"player_ids":["ann"]`},
		"partner/Game.RemovePlayers":        {ofServers, `"players":[{"player_id":"ann","reason":"KICKED"}]`},
		"partner/Game.Update":               {ofServers, ``},
		"partner/Game.VerifyPlayer":         {ofServers, `"player_session_id":"psess-00000000-0000-4000-8000-000000000001","connection_token":"x"`},
		"partner/Identity.IssueLoginTicket": {ofBackends, player},
		"partner/Server.Exchange":           {ofProcess, `"auth_token":"x","process_id":"p","game_session_id":"g"`},
		"operator/Operator.Audit":           {ofWatchers, ``},
		"operator/Operator.BanPlayer":       {ofAdmins, player + `,"banned":false`},
		"operator/Operator.ClearPenalty":    {ofAdmins, player + `,"kind":"AFK"`},
		"operator/Operator.Drain":           {ofAdmins, `"drain":false`},
		"operator/Operator.ExplainStuck":    {ofWatchers, player},
		"operator/Operator.ForceEnd":        {ofAdmins, `"game_instance_id":"` + own + `"`},
		"operator/Operator.ForceLogout":     {ofAdmins, player},
		"operator/Operator.ForceRelease":    {ofAdmins, player + `,"keys":["PARTY_ID"]`},
		"operator/Operator.GetConfig":       {ofWatchers, ``},
		"operator/Operator.GetPlayer":       {ofWatchers, player},
		"operator/Operator.ListPlayers":     {ofWatchers, ``},
		"operator/Operator.SetConfig":       {ofAdmins, `"config":{}`},
		"operator/Operator.SetPenalty":      {ofAdmins, player + `,"kind":"AFK"`},
		"operator/Operator.SetQueue":        {ofAdmins, `"queue":"q","open":true`},
		"operator/Operator.ShutDownParty":   {ofAdmins, `"party_id":"pty-00000000-0000-4000-8000-000000000001"`},

		"operator/Operator.AnnounceMaintenance": {ofAdmins, `"message":"soon","starts_at":"` + time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + `"`},
	}
	x := newLobby(t, nil)
	for _, r := range []*calls.Realm{x.door.partner, x.door.operator} {
		for _, path := range slices.Sorted(maps.Keys(r.Classes())) {
			if _, ok := all[strings.TrimPrefix(path, objects.Prefix)]; !ok {
				t.Errorf("%s: nothing says here who may make this call", path)
			}
		}
	}
	tokens := map[string]string{"nobody": "", "somebody": "MUSTNOTAKEY.secret", "a player": x.login("ann")}
	for name, role := range map[string]identity.Role{
		"admin": identity.Admin, "backend": identity.Backend, "client": identity.Client, "readonly": identity.ReadOnly, "revoked": identity.Admin,
	} {
		key, err := x.keys.Create(t.Context(), access.Actor{}, keyring.New{Role: role})
		if err != nil {
			t.Fatal(err)
		}
		tokens[name] = key.ID + "." + key.Secret
		if name == "revoked" {
			if _, err := x.keys.Revoke(t.Context(), access.Actor{}, key.ID, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	server := func(of string) string {
		return "pgs_" + of + "_" + x.keys.CellSecret().PartnerToken(of)
	}
	tokens["the server"], tokens["another server"], tokens["no server"] = server(own), server(other), "pgs_"+own+"_guessed"
	allowed := map[string][]string{
		ofBackends: {"backend"}, ofServers: {"backend", "the server"}, ofLookers: {"backend", "readonly"}, ofAdmins: nil, ofWatchers: {"readonly"},
		ofProcess: slices.Collect(maps.Keys(tokens)),
	}
	for name, call := range all {
		for who, token := range tokens {
			body := `{` + call.body + `}`
			switch {
			case call.may == ofServers: // a backend names the game, and a server's token is for its own
				body = strings.Replace(`{"game_instance_id":"`+own+`",`+call.body+`}`, `,}`, `}`, 1)
			case strings.HasPrefix(name, "operator/"):
				body = strings.Replace(`{"reason":"test",`+call.body+`}`, `,}`, `}`, 1)
			}
			realm := x.door.Partner()
			if strings.HasPrefix(name, "operator/") {
				realm = x.door.Operator()
			}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, objects.Prefix+name, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.TLS = &tls.ConnectionState{}
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			w := httptest.NewRecorder()
			realm.ServeHTTP(w, r)
			may := who == "admin" || slices.Contains(allowed[call.may], who)
			denied := w.Code == http.StatusUnauthorized || w.Code == http.StatusForbidden
			switch {
			case may && denied && call.may != ofProcess, !may && !denied:
				t.Errorf("%s as %s: %d %s", name, who, w.Code, w.Body)
			case may && w.Code == http.StatusBadRequest && !strings.Contains(w.Body.String(), `"code":"INVALID_ARGUMENT"`), w.Code == http.StatusUnprocessableEntity:
				t.Errorf("%s as %s: a body that does not fit shows nothing: %d %s", name, who, w.Code, w.Body)
			}
		}
	}
	// None of these is a player.
	for who, token := range tokens {
		if who != "a player" {
			x.wants(401, map[bool]string{true: "UNAUTHENTICATED", false: "SESSION_NOT_FOUND"}[token == ""])(x.call(token, "Session.GetFlow", "{}"))
		}
	}
}
