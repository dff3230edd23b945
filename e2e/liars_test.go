package e2e

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	"github.com/musterhq/muster/internal/linkclient"
)

func dialTCP(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// wantStatus checks the answer to a request that must not succeed.
func wantStatus(t *testing.T, what string, err error, statuses ...int) {
	t.Helper()
	status, ok := errors.AsType[*linkclient.StatusError](err)
	if !ok || !slices.Contains(statuses, status.Status) {
		t.Errorf("%s: got %v, want status %v", what, err, statuses)
	}
}

// Game servers that lie are refused, and no other session is affected.
func TestGameServersThatLie(t *testing.T) {
	t.Parallel()
	p := startService(t).prepare()
	ctx := t.Context()
	honest := p.dial("honest", "")
	id := honest.host(t, 4)
	psess := p.mustReserve(id, "p1")

	liar := p.dial("liar", "")
	wantStatus(t, "a session before being ready", liar.ActivateGameSession(ctx, id), 400, 403, 404)
	must(t, liar.Activate(ctx, 7778))
	must(t, liar.Heartbeat(ctx, true))
	wantStatus(t, "activating another's session", liar.ActivateGameSession(ctx, id), 403, 404)
	wantStatus(t, "activating a session that is not", liar.ActivateGameSession(ctx, id+"x"), 403, 404)
	wantStatus(t, "accepting another's player", liar.AcceptPlayer(ctx, id, psess), 403, 404)
	wantStatus(t, "removing another's player", liar.RemovePlayer(ctx, id, psess), 403, 404)
	wantStatus(t, "closing another's session", liar.SetPolicy(ctx, id, "DENY_ALL"), 403, 404)
	_, err := liar.Do(ctx, "MakeCoffee", "")
	wantStatus(t, "an unknown action", err, 400)
	_, err = liar.Do(ctx, "ActivateServerProcess", `"Port":"seven"`)
	wantStatus(t, "a port that is a word", err, 400)
	_, err = liar.Do(ctx, "UpdatePlayerSessionCreationPolicy", linkclient.GameSessionMembers(id)+`,"PlayerSessionPolicy":"NOT_SET"`)
	wantStatus(t, "a policy that is none", err, 400, 403, 404)

	// Garbage has no answer and does not end the connection.
	for _, garbage := range []string{"", "null", "[]", `"text"`, "{", `{"Action":"HeartbeatServerProcess"}`, strings.Repeat("x", 100_000)} {
		must(t, liar.Text(garbage))
	}
	must(t, liar.Heartbeat(ctx, true))

	got := p.gameSession(id)
	if got.Status != types.GameSessionStatusActive || aws.ToInt32(got.CurrentPlayerSessionCount) != 1 ||
		got.PlayerSessionCreationPolicy != types.PlayerSessionCreationPolicyAcceptAll {
		t.Errorf("the honest server's session: got %+v", got)
	}
	must(t, honest.AcceptPlayer(ctx, id, psess))
	must(t, liar.Terminate(ctx))
	must(t, liar.Terminate(ctx)) // again is no error
	if got := p.gameSession(id).Status; got != types.GameSessionStatusActive {
		t.Errorf("after the liar's end the honest session is %s", got)
	}
}

// Each copy of a request gets an answer, and all together have one effect, on this connection and on another.
func TestRepeatedRequests(t *testing.T) {
	t.Parallel()
	p := startService(t).prepare()
	server := p.dial("process-1", "")
	id := server.host(t, 4)
	psess := p.mustReserve(id, "p1")
	const request = "abcdefabcdefabcdefabcdefabcdefab"
	for range 2 {
		_, err := server.DoWithID(t.Context(), request, "AcceptPlayerSession", linkclient.PlayerMembers(id, psess))
		must(t, err)
	}
	must(t, server.RemovePlayer(t.Context(), id, psess))
	first := server.Client
	server.connect() // in addition to the first
	for _, link := range []*linkclient.Client{first, server.Client} {
		if _, err := link.DoWithID(t.Context(), request, "AcceptPlayerSession", linkclient.PlayerMembers(id, psess)); err != nil {
			t.Errorf("a copy after the player left: %v, want the first answer", err)
		}
	}
	if got := p.playerSession(psess).Status; got != types.PlayerSessionStatusCompleted {
		t.Errorf("the copies had an effect: the player is %s", got)
	}
}

// A flood from one game server is slowed down or refused; others do not notice.
func TestFloodingGameServer(t *testing.T) {
	t.Parallel()
	p := startService(t).prepare()
	honest := p.dial("honest", "")
	id := honest.host(t, 100)
	flood := p.dial("flood", "")
	must(t, flood.Activate(t.Context(), 7778))
	stop := make(chan struct{})
	flooded := make(chan struct{})
	go func() {
		defer close(flooded)
		for {
			select {
			case <-stop:
				return
			default:
				if flood.Text(`{"Action":"HeartbeatServerProcess","RequestId":"x","HealthStatus":true}`) != nil {
					return // the service closed its connection
				}
			}
		}
	}()
	for range 50 {
		psess := p.mustReserve(id, "p")
		must(t, honest.AcceptPlayer(t.Context(), id, psess))
		must(t, honest.RemovePlayer(t.Context(), id, psess))
	}
	close(stop)
	flood.Drop()
	<-flooded
	p.staysHealthy()
}

// The service ends connections without a close frame when it stops: a close frame would strand C++ and old Go servers.
func TestNoCloseFrameAtTheEnd(t *testing.T) {
	t.Parallel()
	p := startService(t).prepare()
	closed := make(chan error, 1)
	opt := linkclient.Options{URL: p.ws(), Process: "process-1", Compute: p.compute, Fleet: p.fleet, Token: p.token,
		OnClose: func(_ *linkclient.Client, err error) { closed <- err }}
	_, err := linkclient.Dial(t.Context(), opt)
	must(t, err)
	p.stop()
	if err := <-closed; err == nil || isError[*linkclient.CloseError](err) {
		t.Errorf("the connection ended with %v, want no close frame", err)
	}
}

// The forms in which other SDKs write the address and identify themselves.
func TestConnectionsOfOtherSDKs(t *testing.T) {
	t.Parallel()
	p := startService(t).prepare()
	for name, opt := range map[string]linkclient.Options{
		"C++, path with a slash":    {URL: p.ws() + "/some/path/", SDKLanguage: "Cpp", SDKVersion: "5.4.0"},
		"C#, path without":          {URL: p.ws() + "/some/path", SDKLanguage: "CSharp", SDKVersion: "5.4.0"},
		"Go 5.0, no idempotency":    {Query: "pID=old&sdkVersion=5.0.0&sdkLanguage=Go&Authorization=" + p.token + "&ComputeId=" + p.compute + "&FleetId=" + p.fleet},
		"unknown parameters":        {Query: "pID=new&sdkVersion=9.0.0&sdkLanguage=Rust&Authorization=" + p.token + "&ComputeId=" + p.compute + "&FleetId=" + p.fleet + "&Extra=1"},
		"plus and percent in pID":   {Query: "pID=a+b%2Bc&sdkVersion=5.4.0&sdkLanguage=Cpp&Authorization=" + p.token + "&ComputeId=" + p.compute + "&FleetId=" + p.fleet},
		"a process id with a slash": {URL: p.ws(), Process: "game/1"},
	} {
		if opt.URL == "" {
			opt.URL = p.ws()
		}
		opt.Compute, opt.Fleet, opt.Token = p.compute, p.fleet, p.token
		if opt.Process == "" {
			opt.Process = "process-" + strings.ToLower(opt.SDKLanguage)
		}
		c, err := linkclient.Dial(t.Context(), opt)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := c.Activate(t.Context(), 7777); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		c.Drop()
	}
	for name, c := range map[string]struct {
		query  string
		status int
	}{
		"no process":    {"sdkVersion=5.4.0&sdkLanguage=Go&Authorization=" + p.token + "&ComputeId=" + p.compute + "&FleetId=" + p.fleet, 400},
		"another fleet": {"pID=p&sdkVersion=5.4.0&sdkLanguage=Go&Authorization=" + p.token + "&ComputeId=" + p.compute + "&FleetId=fleet-1", 403},
		"no token":      {"pID=p&sdkVersion=5.4.0&sdkLanguage=Go&ComputeId=" + p.compute + "&FleetId=" + p.fleet, 403},
	} {
		_, err := linkclient.Dial(t.Context(), linkclient.Options{URL: p.ws(), Query: c.query})
		if refusal, ok := errors.AsType[*linkclient.RefusedError](err); !ok || refusal.Status != c.status {
			t.Errorf("%s: got %v, want %d", name, err, c.status)
		}
	}
}
