package hosting

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/quota"
)

// CreateAlias creates an alias.
type CreateAlias struct {
	Alias fleet.Alias // ID, Region, Account, Name, Description, Tags, and a fleet or a message

	// Result: Alias, as stored.
}

// Hold implements quota.Taker.
func (cmd *CreateAlias) Hold(h quota.Holder) { cmd.Alias.Holder = h }

func (cmd *CreateAlias) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if n, most := t.Fleets.Aliases.Len(), t.Config.AliasesMax; n >= most {
		return domain.Refuse(domain.LimitExceeded, "%d aliases exist; the limit is %d", n, most)
	}
	a := &cmd.Alias
	if err := t.Take(quota.Aliases, t.Fleets.Aliases.Held(), &a.Holder, t.Config.AliasesMax); err != nil {
		return err
	}
	if err := t.checkRoute(a); err != nil {
		return err
	}
	tags, err := t.Tagged(nil, nil, a.Tags)
	if err != nil {
		return err
	}
	a.Created, a.Updated, a.Tags = t.Now, t.Now, tags
	t.Emit(&AliasChanged{*a})
	return nil
}

// checkRoute checks the target of an alias.
func (t *Tx) checkRoute(a *fleet.Alias) error {
	if a.Terminal {
		return nil
	}
	_, f, err := t.fleetByID(a.Fleet)
	if err == nil && f.Status == fleet.Deleting {
		err = domain.Refuse(domain.NotFound, "fleet %s is being deleted", f.ID)
	}
	return err
}

func (c *State) aliasByID(id string) (*fleet.Alias, error) {
	r, ok := c.Fleets.Aliases.Find(id)
	if !ok {
		return nil, domain.Refuse(domain.NotFound, "alias %s not found", id)
	}
	return c.Fleets.Aliases.Get(r), nil
}

// resolveAlias returns the fleet that an alias points to now. The fleet itself may be gone.
func (c *State) resolveAlias(id string) (fleetID string, err error) {
	a, err := c.aliasByID(id)
	switch {
	case err != nil:
		return "", err
	case a.Terminal:
		return "", domain.Refuse(domain.TerminalRoute, "%s", a.Message)
	}
	return a.Fleet, nil
}

// Route is the target of an alias: a fleet, or only a message.
type Route struct {
	Fleet    string
	Terminal bool
	Message  string
}

// UpdateAlias changes the given fields and keeps the others. The next request sees the change; running game sessions stay.
type UpdateAlias struct {
	ID                string
	Name, Description *string
	Route             *Route

	// Result
	Alias fleet.Alias
}

func (cmd *UpdateAlias) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	old, err := t.aliasByID(cmd.ID)
	if err != nil {
		return err
	}
	if cmd.Route != nil {
		if err := t.notMoving(cmd.ID); err != nil {
			return domain.Refuse(domain.Invalid, "RoutingStrategy: %v", err) // the API declares no conflict here
		}
	}
	a := *old
	kernel.Patch(&a.Name, cmd.Name)
	kernel.Patch(&a.Description, cmd.Description)
	if r := cmd.Route; r != nil {
		a.Fleet, a.Terminal, a.Message = r.Fleet, r.Terminal, r.Message
		if err := t.checkRoute(&a); err != nil {
			return err
		}
	}
	a.Updated = t.Now
	t.Emit(&AliasChanged{a})
	if r, ok := t.rollout(cmd.ID); ok && cmd.Route != nil && r.Phase == fleet.RolloutReturning {
		r.Phase, r.Why = fleet.RolloutUndone, r.Why+"; UpdateAlias set another route meanwhile"
		t.Emit(&RolloutChanged{r})
	}
	if cmd.Route != nil {
		t.replanAll(t.Now)
	}
	cmd.Alias = a
	return nil
}

// DeleteAlias removes an alias; its fleet stays.
type DeleteAlias struct{ ID string }

func (cmd *DeleteAlias) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if _, err := t.aliasByID(cmd.ID); err != nil {
		return err
	}
	if err := t.notMoving(cmd.ID); err != nil {
		return domain.Refuse(domain.Invalid, "AliasId: %v", err)
	}
	t.Emit(&AliasRemoved{cmd.ID})
	t.replanAll(t.Now)
	return nil
}
