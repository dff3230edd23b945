package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/internal/waittest"
)

// secretStates returns the states of the generations of the secret, as listed by the command.
func secretStates(t *testing.T, s *service) map[string]string {
	t.Helper()
	states := map[string]string{}
	for line := range strings.Lines(s.command("secret", "list", "--data", s.data)) {
		if f := strings.Fields(line); len(f) > 2 && f[0] != "GENERATION" {
			states[f[0]] = f[1]
		}
	}
	return states
}

// calling makes calls until end is called, which fails the test if one of them failed.
type calling struct {
	t    *testing.T
	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup
}

func newCalling(t *testing.T) *calling {
	c := &calling{t: t}
	c.ctx, c.stop = context.WithCancel(t.Context())
	t.Cleanup(c.end)
	return c
}

func (c *calling) again(what string, call func(n int) error) {
	c.work.Go(func() {
		for n := 0; c.ctx.Err() == nil; n++ {
			if err := call(n); err != nil && c.ctx.Err() == nil {
				c.t.Errorf("%s, call %d: %v", what, n, err)
				return
			}
		}
	})
}

func (c *calling) end() {
	c.stop()
	c.work.Wait()
}

// While the secret is rotated repeatedly, and after a restart, access keys, temporary credentials and their renewal work without a failed call. New keys
// are derived from the new generation, and old ones keep working after their generation has ended.
func TestSecretRotationUnderLoad(t *testing.T) {
	t.Parallel()
	s, admin := startProduction(t)
	id, secret := s.key("admin")
	key := aws.Credentials{AccessKeyID: id, SecretAccessKey: secret}
	early := s.assume(id, secret, "readonly", "early")
	load := newCalling(t)
	load.again("the access key", func(int) error {
		_, err := admin.ListFleets(load.ctx, &gamelift.ListFleetsInput{})
		return err
	})
	load.again("temporary credentials", func(int) error { return s.lists(early) })
	load.again("new temporary credentials", func(n int) error {
		c, err := s.roles(id, secret, "readonly", fmt.Sprint("load-", n)).Retrieve(load.ctx)
		if err == nil {
			err = s.lists(c)
		}
		return err
	})
	for n := 2; n <= 4; n++ {
		if out := s.command("secret", "rotate", "--data", s.data, "--reason", "hygiene"); !strings.Contains(out, fmt.Sprintf("generation %d of the secret signs from now on", n)) {
			t.Error(out)
		}
		next, nextSecret := s.key("backend")
		must(t, s.lists(aws.Credentials{AccessKeyID: next, SecretAccessKey: nextSecret}))
	}
	load.end()
	if out, err := s.remote(id, secret, "secret", "rotate"); err == nil || !strings.Contains(out, "the limit is 4") {
		t.Errorf("beyond the limit: %v, %s", err, out)
	}
	if out, err := s.commandFails("secret", "rotate", "--data", s.data, "--overlap", "1m"); err == nil || !strings.Contains(out, "want 30m0s to") {
		t.Errorf("a short overlap: %v, %s", err, out)
	}
	if list := s.command("secret", "list", "--data", s.data); !strings.Contains(list, "temporary credentials") || strings.Count(list, "accepted") != 3 {
		t.Errorf("the list is\n%s", list)
	}
	out, err := s.remote(id, secret, "secret", "retire", "2", "--dry-run")
	must(t, err)
	if !strings.Contains(out, "the service would refuse temporary credentials") || secretStates(t, s)["2"] != "accepted" {
		t.Errorf("a dry run: %s", out)
	}
	audited, err := s.remote(id, secret, "audit", "list", "--what", "secret")
	must(t, err)
	if strings.Count(audited, "secret rotate") < 3 || !strings.Contains(audited, "hygiene") {
		t.Errorf("the audit log is\n%s", audited)
	}

	s.stop()
	s.start()
	must(t, s.lists(early))
	must(t, s.lists(key))
	must(t, s.lists(s.assume(id, secret, "readonly", "later")))
	if out := s.command("secret", "retire", "1", "--data", s.data); !strings.Contains(out, id) || !strings.Contains(out, "keep working") {
		t.Errorf("retired: %s", out)
	}
	refused(t, "temporary credentials of a retired generation", s.lists(early), "UnrecognizedClientException")
	must(t, s.lists(key))
	s.kill()
	s.start()
	refused(t, "after a kill", s.lists(early), "UnrecognizedClientException")
	must(t, s.lists(key))
}

