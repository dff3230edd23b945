package hosting

import (
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/catalog"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// Limits of rollouts.
const (
	// RolloutsMax bounds the rollouts in progress, because every event of hosting examines each of them.
	RolloutsMax     = 100
	RolloutStepsMax = 20
	RolloutStepMin  = time.Second
	RolloutStepMax  = 7 * 24 * time.Hour
)

// StartRollout begins to move the new game sessions of an alias to another fleet. Running game sessions stay where they are.
type StartRollout struct {
	Alias          string // its id, or its name if that is unique
	To             string // id of a fleet
	Weights        []int32
	StepTime       time.Duration
	Failures       int32
	FailurePercent int32
	Keep           bool
	By             string // principal

	// Result
	Rollout fleet.Rollout
}

// Decide emits RolloutChanged and, if there is only one step, AliasChanged.
func (cmd *StartRollout) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	a, err := t.aliasNamed(cmd.Alias)
	if err != nil {
		return err
	}
	if err := cmd.check(t, a); err != nil {
		return err
	}
	r := fleet.Rollout{
		Alias: a.ID, No: 1, From: a.Fleet, To: cmd.To, By: cmd.By, Started: t.Now, StepTime: cmd.StepTime, Failures: cmd.Failures,
		FailurePercent: cmd.FailurePercent, Keep: cmd.Keep, Phase: fleet.RolloutMoving,
	}
	for _, w := range cmd.Weights {
		r.Weights = append(r.Weights, fleet.RolloutWeight{Percent: w})
	}
	if old, ok := t.rollout(a.ID); ok {
		r.No = old.No + 1
	}
	t.beginStep(&r, 0)
	t.rolloutEvent(&r, "has begun: "+t.inWords(&r))
	cmd.Rollout = r
	return nil
}

func (cmd *StartRollout) check(t *Tx, a *fleet.Alias) error {
	if a.Terminal {
		return domain.Refuse(domain.Invalid, "alias %s is terminal: it has no fleet to roll out from; point it to fleet %s with UpdateAlias", a.ID, cmd.To)
	}
	if err := t.notMoving(a.ID); err != nil {
		return err
	}
	if n := len(t.moving); n >= RolloutsMax {
		return domain.Refuse(domain.LimitExceeded, "%d rollouts are in progress; the limit is %d", n, RolloutsMax)
	}
	_, from, err := t.fleetByID(a.Fleet)
	if err != nil {
		return domain.Refuse(domain.Invalid, "alias %s points to fleet %s, which does not exist; point it to fleet %s with UpdateAlias", a.ID, a.Fleet, cmd.To)
	}
	_, to, err := t.fleetByID(cmd.To)
	switch {
	case err != nil:
		return err
	case to.ID == from.ID:
		return domain.Refuse(domain.Invalid, "to: alias %s points to fleet %s already", a.ID, to.ID)
	case to.Status != fleet.Active:
		return domain.Refuse(domain.WrongFleetStatus, "%s", notActive(to))
	case to.CertificateType != from.CertificateType:
		return domain.Refuse(domain.Invalid, "to: fleet %s has the certificate configuration %s, fleet %s has %s", to.ID, to.CertificateType, from.ID, from.CertificateType)
	case t.serving(to) == 0:
		return domain.Refuse(domain.WrongFleetStatus, "no server process of fleet %s is ready; give it hosts first (aws gamelift update-fleet-capacity), and look at muster explain fleet %s", to.ID, to.ID)
	case cmd.StepTime < RolloutStepMin || cmd.StepTime > RolloutStepMax || cmd.StepTime%time.Second != 0:
		return domain.Refuse(domain.Invalid, "step time %s: want whole seconds, %s to %s", cmd.StepTime, RolloutStepMin, RolloutStepMax)
	case cmd.Failures < 1:
		return domain.Refuse(domain.Invalid, "failures %d: want at least 1", cmd.Failures)
	case cmd.FailurePercent < 0 || cmd.FailurePercent > 100:
		return domain.Refuse(domain.Invalid, "failure percent %d: want 0 to 100", cmd.FailurePercent)
	}
	return checkWeights(cmd.Weights)
}

func checkWeights(all []int32) error {
	if n := len(all); n == 0 || n > RolloutStepsMax {
		return domain.Refuse(domain.Invalid, "steps: %d of them; want 1 to %d", n, RolloutStepsMax)
	}
	last := int32(0)
	for i, w := range all {
		if w <= last || w > 100 {
			return domain.Refuse(domain.Invalid, "steps[%d]: %d; want more than %d and at most 100", i, w, last)
		}
		last = w
	}
	if last != 100 {
		return domain.Refuse(domain.Invalid, "steps: the last one is %d; want 100", last)
	}
	return nil
}

// aliasNamed finds an alias by its id, ARN or name.
func (c *State) aliasNamed(name string) (*fleet.Alias, error) {
	if r, ok := c.Fleets.Aliases.Find(name[strings.LastIndexByte(name, '/')+1:]); ok {
		return c.Fleets.Aliases.Get(r), nil
	}
	all := c.Fleets.Aliases.Page(catalog.Place{}, 3, func(a *fleet.Alias) bool { return a.Name == name })
	switch len(all) {
	case 0:
		return nil, domain.Refuse(domain.NotFound, "there is no alias %.200q; want the id or the name of one", name)
	case 1:
		return &all[0], nil
	}
	return nil, domain.Refuse(domain.Conflict, "several aliases are named %.200q, such as %s and %s; want an id", name, all[0].ID, all[1].ID)
}

