package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/cluster/link"
	"github.com/musterhq/muster/internal/cluster/node"
	"github.com/musterhq/muster/internal/cluster/trust"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/waittest"
)

// stored returns the authority in the directory of a member.
func (m *member) stored(dir string) *trust.Authority {
	m.t.Helper()
	a, err := trust.Load(dir, m.Data().Cluster(), nil)
	if err != nil {
		m.t.Fatal(err)
	}
	return a
}

// steps returns the authorities of the three steps by which one is replaced.
func (m *member) steps(from *trust.Authority) []*trust.Authority {
	m.t.Helper()
	next, err := from.WithNext(time.Now())
	if err != nil {
		m.t.Fatal(err)
	}
	switched, err := next.Switched()
	if err != nil {
		m.t.Fatal(err)
	}
	return []*trust.Authority{next, switched, switched.Alone()}
}

// replace replaces the authority, once the nodes that were just started answer. On a busy machine, the leader's answer may take too long.
func (m *member) replace() {
	m.t.Helper()
	waittest.Until(m.t, "the authority is replaced", func() bool {
		_, err := m.Change(m.t.Context(), node.Change{Do: node.Replace})
		if err != nil && !domain.IsRefused(err, domain.Conflict) && !errors.Is(err, engine.ErrStopped) {
			m.t.Fatal(err)
		}
		return err == nil
	})
}

// admits reports whether a node accepts a peer with an authority's certificate.
func (m *member) admits(a *trust.Authority, as string) error {
	m.t.Helper()
	identity, err := trust.NewIdentity(trust.NodeID(as), a, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	l, err := link.Open(link.Options{Listen: "127.0.0.1:0", Identity: identity})
	if err != nil {
		m.t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(m.t.Context(), 20*time.Second)
	defer cancel()
	conn, err := l.Dial(ctx, m.Addr().String(), trust.NodeID(m.ID()), link.Node)
	if err == nil {
		_, err = conn.Read(make([]byte, 1)) // TLS 1.3: the server's refusal comes after the client's handshake; a node that accepts says nothing
		_ = conn.Close()
	}
	return err
}

// Under load all nodes get the new authority, no change fails, and what the old one has signed is void.
func TestReplaceAuthority(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	first := start(t, options(dirs[0], ""))
	first, second, third := trio(t, first, dirs[1], dirs[2])
	old, token := first.stored(dirs[0]), first.token()
	stop, writers := make(chan struct{}), sync.WaitGroup{}
	end := sync.OnceFunc(func() { close(stop); writers.Wait() })
	defer end()
	for i, m := range []*member{first, second, third} {
		writers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
					m.create(fmt.Sprintf("custom-%d-%d", i, n))
				}
			}
		})
	}
	second.replace()
	end()
	for i, m := range []*member{first, second, third} {
		if a := m.stored(dirs[i]); a.Fingerprint() == old.Fingerprint() || a.Fingerprint() != first.stored(dirs[0]).Fingerprint() || a.Replacing() != trust.NotReplaced {
			t.Errorf("node %d has the authority %s at step %d; the old one was %s", i, a.Fingerprint(), a.Replacing(), old.Fingerprint())
		}
		if err := m.admits(old, second.ID()); err == nil || !strings.Contains(err.Error(), "not issued by a trusted authority") && !strings.Contains(err.Error(), "bad certificate") {
			t.Errorf("node %d, asked with a certificate of the old authority: %v", i, err)
		}
		m.sees("custom-0-0")
	}
	if _, err := node.Open(t.Context(), options(t.TempDir(), token)); err == nil {
		t.Error("a join token of the old authority is still good")
	}
	fourth := start(t, options(t.TempDir(), third.token()))
	fourth.sees("custom-0-0")
	third.end()
	third = start(t, options(dirs[2], ""))
	third.sees("custom-0-0")
}

// While a node does not answer, nothing is replaced: it would be locked out.
func TestReplaceAuthorityNeedsAllNodes(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	first := start(t, options(dirs[0], ""))
	first, second, third := trio(t, first, dirs[1], dirs[2])
	old := first.stored(dirs[0])
	third.end()
	_, err := second.Change(t.Context(), node.Change{Do: node.Replace})
	if !domain.IsRefused(err, domain.Conflict) || !strings.Contains(err.Error(), "node "+third.ID()+" does not take part") {
		t.Errorf("replaced without a node: %v", err)
	}
	if a := first.stored(dirs[0]); a.Fingerprint() != old.Fingerprint() || a.Replacing() != trust.NotReplaced {
		t.Errorf("the leader has the authority %s at step %d, want the old one", a.Fingerprint(), a.Replacing())
	}
	if _, err := first.Change(t.Context(), node.Change{Do: node.Remove, Node: third.ID()}); err != nil {
		t.Fatal(err)
	}
	second.replace()
	if a := second.stored(dirs[1]); a.Fingerprint() == old.Fingerprint() {
		t.Error("the authority was not replaced after the node that was missing had been removed")
	}
}

