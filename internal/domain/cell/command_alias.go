package cell

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
)

// CreateAlias makes a name for a fleet.
type CreateAlias struct {
	Alias fleet.Alias // ID, Region, Account, Name, Description, Tags, and a fleet or a message

	// Result: Alias as it was stored.
}

func (cmd *CreateAlias) decide(t *tx) error {
	if n, most := t.c.fleets.Aliases.Len(), t.c.config.AliasesMax; n >= most {
		return domain.Refuse(domain.LimitExceeded, "%d aliases exist; the limit is %d", n, most)
	}
	a := &cmd.Alias
	if err := t.checkRoute(a); err != nil {
		return err
	}
	tags, err := t.tagged(AliasResource, nil, a.Tags)
	if err != nil {
		return err
	}
	a.Created, a.Updated, a.Tags = t.now, t.now, tags
	t.emit(&AliasChanged{*a})
	return nil
}

// checkRoute checks what an alias stands for.
func (t *tx) checkRoute(a *fleet.Alias) error {
	if a.Terminal {
		return nil
	}
	_, f, err := t.fleetByID(a.Fleet)
	if err == nil && f.Status == fleet.Deleting {
		err = domain.Refuse(domain.NotFound, "fleet %s is being deleted", f.ID)
	}
	return err
}

// aliasByID finds an alias or refuses.
func (c *Cell) aliasByID(id string) (*fleet.Alias, error) {
	r, ok := c.fleets.Aliases.Find(id)
	if !ok {
		return nil, domain.Refuse(domain.NotFound, "alias %s not found", id)
	}
	return c.fleets.Aliases.Get(r), nil
}

// resolveAlias is the fleet that an alias stands for now. The fleet itself may be gone.
func (c *Cell) resolveAlias(id string) (fleetID string, err error) {
	a, err := c.aliasByID(id)
	switch {
	case err != nil:
		return "", err
	case a.Terminal:
		return "", domain.Refuse(domain.TerminalRoute, "%s", a.Message)
	}
	return a.Fleet, nil
}

// Route is what an alias is to stand for: a fleet, or nothing but a message.
type Route struct {
	Fleet    string
	Terminal bool
	Message  string
}

// UpdateAlias changes what is given and keeps the rest. The next request sees it; running game sessions stay.
type UpdateAlias struct {
	ID                string
	Name, Description *string
	Route             *Route

	// Result
	Alias fleet.Alias
}

func (cmd *UpdateAlias) decide(t *tx) error {
	old, err := t.c.aliasByID(cmd.ID)
	if err != nil {
		return err
	}
	a := *old
	set(&a.Name, cmd.Name)
	set(&a.Description, cmd.Description)
	if r := cmd.Route; r != nil {
		a.Fleet, a.Terminal, a.Message = r.Fleet, r.Terminal, r.Message
		if err := t.checkRoute(&a); err != nil {
			return err
		}
	}
	a.Updated = t.now
	t.emit(&AliasChanged{a})
	t.c.replanAll(t.now)
	cmd.Alias = a
	return nil
}

// DeleteAlias removes an alias; its fleet stays.
type DeleteAlias struct{ ID string }

func (cmd *DeleteAlias) decide(t *tx) error {
	if _, err := t.c.aliasByID(cmd.ID); err != nil {
		return err
	}
	t.emit(&AliasRemoved{cmd.ID})
	t.c.replanAll(t.now)
	return nil
}