// Players, their game, its game server's link and the published keys survive a rotation. Tokens that the old generation signed end when it is retired.
func TestSecretRotationWithPlayers(t *testing.T) {
	t.Parallel()
	p := startFlow(t)
	players := p.come("ann", "bob")
	ann, bob := players[0], players[1]
	g := p.game("OPTIONAL", ann, bob)
	seat := func(name string) object {
		return object{"game_instance_id": g.instance, "player_session_id": g.seats[name], "connection_token": g.tokens[name]}
	}
	verified := func(name string) {
		t.Helper()
		if o := p.partner(t, "Game.VerifyPlayer", seat(name)); o.text("player_id") != name {
			t.Errorf("verified: %v", o)
		}
	}
	published := func() int {
		t.Helper()
		answer, err := http.Get(p.url() + "/playerflow/v1/keys")
		must(t, err)
		defer answer.Body.Close()
		var set struct{ Keys []struct{ Kid string } }
		text, err := io.ReadAll(answer.Body)
		must(t, err)
		must(t, json.Unmarshal(text, &set))
		return len(set.Keys)
	}
	verified("ann")
	load := newCalling(t)
	load.again("a player", func(int) error {
		r, err := http.NewRequestWithContext(load.ctx, http.MethodPost, p.url()+"/playerflow/v1/player/Session.GetFlow", strings.NewReader("{}"))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+ann.token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusTooManyRequests {
			return fmt.Errorf("status %d", answer.StatusCode)
		}
		return nil
	})
	p.command("secret", "rotate", "--data", p.data)
	load.end()
	if n := published(); n != 2 {
		t.Errorf("%d keys are published", n)
	}
	token := g.tokens["bob"]
	if g.details(bob); g.tokens["bob"] != token {
		t.Error("the connection token of a reservation has changed with the rotation")
	}
	verified("bob")
	g.accept(ann, bob)
	p.ready(sdkOptions{}).must("ending") // a new game server, with an auth token of the new generation
	fresh := bob.call("Session.Refresh", object{}).text("access_token")
	if !strings.HasPrefix(fresh, "pfa_2.") {
		t.Errorf("the access token after the rotation is %.8s…", fresh)
	}

	p.kill()
	p.start()
	ann.call("Session.GetFlow", object{})
	bob.token = fresh
	bob.call("Session.GetFlow", object{})
	p.command("secret", "retire", "1", "--data", p.data)
	ann.fails("Session.GetFlow", http.StatusUnauthorized, "TOKEN_EXPIRED", object{})
	bob.call("Session.GetFlow", object{})
	if n := published(); n != 1 {
		t.Errorf("%d keys are published after the first one was retired", n)
	}
	p.flowCall(t, "partner", "Game.VerifyPlayer", "", http.StatusConflict, seat("ann"))
	ann.loginAgain()
	ann.call("Session.GetFlow", object{})
	p.noViolations(t)
}

// After kill -9 at any moment of a rotation, the service starts, accepts its own signatures, and its secret can be rotated.
func TestKillDuringSecretRotation(t *testing.T) {
	t.Parallel()
	s := newService(t, "--dev=false")
	id, secret := s.key("admin")
	s.start()
	for range 8 {
		c := s.assume(id, secret, "readonly", "report")
		rotation := exec.Command(musterBinary, "secret", "rotate", "--data", s.data)
		rotation.Env = cleanEnvironment()
		must(t, rotation.Start())
		time.Sleep(time.Duration(rand.IntN(120)) * time.Millisecond) // the moment of the kill, and nothing that a check waits for
		s.kill()
		_ = rotation.Wait() // it has failed, or not
		s.start()
		must(t, s.lists(c))
		must(t, s.lists(aws.Credentials{AccessKeyID: id, SecretAccessKey: secret}))
		waittest.Until(t, "the rotation to be over", func() bool {
			states := secretStates(t, s)
			for _, state := range states {
				if state != "signs" && state != "accepted" && state != "ended" && state != "destroyed" {
					return false
				}
			}
			return true
		})
		for number, state := range secretStates(t, s) {
			if state == "accepted" {
				s.command("secret", "retire", number, "--data", s.data)
			}
		}
	}
	s.command("secret", "rotate", "--data", s.data)
	must(t, s.lists(s.assume(id, secret, "readonly", "report")))
}