// A replacement may stop at any step, with any of the nodes at the previous step. The next one completes it, whichever node leads, and never ends with the old authority.
func TestReplaceAuthorityAfterAnInterruption(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir()}
	first := start(t, options(dirs[0], ""))
	second := start(t, options(dirs[1], first.token()))
	first.until("two voters", func(s node.Status) bool { _, voters, _ := roles(s); return voters == 1 })
	for step := range 3 {
		for ahead := range 2 { // which node has taken the step, and the other one has not
			one := first.stored(dirs[0])
			steps := append([]*trust.Authority{one}, first.steps(one)...)
			at := []string{first.Addr().String(), second.Addr().String()}
			first.end()
			second.end()
			for i, dir := range dirs {
				has := steps[step]
				if i == ahead {
					has = steps[step+1]
				}
				if err := has.Save(dir, nil); err != nil {
					t.Fatal(err)
				}
			}
			again := func(i int) *member {
				o := options(dirs[i], "")
				o.Listen = at[i]
				return start(t, o)
			}
			first, second = again(0), again(1)
			first.until("a leader", func(s node.Status) bool { return s.Leader != "" })
			name := fmt.Sprintf("custom-%d-%d", step, ahead)
			if err := second.Do(t.Context(), &hosting.CreateLocation{Name: name}); err != nil {
				t.Errorf("at step %d with node %d ahead: %v", step, ahead, err)
			}
			first.replace()
			for i, m := range []*member{first, second} {
				a := m.stored(dirs[i])
				if a.Fingerprint() == one.Fingerprint() || a.Replacing() != trust.NotReplaced || a.Fingerprint() != first.stored(dirs[0]).Fingerprint() {
					t.Errorf("from step %d with node %d ahead, node %d has %s at step %d", step, ahead, i, a.Fingerprint(), a.Replacing())
				}
				m.sees(name)
			}
		}
	}
}

// A node that joins while the authority is replaced gets the new one: with the old one it would be a member to which no other node talks.
func TestJoinWhileTheAuthorityIsReplaced(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir()}
	first := start(t, options(dirs[0], ""))
	unlock, err := first.LockAdmission(t.Context()) // as replaceAuthority does
	if err != nil {
		t.Fatal(err)
	}
	token := first.token()
	joined := make(chan *member, 1)
	go func() { joined <- start(t, options(dirs[1], token)) }()
	waittest.Until(t, "the token is used", func() (used bool) {
		_ = first.ReadHere(t.Context(), func(v *cell.View) error { // without the state, it is asked again
			used = slices.ContainsFunc(v.JoinTokens(), func(x access.JoinToken) bool { return x.Node != "" })
			return nil
		})
		return used
	})
	steps := first.steps(first.stored(dirs[0]))
	for _, step := range steps {
		if _, err := first.AnswerAuthorities(t.Context(), step.PEM()); err != nil {
			t.Fatal(err)
		}
	}
	unlock()
	second := <-joined
	if got, want := second.stored(dirs[1]).Fingerprint(), steps[2].Fingerprint(); got != want {
		t.Errorf("the node that joined has the authority %s, want %s", got, want)
	}
}

// A connection that an old certificate has opened outlives the last step for a while, however long the earlier steps took: it may carry the answer to the caller.
func TestConnectionsOutliveTheLastStep(t *testing.T) {
	dir := t.TempDir()
	m := start(t, options(dir, ""))
	old := m.stored(dir)
	steps := m.steps(old)
	identity, err := trust.NewIdentity(trust.NodeID(m.ID()), old, nil) // another one is no member
	if err != nil {
		t.Fatal(err)
	}
	l, err := link.Open(link.Options{Listen: "127.0.0.1:0", Identity: identity})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := l.Dial(t.Context(), m.Addr().String(), trust.NodeID(m.ID()), link.Node)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_, _ = conn.Read(make([]byte, 1)) // the node sends nothing
	}()
	step := func(a *trust.Authority) {
		if _, err := m.AnswerAuthorities(t.Context(), a.PEM()); err != nil {
			t.Fatal(err)
		}
	}
	step(steps[0])
	time.Sleep(node.VoidAfter * 3 / 4)
	step(steps[1])
	last := time.Now()
	step(steps[2])
	<-closed
	if took := time.Since(last); took < node.VoidAfter {
		t.Errorf("the connection was closed %s after the last step, want %s", took, node.VoidAfter)
	}
}

