// Package keyring manages the access keys of a cell: it imports the file of earlier releases, changes keys
// with commands, and follows the state, so that the doors always have the keys and sign-in sessions of the state.
package keyring

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/people"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/identity"
)

// Config is what a Ring needs.
type Config struct {
	Engine *engine.Engine
	Dir    string // data directory; empty: no file to import
	Secret identity.CellSecret
	Log    *slog.Logger

	// Node: at a node of a cluster, Open changes nothing and asks no other node. The node that decides calls TakeOver.
	Node bool
}

// Ring has the access keys of a running cell. Its Find takes no lock.
type Ring struct {
	*identity.Keys
	engine   *engine.Engine
	log      *slog.Logger
	dir      string
	unfollow func()

	stop    context.CancelFunc
	working sync.WaitGroup

	mu    sync.Mutex
	known map[string]access.Key
	// revocations of temporary credentials, the oldest first
	revocations []access.Revocation
	published   uint64        // number of the newest journal entry in force
	changed     chan struct{} // closed and replaced when published grows
}

// Open imports the file if that has not happened yet, and follows the state. An error means that the keys are
// unknown: the service must not start.
func Open(ctx context.Context, c Config) (*Ring, error) {
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if !c.Node {
		if err := takeOver(ctx, c.Engine, c.Dir, c.Secret, c.Log, 0); err != nil {
			return nil, err
		}
	}
	r := &Ring{
		Keys: identity.NewKeys(c.Secret, c.Engine.Now), engine: c.Engine, log: c.Log, dir: c.Dir,
		known: map[string]access.Key{}, changed: make(chan struct{}),
	}
	// From here on, follow receives every event. The events contain whole records, so it does no harm if some are already in
	// the state. No door is open yet.
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unfollow = c.Engine.Follow(kernel.Kinds(append([]kernel.Event{new(access.AccessKeysTakenOver), new(access.AccessKeyCreated), new(access.AccessKeyRevoked), new(access.AccessKeysForgotten), new(access.CredentialsRevoked),
		new(access.AccessKeyExpired), new(access.AccessKeyRotated), new(access.AccessKeyLimited), new(access.AccessKeysUsed), new(people.SignedIn), new(people.SignInChanged), new(people.SignInsUsed), new(people.SignInsEnded)}, changesPolicies...)...), r.follow)
	if err := r.read(ctx); err != nil {
		go r.unfollow() // follow may wait for r.mu
		return nil, err
	}
	r.publish()
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.working.Go(func() { r.expire(ctx) })
	r.working.Go(func() { r.noteUses(ctx) })
	return r, nil
}

// read reads all keys from the state. The caller holds r.mu.
func (r *Ring) read(ctx context.Context) error {
	var all []access.Key
	signIns := map[string]identity.SignIn{}
	err := r.engine.ReadHere(ctx, func(v *cell.View) error {
		all, r.revocations = v.AccessKeys(), v.Revocations()
		for _, x := range v.SignIns(catalog.Place{}, people.SessionsMax) {
			signIns[x.ID] = identity.SignIn{Roles: x.Roles, Groups: x.Groups}
			r.published = max(r.published, x.Changed)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the access keys: %w", err)
	}
	r.PublishSignIns(signIns)
	clear(r.known)
	for _, k := range all {
		r.known[k.ID] = k
		r.published = max(r.published, k.Changed)
	}
	return r.readPolicies(ctx) // before the keys, so that no key is found without its policies
}

// TakeOver imports the file of an earlier release if that has not happened yet. In a cluster, only the leader calls it.
func (r *Ring) TakeOver(ctx context.Context) error {
	return takeOver(ctx, r.engine, r.dir, r.CellSecret(), r.log, 0)
}

// Close stops following the state. Find keeps working with the last keys.
func (r *Ring) Close() {
	r.unfollow()
	r.stop()
	r.working.Wait()
}

// expireEvery is the maximum delay between the expiry of a key or of temporary credentials and the end of their streams and other waits. Requests are refused without delay.
const expireEvery = time.Second

func (r *Ring) expire(ctx context.Context) {
	every := time.NewTicker(expireEvery)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			r.Keys.Expire()
		case <-ctx.Done():
			return
		}
	}
}

