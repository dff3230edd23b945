package operator

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosts"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/enginetest"
	"github.com/musterhq/muster/internal/identity"
)

func (o *office) join(token, name string, key byte) string {
	o.Helper()
	join := &hosts.Join{Token: token, Hash: "h", Name: name, Key: []byte(fmt.Sprintf("%032d", key))}
	o.do(join)
	return join.Host.ID
}

// A refusal on a full disk names the disk to operators.
func TestRefusalNamesTheFullDisk(t *testing.T) {
	e := enginetest.Open(t, engine.Config{Cell: cell.DefaultConfig(), Short: func() error {
		return errors.New("no space left on the disk of /data: 1 MiB are free, and 64 MiB must be free")
	}})
	door := NewDoor(Config{Engine: e, Log: slog.New(slog.DiscardHandler), Authenticate: func(*http.Request, []byte) (identity.Principal, int, error) {
		return identity.Principal{ID: "MUSTX", Role: identity.Admin}, http.StatusOK, nil
	}})
	r := httptest.NewRequest(http.MethodPost, Prefix+"hosts/rack-1/revoke", strings.NewReader("{}"))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	door.ServeHTTP(w, r)
	want := "the service has no room to record changes at the moment: no space left on the disk of /data: 1 MiB are free, and 64 MiB must be free"
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), want) {
		t.Errorf("%d %s, want %s", w.Code, w.Body, want)
	}
	err := e.Do(t.Context(), &hosts.Revoke{Host: "rack-1"})
	if refusal, ok := errors.AsType[*domain.Refusal](err); !ok || strings.Contains(refusal.Detail, "/data") {
		t.Errorf("other callers are told the directory: %v", err)
	}
}

// One call ends what a stolen join token has let in, also when the token is used up. It can be repeated.
func TestTokenIsRevokedWithItsHosts(t *testing.T) {
	o := newOffice(t)
	for token, uses := range map[string]uint32{"stolen": 2, "open": 5, "good": 2} {
		o.do(&hosts.IssueToken{ID: token, Hash: "h", Location: "custom-a", Uses: uses, Valid: hosts.ValidMax})
	}
	first, second := o.join("stolen", "rack-1", 1), o.join("stolen", "rack-2", 2)
	third, stays := o.join("open", "rack-3", 3), o.join("good", "rack-4", 4)
	o.do(&hosts.Revoke{Host: first})
	o.do(&hosts.IssueToken{ID: "next", Hash: "h", Location: "custom-a", Uses: 1, Valid: hosts.ValidMax}) // the record of the stolen token goes, which is used up

	revoke := func(token string, status int, want ...string) {
		t.Helper()
		r := httptest.NewRequest(http.MethodPost, Prefix+"hosts/tokens/"+token+"/revoke-hosts", strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		o.door.ServeHTTP(w, r)
		var done HostsRevoked
		if err := json.Unmarshal(w.Body.Bytes(), &done); err != nil || w.Code != status || !slices.Equal(done.Hosts, want) {
			t.Errorf("%s: %d %s, want %d and %v", token, w.Code, w.Body, status, want)
		}
	}
	revoke("stolen", http.StatusOK, second)
	revoke("stolen", http.StatusOK)
	revoke("open", http.StatusOK, third)
	revoke("next", http.StatusOK)
	revoke("none", http.StatusNotFound)

	_, body := o.ask("hosts")
	var list HostList
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatal(err)
	}
	tokens := map[string]string{first: "stolen", second: "stolen", third: "open", stays: "good"}
	for _, h := range list.Hosts {
		if h.JoinToken != tokens[h.ID] {
			t.Errorf("host %s has joined with %s, want %s", h.Name, h.JoinToken, tokens[h.ID])
		}
		if revoked := h.ID != stays; (h.State == "revoked") != revoked || h.Revoked.IsZero() == revoked {
			t.Errorf("host %s of token %s is %s", h.Name, h.JoinToken, h.State)
		}
	}
	if len(list.Tokens) != 1 || list.Tokens[0].ID != "good" || len(list.Hosts) != 4 {
		t.Errorf("left: %+v", list)
	}
}