// Two leaders that follow each other may make a node take a step at the same moment. Then it uses the authority that it has stored.
func TestTwoStepsOfTheAuthorityAtOnce(t *testing.T) {
	dir := t.TempDir()
	m := start(t, options(dir, ""))
	old := m.stored(dir)
	for round := range 100 {
		var asking sync.WaitGroup
		for range 2 {
			next, err := old.WithNext(time.Now())
			if err != nil {
				t.Fatal(err)
			}
			asking.Go(func() {
				if _, err := m.AnswerAuthorities(t.Context(), next.PEM()); err != nil {
					t.Error(err)
				}
			})
		}
		asking.Wait()
		uses, err := m.AnswerAuthorities(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var has []trust.Fingerprint
		if err := json.Unmarshal(uses, &has); err != nil {
			t.Fatal(err)
		}
		if stored := m.stored(dir).Fingerprints(); !slices.Equal(has, stored) {
			t.Fatalf("round %d: it uses %v and has stored %v", round, has, stored)
		}
	}
}

// A step that a leader no longer waits for is not taken: it would undo a step of the next replacement.
func TestStepThatIsGivenUp(t *testing.T) {
	dir := t.TempDir()
	m := start(t, options(dir, ""))
	old := m.stored(dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.AnswerAuthorities(ctx, m.steps(old)[0].PEM()); err == nil || !slices.Equal(m.stored(dir).Fingerprints(), old.Fingerprints()) {
		t.Errorf("a step that was given up: %v, and the node has %v", err, m.stored(dir).Fingerprints())
	}
}

// Two leaders that follow each other may both replace the authority for a moment. Neither may leave nodes behind that do not trust each other.
func TestTwoReplacementsAtOnce(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	first := start(t, options(dirs[0], ""))
	first, second, third := trio(t, first, dirs[1], dirs[2])
	for round := range 3 {
		var replacing sync.WaitGroup
		for _, m := range []*member{first, second} {
			replacing.Go(func() { _ = m.ReplaceAuthority(t.Context()) }) // at most one of them is carried out
		}
		replacing.Wait()
		for _, m := range []*member{first, second, third} {
			waittest.Until(t, fmt.Sprintf("round %d: a replacement after two at once", round), func() bool { // on a busy machine, an answer may come too late
				err := m.ReplaceAuthority(t.Context())
				if err != nil && !domain.IsRefused(err, domain.Conflict) {
					t.Fatal(err)
				}
				return err == nil
			})
		}
		for i, m := range []*member{second, third} {
			if got, want := m.stored(dirs[i+1]).Fingerprint(), first.stored(dirs[0]).Fingerprint(); got != want {
				t.Fatalf("round %d: node %d has the authority %s, and the first one %s", round, i+2, got, want)
			}
		}
	}
}

// A step of another leader that reaches a node behind this leader's step ends this replacement while all nodes still trust each other.
func TestStepOfAnotherLeader(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	first := start(t, options(dirs[0], ""))
	first, second, third := trio(t, first, dirs[1], dirs[2])
	other := first.steps(first.stored(dirs[0]))[0]
	for played := false; !played; {
		answer := third.HoldAuthority()
		replaced := make(chan error, 1)
		go func() { replaced <- second.ReplaceAuthority(t.Context()) }()
		time.Sleep(50 * time.Millisecond) // the first node says what it trusts; otherwise the attempt fails, and is repeated
		take := first.HoldAuthority()
		answer()
		waittest.Until(t, "the third node takes the first step, or the attempt fails", func() bool {
			played = len(third.fingerprints()) == 2
			return played || len(replaced) > 0
		})
		if played {
			if _, err := third.AnswerAuthorities(t.Context(), other.PEM()); err != nil {
				t.Error(err)
			}
		}
		take()
		if err := <-replaced; !domain.IsRefused(err, domain.Conflict) {
			t.Errorf("the replacement: %v, want a conflict", err)
		}
	}
	for _, m := range []*member{first, second, third} {
		waittest.Until(t, m.ID()+" replaces the authority", func() bool {
			err := m.ReplaceAuthority(t.Context())
			if err != nil && !domain.IsRefused(err, domain.Conflict) {
				t.Fatal(err)
			}
			return err == nil
		})
	}
}

// fingerprints returns the certificates that a node trusts.
func (m *member) fingerprints() (has []trust.Fingerprint) {
	m.t.Helper()
	answer, err := m.AnswerAuthorities(m.t.Context(), nil)
	if err == nil {
		err = json.Unmarshal(answer, &has)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return has
}
