package e2e

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/internal/linkclient"
	"github.com/musterhq/muster/internal/waittest"
)

// productionPlace returns a place in a service without --dev, with an access key for game servers that sign.
func productionPlace(t *testing.T, args ...string) (p *place, admin *gamelift.Client, keyID, secret string) {
	t.Helper()
	s := newService(t, append(args, "--dev=false")...)
	keyID, secret = s.key("admin")
	s.start()
	s.client = s.apiWith(keyID, secret)
	return s.prepare(), s.client, keyID, secret
}

func (p *place) signs(keyID, secret string, at time.Time) func(*linkclient.Options) {
	return func(o *linkclient.Options) { o.Query = linkclient.SigV4Query(*o, keyID, secret, region, at) }
}

// link opens a connection of a process and collects what is pushed on it.
func (p *place) link(process string, change ...func(*linkclient.Options)) (*bareServer, error) {
	b := &bareServer{place: p, pushes: make(chan barePush, 64)}
	b.options = linkclient.Options{
		URL: p.ws(), Process: process, Compute: p.compute, Fleet: p.fleet, SDKLanguage: "Cpp",
		OnPush: func(_ *linkclient.Client, push linkclient.Push) {
			b.pushes <- barePush{push.Action, string(push.Raw), push.GameSessionID()}
		},
	}
	for _, f := range change {
		f(&b.options)
	}
	c, err := linkclient.Dial(p.t.Context(), b.options)
	if err != nil {
		return nil, err
	}
	b.Client = c
	p.t.Cleanup(c.Drop)
	return b, nil
}

func linkRefused(t *testing.T, what string, err error) {
	t.Helper()
	if refusal, ok := errors.AsType[*linkclient.RefusedError](err); !ok || refusal.Status != 403 {
		t.Errorf("%s: got %v, want 403", what, err)
	}
}

// An attacker who knows the ids of a process that signed its connection, and pretends to be a reconnecting C++ SDK, gets
// neither the process nor a token, at any point in the process's life.
func TestAttackTakeoverWithoutCredentials(t *testing.T) {
	t.Parallel()
	p, _, keyID, secret := productionPlace(t)
	ctx := t.Context()
	attack := func(when string) {
		t.Helper()
		for _, language := range []string{"Cpp", "Go", "CSharp", ""} {
			_, err := p.link("victim", func(o *linkclient.Options) {
				o.Query = fmt.Sprintf("ComputeId=%s&FleetId=%s&pID=victim&sdkVersion=5.4.0&sdkLanguage=%s&IdempotencyToken=abc", o.Compute, o.Fleet, language)
			})
			linkRefused(t, when+" as "+language, err)
		}
	}
	attack("before the process exists")
	victim, err := p.link("victim", p.signs(keyID, secret, time.Now().UTC()))
	must(t, err)
	attack("when it has connected")
	must(t, victim.Activate(ctx, 7777))
	attack("when it is ready")
	must(t, victim.Heartbeat(ctx, true))
	for push := range victim.pushes { // the real process gets the token
		if push.action == "RefreshConnection" {
			break
		}
	}
	attack("when it has a token")
	victim.Drop()
	attack("when its connection is lost")
	again, err := p.link("victim", p.signs(keyID, secret, time.Now().UTC()))
	must(t, err)
	must(t, again.Heartbeat(ctx, true)) // and is still itself
}

// A signature that was intercepted long ago opens nothing, not even the connection of a process that still exists,
// whichever SDK its bearer pretends to be.
func TestAttackOldSignature(t *testing.T) {
	t.Parallel()
	p, _, keyID, secret := productionPlace(t)
	victim, err := p.link("victim", p.signs(keyID, secret, time.Now().UTC()))
	must(t, err)
	must(t, victim.Activate(t.Context(), 7777))
	for _, off := range []time.Duration{-26 * time.Minute, -3 * time.Hour, -14 * time.Hour, 16 * time.Minute, 14 * time.Hour} {
		for _, language := range []string{"Go", "Cpp", "CSharp"} {
			for _, process := range []string{"victim", "new"} {
				_, err := p.link(process, func(o *linkclient.Options) { o.SDKLanguage = language }, p.signs(keyID, secret, time.Now().UTC().Add(off)))
				linkRefused(t, fmt.Sprintf("%s as %s, signed %s from now", process, language, off), err)
			}
		}
	}
	must(t, victim.Heartbeat(t.Context(), true))
}