// notMoving refuses a change of an alias that is not allowed while a rollout moves it.
func (c *State) notMoving(alias string) error {
	if r, ok := c.rollout(alias); ok && r.Phase == fleet.RolloutMoving {
		return domain.Refuse(domain.Conflict, "alias %s is in a rollout from fleet %s to fleet %s; muster rollout --alias %s --undo ends it", alias, r.From, r.To, alias)
	}
	return nil
}

// fleetNotMoving refuses to remove a fleet that takes part in a rollout.
func (c *State) fleetNotMoving(fleetID string) error {
	for _, alias := range c.moving {
		switch r, _ := c.rollout(alias); {
		case r.Phase == fleet.RolloutMoving && r.Involves(fleetID):
			return domain.Refuse(domain.WrongFleetStatus, "fleet %s is in a rollout of alias %s from fleet %s to fleet %s; muster rollout --alias %s --undo ends it", fleetID, alias, r.From, r.To, alias)
		case r.Phase == fleet.RolloutReturning && r.From == fleetID:
			return domain.Refuse(domain.WrongFleetStatus, "alias %s returns to fleet %s as soon as that has a server process; UpdateAlias with a routing strategy ends the return", alias, fleetID)
		}
	}
	return nil
}

// UndoRollout points an alias back to the old fleet of its latest rollout.
type UndoRollout struct {
	Alias string // as in StartRollout
	By    string // principal

	// Result
	Rollout fleet.Rollout
}

// Decide emits RolloutChanged and, when the alias moves, AliasChanged. A drained fleet first gets its hosts back.
func (cmd *UndoRollout) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	a, err := t.aliasNamed(cmd.Alias)
	if err != nil {
		return err
	}
	r, ok := t.rollout(a.ID)
	if !ok {
		return domain.Refuse(domain.NotFound, "alias %s had no rollout", a.ID)
	}
	why := "undone by " + cmd.By
	switch r.Phase {
	case fleet.RolloutMoving:
		t.goBack(&r, why)
	case fleet.RolloutDone:
		if err := t.mayReturn(a, &r); err != nil {
			return err
		}
		t.beginReturn(&r, why)
	case fleet.RolloutReturning:
		return domain.Refuse(domain.Conflict, "the rollout of alias %s is being undone already: it waits for a server process of fleet %s", a.ID, r.From)
	default:
		return domain.Refuse(domain.Conflict, "the rollout of alias %s was undone at %s: %s", a.ID, r.Ended.Std().UTC().Format(time.DateTime), r.Why)
	}
	cmd.Rollout = r
	return nil
}

// mayReturn refuses to undo a completed rollout if the alias or the old fleet has changed since.
func (t *Tx) mayReturn(a *fleet.Alias, r *fleet.Rollout) error {
	if a.Terminal || a.Fleet != r.To {
		return domain.Refuse(domain.Conflict, "alias %s no longer points to fleet %s, to which the rollout moved it", a.ID, r.To)
	}
	if _, f, err := t.fleetByID(r.From); err != nil || f.Status == fleet.Deleting {
		return domain.Refuse(domain.Conflict, "fleet %s, from which the rollout moved alias %s, was deleted", r.From, a.ID)
	}
	return nil
}

// serving counts the server processes of a fleet that are ready for a game session or host one.
func (c *State) serving(f *fleet.Fleet) (n int32) {
	for _, l := range f.Locations {
		at := c.Fleets.SiteCounts(f.ID, l.Name)
		n += at.Processes
	}
	return n
}

// running counts the server processes of a fleet.
func (c *State) running(fleetID string) (n int64) {
	if r, ok := c.Fleets.Fleet(fleetID); ok {
		for _, l := range c.fleet(r).Locations {
			at := c.Fleets.SiteCounts(fleetID, l.Name)
			n += int64(at.Running())
		}
	}
	return n
}

// usedBy names a use of a fleet other than by the alias; "" if there is none.
func (c *State) usedBy(fleetID, alias string) string {
	others := c.Fleets.Aliases.Page(catalog.Place{}, 1, func(a *fleet.Alias) bool { return a.ID != alias && !a.Terminal && a.Fleet == fleetID })
	if len(others) > 0 {
		return "alias " + others[0].ID
	}
	for _, other := range c.moving {
		if r, _ := c.rollout(other); other != alias && r.Involves(fleetID) {
			return "the rollout of alias " + other
		}
	}
	var queues []string
	for _, q := range c.Placements.Queues.All() {
		if slices.ContainsFunc(q.Destinations, func(arn string) bool { return arn[strings.LastIndexByte(arn, '/')+1:] == fleetID }) {
			queues = append(queues, q.Name)
		}
	}
	if len(queues) > 0 {
		return "queue " + slices.Min(queues) // map order must not reach the journal
	}
	return ""
}
