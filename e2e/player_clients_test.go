package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"os"
	"testing"

	"github.com/musterhq/muster/gameclient"
	"github.com/musterhq/muster/internal/waittest"
)

// libraryPlayer is a player with our own library.
type libraryPlayer struct {
	t *testing.T
	*gameclient.Player
}

func (s *service) loginLibrary(t *testing.T, name string, change ...func(*gameclient.PlayerOptions)) *libraryPlayer {
	t.Helper()
	o := gameclient.PlayerOptions{Endpoint: s.url(), Provider: gameclient.ProviderDev, Token: gameclient.DevToken(name)}
	for _, f := range change {
		f(&o)
	}
	p, err := gameclient.Login(t.Context(), o)
	must(t, err)
	t.Cleanup(p.Close)
	return &libraryPlayer{t, p}
}

// await reads events until one fits. The events of a player have no gap.
func (p *libraryPlayer) await(kind gameclient.EventType, fits func(gameclient.Event) bool) gameclient.Event {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	for {
		e, err := p.Await(ctx, kind)
		if err != nil {
			p.t.Fatalf("%s waits for %s: %v", p, kind, err)
		}
		if fits == nil || fits(e) {
			return e
		}
	}
}

func becomes(status gameclient.MembershipStatus) func(gameclient.Event) bool {
	return func(e gameclient.Event) bool { return e.New == status }
}

// wholeStory plays two players with the library, from the party to the end of the game, with a crash of one of them.
func wholeStory(t *testing.T, p *place, change ...func(*gameclient.PlayerOptions)) {
	p.queue("duo")
	p.matchOf("duo", "2")
	server := p.ready(sdkOptions{})
	ann, bob := p.loginLibrary(t, "ann", change...), p.loginLibrary(t, "bob", change...)
	party, err := ann.CreateParty(t.Context(), gameclient.CreatePartyRequest{})
	must(t, err)
	_, err = bob.JoinPartyByCode(t.Context(), party.InviteCode, gameclient.OnExistingFail)
	must(t, err)
	_, err = bob.JoinPartyByCode(t.Context(), party.InviteCode, gameclient.OnExistingFail)
	if refused, ok := errors.AsType[*gameclient.FlowError](err); !ok || refused.Code != "ALREADY_IN_PARTY" {
		t.Errorf("joining twice: %v", err)
	}
	for _, player := range []*libraryPlayer{ann, bob} {
		_, err := player.SetReady(t.Context(), true)
		must(t, err)
	}
	// A player without a stream or a poll is offline, and the party cannot search.
	waittest.Until(t, "both to be online", func() bool { return ann.Online() && bob.Online() })
	_, err = ann.EnterMatchmaking(t.Context(), "duo")
	must(t, err)
	for _, player := range []*libraryPlayer{ann, bob} {
		must(t, player.AnswerMatch(t.Context(), player.await(gameclient.OnMatchFound, nil).SearchID, true))
	}
	server.untilEvent("start", 1)
	server.must("activate")
	seats := map[*libraryPlayer]string{}
	for _, player := range []*libraryPlayer{ann, bob} {
		seats[player] = player.await(gameclient.OnHostConnectionDetailsReceived, nil).Host.PlayerSessionID
		server.must("accept", seats[player])
		player.await(gameclient.OnGameMembershipChanged, becomes(gameclient.MembershipActive))
	}
	if err := bob.LeaveParty(gameclient.IfRev(t.Context(), party.Rev+1000)); !errors.Is(err, gameclient.ErrWrongStatus) {
		t.Errorf("with an old picture bob leaves: %v", err)
	}

	bob.Close()
	server.must("remove", seats[bob])
	bob = p.loginLibrary(t, "bob", change...)
	if bob.AtLogin.Game == nil || bob.AtLogin.Game.Membership.Status != gameclient.MembershipDisconnected {
		t.Fatalf("at the login: %+v", bob.AtLogin)
	}
	details, err := bob.Reconnect(t.Context())
	must(t, err)
	server.must("accept", details.PlayerSessionID)
	bob.await(gameclient.OnGameMembershipChanged, becomes(gameclient.MembershipActive))
	must(t, bob.Refresh(t.Context()))
	p.partner(t, "Game.EndGame", object{"game_instance_id": details.GameInstanceID, "result": object{"winner": "all"}})
	for _, player := range []*libraryPlayer{ann, bob} {
		if e := player.await(gameclient.OnRemovedFromGame, nil); e.Reason != "GAME_ENDED" {
			t.Errorf("%s is removed: %s", player, e.Reason)
		}
	}
	must(t, bob.LeaveParty(t.Context())) // with the token that the refresh gave
	must(t, ann.Logout(t.Context()))
	p.noViolations(t)
}

// The whole story works by long polling where WebSockets are blocked.
func TestPlayersByLongPoll(t *testing.T) {
	t.Parallel()
	wholeStory(t, startFlow(t), func(o *gameclient.PlayerOptions) { o.LongPoll = true })
}

// Calls and stream over TLS, with the authority that the client trusts.
func TestPlayersOverTLS(t *testing.T) {
	t.Parallel()
	p := startFlow(t)
	pem, err := os.ReadFile(p.authority())
	must(t, err)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		t.Fatalf("no certificate in %s", pem)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	t.Cleanup(client.CloseIdleConnections)
	wholeStory(t, p, func(o *gameclient.PlayerOptions) { o.Endpoint, o.HTTPClient = "https://"+p.address, client })
}