// All nodes accept the signatures of any node, at every moment of a rotation. A node that was down gets the new generation before its doors open, and a new leader completes a
// rotation that the previous one began.
func TestSecretRotationInACluster(t *testing.T) {
	t.Parallel()
	nodes := threeNodes(t, "--dev=false")
	id, secret := nodes[0].key("admin")
	key := aws.Credentials{AccessKeyID: id, SecretAccessKey: secret}
	everywhere(t, nodes, key)
	down := nodes[2]
	down.kill()
	waittest.Until(t, "the node to be given up", func() bool {
		out, err := clusterCommand(t, nodes[0], "status")
		return err == nil && strings.Contains(out, "missing")
	})
	load := newCalling(t)
	for i, n := range nodes[:2] {
		load.again(fmt.Sprint("credentials of node ", i), func(int) error {
			c, err := n.roles(id, secret, "readonly", "load").Retrieve(load.ctx)
			for _, at := range nodes[:2] {
				if err == nil {
					err = at.lists(c)
				}
			}
			return err
		})
	}
	nodes[1].command("secret", "rotate", "--data", nodes[1].data) // at a follower
	load.end()
	c := nodes[0].assume(id, secret, "readonly", "report")
	down.start()
	waittest.Until(t, "the node to be ready", func() bool { return ready(t, down) })
	must(t, down.lists(c))
	must(t, nodes[0].lists(down.assume(id, secret, "readonly", "report")))
	made, madeSecret := down.key("backend") // derived from the new generation, by the command on that machine
	everywhere(t, nodes, aws.Credentials{AccessKeyID: made, SecretAccessKey: madeSecret})

	// The leader goes away in the middle of a rotation.
	rotation := exec.Command(musterBinary, "secret", "rotate", "--data", nodes[1].data)
	rotation.Env = cleanEnvironment()
	must(t, rotation.Start())
	time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond) // the moment of the kill, and nothing that a check waits for
	nodes[0].kill()
	_ = rotation.Wait() // it has failed, or not
	waittest.Until(t, "the rotation to be over", func() bool {
		out, err := nodes[1].commandFails("secret", "list", "--data", nodes[1].data)
		return err == nil && !strings.Contains(out, "waits for") && !strings.Contains(out, "distributed")
	})
	var between aws.Credentials
	waittest.Until(t, "another node to decide", func() bool {
		var err error
		between, err = nodes[1].roles(id, secret, "readonly", "report").Retrieve(t.Context())
		return err == nil
	})
	nodes[0].start()
	waittest.Until(t, "the node to be ready", func() bool { return ready(t, nodes[0]) })
	for _, n := range nodes {
		must(t, n.lists(between))
		must(t, n.lists(c))
		must(t, n.lists(key))
	}
	nodes[1].command("secret", "retire", "1", "--data", nodes[1].data)
	last := nodes[2].assume(id, secret, "readonly", "report")
	everywhere(t, nodes, last)

	late := joined(t, nodes[1], "--dev=false")
	waittest.Until(t, "the new node to be ready", func() bool { return ready(t, late) })
	must(t, late.lists(last))
	must(t, late.lists(key))
}

// A backup from before a rotation restores a service with the old secret, and a later one restores a service that accepts both.
func TestRestoreAroundASecretRotation(t *testing.T) {
	t.Parallel()
	s := newService(t, "--dev=false")
	id, secret := s.key("admin")
	s.start()
	before, after := filepath.Join(t.TempDir(), "before"), filepath.Join(t.TempDir(), "after")
	early, err := os.ReadFile(filepath.Join(s.data, "cell.secret"))
	must(t, err)
	old := s.assume(id, secret, "readonly", "report")
	s.command("backup", "--data", s.data, "--to", before)
	s.command("secret", "rotate", "--data", s.data)
	next := s.assume(id, secret, "readonly", "report")
	made, madeSecret := s.key("backend")
	s.command("backup", "--data", s.data, "--to", after)
	restored := func(file string) *service {
		if out := s.command("restore", "--verify", file); !strings.Contains(out, "The backup is intact") {
			t.Error(out)
		}
		r := newService(t, "--dev=false")
		r.command("restore", file, "--data", r.data)
		r.start()
		must(t, r.lists(old))
		must(t, r.lists(aws.Credentials{AccessKeyID: id, SecretAccessKey: secret}))
		return r
	}
	r := restored(before)
	refused(t, "what a later generation has signed", r.lists(next), "UnrecognizedClientException")
	r.command("secret", "rotate", "--data", r.data)
	refused(t, "what another generation with the same number has signed", r.lists(next), "UnrecognizedClientException")
	r = restored(after)
	must(t, r.lists(next))
	must(t, r.lists(aws.Credentials{AccessKeyID: made, SecretAccessKey: madeSecret}))

	// A file of before the rotation does not fit the directory. An operator who accepts that the later generation is lost keeps the keys of the earlier one.
	s.stop()
	must(t, os.WriteFile(filepath.Join(s.data, "cell.secret"), early, 0o600))
	if out, err := s.commandFails("serve", "--data", s.data, "--listen", s.address); err == nil || !strings.Contains(out, "does not have generation 2 of the secret") {
		t.Errorf("with an older secret: %v, %s", err, out)
	}
	s.args = append(s.args, "--accept-loss", "cell.secret")
	s.start()
	must(t, s.lists(aws.Credentials{AccessKeyID: id, SecretAccessKey: secret}))
	refused(t, "a key of the lost generation", s.lists(aws.Credentials{AccessKeyID: made, SecretAccessKey: madeSecret}), "UnrecognizedClientException")
	if states := secretStates(t, s); len(states) != 1 || states["1"] != "signs" {
		t.Errorf("the generations are %v", states)
	}
	s.command("secret", "rotate", "--data", s.data)
	must(t, s.lists(aws.Credentials{AccessKeyID: id, SecretAccessKey: secret}))
}