// follow puts a change into force.
func (r *Ring) follow(c engine.Committed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.Gap {
		if err := r.read(context.Background()); err != nil { // the engine has stopped
			r.log.Error("the access keys cannot be read: the previous ones stay in force", "error", err)
			return
		}
	}
	policies, keys, signIns, ended := false, c.Gap, map[string]identity.SignIn{}, []string(nil)
	for _, e := range c.Events {
		switch e := e.Event.(type) {
		case *access.AccessKeysUsed:
			r.learnUses(e.Uses)
			continue
		case *people.SignedIn:
			signIns[e.SignIn.ID] = identity.SignIn{Roles: e.SignIn.Roles, Groups: e.SignIn.Groups}
			continue
		case *people.SignInChanged:
			signIns[e.SignIn.ID] = identity.SignIn{Roles: e.SignIn.Roles, Groups: e.SignIn.Groups}
			continue
		case *people.SignInsUsed: // changes nothing here, but its number is that of the last change of a session, for Await
			continue
		case *people.SignInsEnded:
			ended = append(ended, e.IDs...)
			continue
		case *access.PolicyPut, *access.PolicyDeleted, *access.PolicyAttached, *access.PolicyDetached:
			policies = true
			continue
		case *access.AccessKeysTakenOver:
			for _, k := range e.Keys {
				r.add(k)
			}
		case *access.AccessKeyCreated:
			r.add(e.Key)
		case *access.AccessKeyRevoked:
			k := r.known[e.ID]
			k.Revoked, k.RevokedBy = e.At, e.By
			r.known[e.ID] = k
		case *access.AccessKeyExpired:
			k := r.known[e.ID]
			k.Revoked = k.Expires
			r.known[e.ID] = k
		case *access.AccessKeyRotated:
			k := r.known[e.ID]
			k.Successor, k.Expires = e.Successor, e.Expires
			r.known[e.ID] = k
		case *access.AccessKeyLimited:
			k := r.known[e.ID]
			k.Expires, k.Sources = e.Expires, e.Sources
			r.known[e.ID] = k
		case *access.CredentialsRevoked:
			r.revocations = e.Revocation.After(r.revocations)
		case *access.AccessKeysForgotten:
			for _, id := range e.IDs {
				delete(r.known, id)
			}
		}
		keys = true
	}
	if len(signIns)+len(ended) > 0 {
		r.ChangeSignIns(signIns, ended)
	}
	if policies {
		if err := r.readPolicies(context.Background()); err != nil { // the engine has stopped
			r.log.Error("the policies cannot be read: the previous ones stay in force", "error", err)
			return
		}
	}
	if keys {
		r.publish()
	}
	r.published = max(r.published, c.Number)
	close(r.changed)
	r.changed = make(chan struct{})
}

// add adds a new key. The caller holds r.mu.
func (r *Ring) add(key access.Key) {
	if k, ok := r.known[key.ID]; !ok || k.Works() { // otherwise it was read already revoked, and the event of the revocation follows
		r.known[key.ID] = key
	}
}

// SecretChanged puts changes of the cell's secret into force.
func (r *Ring) SecretChanged() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.publish()
}

// publish puts the current keys into force. The caller holds r.mu.
func (r *Ring) publish() {
	all := make([]access.Key, 0, len(r.known))
	for _, k := range r.known {
		all = append(all, k)
	}
	r.Publish(all)
	r.revocations = r.Keys.Revoke(r.revocations)
}