// A leaked auth token ends with the registration of its compute, even if the new one has the same name.
func TestAttackTokenSurvivesDeregistration(t *testing.T) {
	t.Parallel()
	p, api, _, _ := productionPlace(t)
	ctx := t.Context()
	leaked := p.token
	shows := func(token string) func(*linkclient.Options) { return func(o *linkclient.Options) { o.Token = token } }
	intruder, err := p.link("intruder", shows(leaked))
	must(t, err)
	_, err = api.DeregisterCompute(ctx, &gamelift.DeregisterComputeInput{FleetId: &p.fleet, ComputeName: &p.compute})
	must(t, err)
	_, err = api.RegisterCompute(ctx, &gamelift.RegisterComputeInput{FleetId: &p.fleet, ComputeName: &p.compute, IpAddress: aws.String("127.0.0.1"), Location: &p.location})
	must(t, err)
	for range 3 { // the generations start again
		out, err := api.GetComputeAuthToken(ctx, &gamelift.GetComputeAuthTokenInput{FleetId: &p.fleet, ComputeName: &p.compute})
		must(t, err)
		if *out.AuthToken == leaked {
			t.Fatal("the new registration was given the leaked token")
		}
		p.token = *out.AuthToken
	}
	_, err = p.link("intruder", shows(leaked))
	linkRefused(t, "the leaked token", err)
	waittest.Until(t, "the intruder's connection to end", func() bool { return intruder.Activate(ctx, 7777) != nil })
	p.kill()
	p.start()
	_, err = p.link("intruder", shows(leaked))
	linkRefused(t, "the leaked token after a restart", err)
	_, err = p.link("honest", shows(p.token))
	must(t, err)
}

// An operator replaces a leaked token with the command line: it is invalid at once and its connections end. Only an
// administrator may do that.
func TestAttackLeakedTokenIsRotated(t *testing.T) {
	t.Parallel()
	p, api, keyID, secret := productionPlace(t)
	ctx := t.Context()
	leaked := p.token
	shows := func(token string) func(*linkclient.Options) { return func(o *linkclient.Options) { o.Token = token } }
	intruder, err := p.link("intruder", shows(leaked))
	must(t, err)

	rotate := func(keyID, secret string, more ...string) (string, error) {
		cmd := exec.Command(musterBinary, append([]string{"computes", "rotate-token", "--listen", p.address, p.fleet, p.compute}, more...)...)
		cmd.Env = cleanEnvironment("AWS_ACCESS_KEY_ID="+keyID, "AWS_SECRET_ACCESS_KEY="+secret)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	backend, backendSecret := p.key("backend")
	waittest.Until(t, "the new key to be known", func() bool {
		out, err := rotate(backend, backendSecret)
		if err == nil {
			t.Fatalf("a backend rotated a token: %s", out)
		}
		return strings.Contains(out, "role backend")
	})
	if out, err := rotate("", ""); err == nil {
		t.Fatalf("a stranger rotated a token: %s", out)
	}
	must(t, intruder.Activate(ctx, 7777)) // nothing has happened yet
	if out, err := rotate(keyID, secret); err != nil {
		t.Fatalf("rotate-token: %v\n%s", err, out)
	}
	waittest.Until(t, "the intruder's connection to end", func() bool { return intruder.Heartbeat(ctx, true) != nil })
	_, err = p.link("intruder", shows(leaked))
	linkRefused(t, "the leaked token", err)
	out, err := api.GetComputeAuthToken(ctx, &gamelift.GetComputeAuthTokenInput{FleetId: &p.fleet, ComputeName: &p.compute})
	must(t, err)
	honest, err := p.link("honest", shows(*out.AuthToken))
	must(t, err)
	must(t, honest.Activate(ctx, 7777))
	must(t, honest.Heartbeat(ctx, true))

	if out, err := rotate(keyID, secret, "--keep-links"); err != nil {
		t.Fatalf("rotate-token --keep-links: %v\n%s", err, out)
	}
	for push := range honest.pushes { // the connection stays, and gets the new token
		if push.action == "RefreshConnection" {
			break
		}
	}
	must(t, honest.Heartbeat(ctx, true))
	_, err = p.link("late", shows(*out.AuthToken))
	linkRefused(t, "the token before", err)
}
