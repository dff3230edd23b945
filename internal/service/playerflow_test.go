package service

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/playerapi/authentication"
	"github.com/musterhq/muster/internal/settings"
)

// An operator who forgets the flag must not be led to look for the mistake in the signature of AWS requests.
func TestPlayerFlowIsOff(t *testing.T) {
	answer := httptest.NewRecorder()
	(&router{}).ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/playerflow/v1/player/Session.Login", strings.NewReader("{}")))
	if answer.Code != http.StatusNotFound || !strings.Contains(answer.Body.String(), "--player-flow") {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
}

// A reload of other settings keeps the identity provider of players with the keys that were fetched from it: it may be down.
func TestReloadKeepsTheKeysOfPlayers(t *testing.T) {
	var x Service
	s := settings.Settings{PlayerOIDCIssuer: "https://id.example.com", PlayerOIDCAudience: "game"}
	provider := func() authentication.Provider {
		t.Helper()
		oidc, err := x.playersOIDC.with(s)
		if err != nil {
			t.Fatal(err)
		}
		c, err := x.changeable(s, oidc)
		if err != nil {
			t.Fatal(err)
		}
		x.playersOIDC = oidc
		return c.Logins.Providers["oidc"]
	}
	first := provider()
	s.PlayerLoginsPerAddress++
	if first == nil || provider() != first {
		t.Error("another setting has replaced the provider")
	}
	s.PlayerOIDCAudience = "game other"
	if second := provider(); second == nil || second == first {
		t.Error("the new audience is not in force")
	}
}

// An operator who reads the log a day later must not overlook that clients can log in as any player.
func TestWarningOfDevLogins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		var closed atomic.Bool
		go func() {
			defer close(done)
			warnOfDevLogins(ctx, slog.New(slog.NewTextHandler(&out, nil)), func() bool { return !closed.Load() })
		}()
		time.Sleep(10*time.Minute + time.Second)
		closed.Store(true) // a reload has named an identity provider
		time.Sleep(10 * time.Minute)
		stop()
		<-done
		if got := strings.Count(out.String(), "level=WARN"); got != 11 {
			t.Errorf("%d warnings in ten minutes, want one a minute and the first: %s", got, out.String())
		}
	})
}