// Await returns once a journal entry is in force.
func (r *Ring) Await(ctx context.Context, number uint64) error {
	for {
		r.mu.Lock()
		published, changed := r.published, r.changed
		r.mu.Unlock()
		if published >= number {
			return nil
		}
		select {
		case <-changed:
		case <-r.engine.Stopped():
			return fmt.Errorf("the change is stored and takes effect at the next start: %w", engine.ErrStopped)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// change executes a command, and returns once its journal entry, whose number the command has stored in number, is in force at this node.
func (r *Ring) change(ctx context.Context, cmd kernel.Command, number *uint64) error {
	if err := r.engine.Do(ctx, cmd); err != nil {
		return err
	}
	return r.Await(context.WithoutCancel(ctx), *number)
}

// logChange logs a change with its actor.
func (r *Ring) logChange(what string, by access.Actor, attributes ...any) {
	r.log.Info(what, append(attributes, "principal", by.Principal, "address", by.Address, "door", by.Door)...)
}

// Create makes a key. It is valid when Create returns.
func (r *Ring) Create(ctx context.Context, by access.Actor, n New) (identity.AccessKey, error) {
	cmd, err := n.command(by, 0)
	if err != nil {
		return identity.AccessKey{}, err
	}
	if err := r.change(ctx, cmd, &cmd.Key.Changed); err != nil {
		return identity.AccessKey{}, err
	}
	r.logChange("access key created", by, "key", cmd.Key.ID, "role", cmd.Key.Role.String(), "name", cmd.Key.Name)
	return r.CellSecret().AccessKey(&cmd.Key), nil
}

// Revoke revokes a key. When it returns, every door refuses the key, and its connections are being closed. The
// last admin key can only be revoked with force.
func (r *Ring) Revoke(ctx context.Context, by access.Actor, id string, force bool) (access.Key, error) {
	cmd := &access.RevokeAccessKey{ID: id, By: by, Force: force}
	if err := r.change(ctx, cmd, &cmd.Key.Changed); err != nil {
		return access.Key{}, err
	}
	r.logChange("access key revoked", by, "key", id, "role", cmd.Key.Role.String())
	return cmd.Key, nil
}

// Rotate makes the successor of a key, and returns it with the key. Both are valid when Rotate returns.
func (r *Ring) Rotate(ctx context.Context, by access.Actor, x Rotation) (successor identity.AccessKey, old access.Key, err error) {
	cmd, err := x.command(by, 0)
	if err != nil {
		return successor, old, err
	}
	if err := r.change(ctx, cmd, &cmd.Successor.Changed); err != nil {
		return successor, old, err
	}
	r.logChange("access key rotated", by, "key", x.ID, "successor", cmd.Successor.ID, "role", cmd.Key.Role.String())
	return r.CellSecret().AccessKey(&cmd.Successor), r.lastUsed(cmd.Key), nil
}

// Limit changes until when, and from which networks, a key works. When it returns, every door enforces the new limits. It requires force for limits that would exclude the request itself, and
// for limits of the last admin key without limits.
func (r *Ring) Limit(ctx context.Context, by access.Actor, x Limits) (access.Key, error) {
	cmd, err := x.command(by, 0)
	if err != nil {
		return access.Key{}, err
	}
	if holder, _, _ := strings.Cut(by.Principal, ":"); holder == x.ID && by.Address != "" && len(cmd.Sources) > 0 && !x.Force && !identity.InNetworks(cmd.Sources, by.Address) {
		return access.Key{}, domain.Refuse(domain.Conflict, "access key %s signs this request from %s, where it would no longer work: add the network, or force the change", x.ID, by.Address)
	}
	if err := r.change(ctx, cmd, &cmd.Key.Changed); err != nil {
		return access.Key{}, err
	}
	r.logChange("access key limited", by, "key", x.ID, "role", cmd.Key.Role.String())
	return r.lastUsed(cmd.Key), nil
}

// FinishRotation revokes a key that has a successor. When it returns, every door refuses the key, and its connections are being closed.
func (r *Ring) FinishRotation(ctx context.Context, by access.Actor, id string) (access.Key, error) {
	uses := r.Uses() // the key's uses are lost when it ends
	cmd := &access.FinishRotation{ID: id, By: by}
	if err := r.change(ctx, cmd, &cmd.Key.Changed); err != nil {
		return access.Key{}, err
	}
	r.logChange("access key revoked: its successor has replaced it", by, "key", id, "successor", cmd.Key.Successor)
	for _, use := range uses {
		if use.Key == id && use.At > cmd.Key.LastUse.At {
			cmd.Key.LastUse = use
		}
	}
	return cmd.Key, nil
}

// RevokeCredentials revokes temporary credentials. When it returns, every door of this node refuses them, and their connections are being closed.
func (r *Ring) RevokeCredentials(ctx context.Context, cmd *access.RevokeCredentials) error {
	if err := r.change(ctx, cmd, &cmd.Number); err != nil {
		return err
	}
	r.logChange("temporary credentials revoked", cmd.By, "session", cmd.Session, "holder", cmd.Holder, "certificate", cmd.Certificate)
	return nil
}

// List returns all keys in the order of their creation, including revoked ones.
func (r *Ring) List(ctx context.Context) (all []access.Key, err error) {
	err = r.engine.Read(ctx, func(v *cell.View) error { all = v.AccessKeys(); return nil })
	r.Refresh(all)
	return all, err
}

var (
	keysDesc          = prometheus.NewDesc("muster_access_keys", "Access keys: those that work, and revoked and expired ones that are still listed.", []string{"state"}, nil)
	sessionsDesc      = prometheus.NewDesc("muster_temporary_credentials", "Temporary credentials that this node remembers, because they were used here and have not expired.", nil, nil)
	sessionsLimitDesc = prometheus.NewDesc("muster_temporary_credentials_limit", "Maximum number of temporary credentials that this node remembers.", nil, nil)
	limitDesc         = prometheus.NewDesc("muster_access_keys_limit", "Maximum number of access keys, including revoked ones that are still listed.", nil, nil)
)

// Describe implements prometheus.Collector.
func (r *Ring) Describe(to chan<- *prometheus.Desc) {
	to <- keysDesc
	to <- limitDesc
	to <- sessionsDesc
	to <- sessionsLimitDesc
}

// Collect implements prometheus.Collector.
func (r *Ring) Collect(to chan<- prometheus.Metric) {
	r.mu.Lock()
	working, expired, all := 0, 0, len(r.known)
	for _, k := range r.known {
		switch {
		case k.Works():
			working++
		case k.Expired():
			expired++
		}
	}
	r.mu.Unlock()
	gauge := func(desc *prometheus.Desc, n int, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), labels...)
	}
	gauge(keysDesc, working, "working")
	gauge(keysDesc, expired, "expired")
	gauge(keysDesc, all-working-expired, "revoked")
	sessions, most := r.Sessions()
	gauge(sessionsDesc, sessions)
	gauge(sessionsLimitDesc, most)
	gauge(limitDesc, r.engine.CellConfig().Access.AccessKeysMax)
}
