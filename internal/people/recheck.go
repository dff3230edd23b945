package people

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/people"
	"github.com/musterhq/muster/internal/people/providers"
)

const (
	recheckAtOnce = 8 // requests to one provider
	recheckPage   = 256
	recheckPause  = 30 * time.Second // after a check of a session that the provider did not answer
	recheckGrace  = 2 * time.Second
)

// Rechecker asks the providers to confirm people again. It runs only on the leader: a refresh token may work only once, so one node at a time may use it.
// It implements office.Part.
type Rechecker struct {
	d      *Door
	grace  time.Duration // for checks in progress when the node no longer leads
	cancel context.CancelFunc
	work   sync.WaitGroup
	rounds map[string]*round // by provider
}

// round is the checks of the sessions of one provider that are due. Each provider has its own: one that hangs must not delay the checks of the others, whose sessions
// would end.
type round struct {
	runs  atomic.Bool
	after map[string]time.Time // sessions that the provider did not confirm: the next attempt. While the round runs, it belongs to the round.
}

// Rechecker returns the part of the door that runs on one node at a time.
func (d *Door) Rechecker() *Rechecker {
	return &Rechecker{d: d, grace: recheckGrace, rounds: map[string]*round{}}
}

// Lead implements office.Part.
func (x *Rechecker) Lead() {
	ctx, cancel := context.WithCancel(context.Background())
	x.cancel, x.rounds = cancel, map[string]*round{}
	x.work.Go(func() {
		for {
			select {
			case <-time.After(min(x.d.file.Get().Recheck/20, 10*time.Second)):
				x.pass(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
}

// Rest implements office.Part.
func (x *Rechecker) Rest() {
	if x.cancel != nil {
		x.cancel()
		x.work.Wait()
	}
}

// pass begins a round for each provider with sessions for which half of the time until the latest moment of their check has passed, unless an earlier round runs.
func (x *Rechecker) pass(ctx context.Context) {
	now := x.d.engine.Now()
	var due map[string][]people.SignIn // by provider
	err := x.d.engine.Read(ctx, func(v *cell.View) error {
		due = map[string][]people.SignIn{}
		for from := (catalog.Place{}); ; {
			page := v.SignIns(from, recheckPage)
			for i := range page {
				if s := &page[i]; !now.Before(s.Checked.Add(s.CheckBy.Sub(s.Checked) / 2).Std()) {
					due[s.Provider] = append(due[s.Provider], *s)
				}
			}
			if len(page) < recheckPage {
				return nil
			}
			from = catalog.Place{Created: page[len(page)-1].Started, ID: page[len(page)-1].ID}
		}
	})
	if err != nil {
		return // the node rests, or stops
	}
	for provider, sessions := range due {
		r := x.rounds[provider]
		if r == nil {
			r = &round{}
			x.rounds[provider] = r
		}
		if r.runs.CompareAndSwap(false, true) {
			x.work.Go(func() {
				defer r.runs.Store(false)
				x.check(ctx, r, sessions)
			})
		}
	}
}

// check checks sessions of one provider. A check in progress may outlive ctx by x.grace, because a provider that replaces refresh tokens may have replaced the one of
// the session.
func (x *Rechecker) check(ctx context.Context, r *round, due []people.SignIn) {
	d := x.d
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(x.grace, cancel) })()
	later := map[string]time.Time{}
	var mu sync.Mutex
	var work sync.WaitGroup
	places := make(chan struct{}, recheckAtOnce)
	for i := range due {
		s := &due[i]
		if at, waits := r.after[s.ID]; waits && d.engine.Now().Before(at) {
			mu.Lock()
			later[s.ID] = at
			mu.Unlock()
			continue
		}
		if places <- struct{}{}; ctx.Err() != nil {
			break
		}
		work.Go(func() {
			defer func() { <-places }()
			if err := d.check(longer, s); err != nil && ctx.Err() == nil {
				d.log.Warn("identity provider did not confirm a person: the session ends unless the provider does so in time", "provider", s.Provider, "session", s.ID, "person", s.Holder(), "until", s.CheckBy.Std(), "error", err)
				mu.Lock()
				later[s.ID] = d.engine.Now().Add(min(recheckPause, d.file.Get().Recheck/10))
				mu.Unlock()
			}
		})
	}
	work.Wait()
	r.after = later
}

// check asks for the confirmation of one person. An error means that the outcome is unknown: the session continues until the latest moment of its check. It keeps the
// provider's new refresh token, because the next check with the previous one would end the session.
func (d *Door) check(ctx context.Context, s *people.SignIn) error {
	ctx = audit.With(ctx, audit.Origin{Principal: "muster", Door: audit.DoorSignIn, Operation: "RecheckPerson"})
	if s.Provider == people.Own {
		return d.checkOwn(ctx, s)
	}
	p := d.file.Get().byName[s.Provider]
	if p == nil { // it is no longer in the settings
		return d.End(ctx, s.ID, people.NoLongerKnown)
	}
	if len(s.Refresh) == 0 {
		return nil // the session ends at that moment, and the person must sign in again
	}
	token, err := d.openRefresh(s)
	if err != nil {
		return d.End(ctx, s.ID, people.NotConfirmed)
	}
	person, err := p.Refresh(ctx, token, s.Subject)
	switch {
	case errors.Is(err, providers.ErrGone):
		return d.End(ctx, s.ID, people.NoLongerKnown)
	case err != nil:
		if person.Refresh != "" && person.Refresh != token {
			keep := &people.KeepRefresh{ID: s.ID, Refresh: d.sealRefresh(s.ID, person.Refresh)}
			err = errors.Join(err, d.engine.Do(audit.Without(ctx), keep))
		}
		return err
	}
	groups := s.Groups
	if person.GroupsSaid {
		groups = person.Groups
	}
	return d.renew(ctx, s, &people.RenewSession{ID: s.ID, Name: person.Name, Groups: groups, Roles: p.Roles.Of(groups), Refresh: d.sealRefresh(s.ID, person.Refresh)})
}

// checkOwn looks up one of the cell's own people, whose roles follow from the groups by the current settings.
func (d *Door) checkOwn(ctx context.Context, s *people.SignIn) error {
	person, known, err := d.person(ctx, s.Subject)
	if err != nil {
		return err
	}
	if !known || d.file.Get().NoOwn {
		return d.End(ctx, s.ID, people.NoLongerKnown)
	}
	err = d.renew(ctx, s, &people.RenewSession{ID: s.ID, Name: person.Name, Groups: person.Groups, Roles: d.OwnRoles(person.Groups)})
	if domain.IsRefused(err, domain.Conflict) {
		return nil // the groups have changed since, and the sessions with them: the next pass confirms the person
	}
	return err
}

// renew stores the outcome, which is in force at this node when it returns. The audit log records it only if the groups or roles have changed.
func (d *Door) renew(ctx context.Context, s *people.SignIn, cmd *people.RenewSession) error {
	cmd.Check = d.file.Get().Recheck
	if cmd.Roles == s.Roles && sameGroups(cmd.Groups, s.Groups) {
		ctx = audit.Without(ctx)
	}
	if err := d.engine.Do(ctx, cmd); err != nil || cmd.SignIn.Changed == 0 { // 0: the session has ended
		return err
	}
	return d.config.Keys.Await(ctx, cmd.SignIn.Changed)
}

// OwnRoles returns the roles that groups of the cell's own people grant.
func (d *Door) OwnRoles(groups []string) access.RoleSet {
	if d.file.Get().NoOwn {
		return 0
	}
	return d.file.Get().Own.Of(groups)
}

// OwnGroups returns the groups that grant roles to the cell's own people, sorted by name.
func (d *Door) OwnGroups() []string {
	if d.file.Get().NoOwn {
		return nil
	}
	return d.file.Get().Own.Groups()
}

// sameGroups reports whether two lists have the same groups, in any order.
func sameGroups(a, b []string) bool {
	sorted := func(x []string) []string {
		x = slices.Clone(x)
		slices.Sort(x)
		return slices.Compact(x)
	}
	return slices.Equal(sorted(a), sorted(b))
}

func (d *Door) person(ctx context.Context, id string) (x people.Person, ok bool, err error) {
	err = d.engine.Read(ctx, func(v *cell.View) error {
		x, ok = v.Person(id)
		return nil
	})
	return x, ok, err
}
