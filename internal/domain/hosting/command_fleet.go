package hosting

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/domain/session"
)

// CreateLocation creates a custom location.
type CreateLocation struct {
	Name, Region, Account string
	Tags                  []fleet.Tag
	quota.Taking

	// Result
	Location fleet.Location
}

func (cmd *CreateLocation) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if _, ok := t.Fleets.Location(cmd.Name); ok {
		return domain.Refuse(domain.Conflict, "location %s exists already", cmd.Name)
	}
	if n := t.Fleets.Locations.Len(); n >= t.Config.LocationsMax {
		return domain.Refuse(domain.LimitExceeded, "%d custom locations exist; the limit is %d", n, t.Config.LocationsMax)
	}
	if err := t.Take(quota.Locations, &t.Fleets.Held().Locations, &cmd.Holder, t.Config.LocationsMax); err != nil {
		return err
	}
	tags, err := t.Tagged(nil, nil, cmd.Tags)
	if err != nil {
		return err
	}
	cmd.Location = fleet.Location{Name: cmd.Name, Region: cmd.Region, Account: cmd.Account, Created: t.Now, Tags: tags, Holder: cmd.Holder}
	t.Emit(&LocationChanged{cmd.Location})
	return nil
}

// DeleteLocation removes a custom location that no fleet uses.
type DeleteLocation struct{ Name string }

func (cmd *DeleteLocation) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	if _, ok := t.Fleets.Location(cmd.Name); !ok {
		return domain.Refuse(domain.NotFound, "location %s not found", cmd.Name)
	}
	for _, f := range t.Fleets.Fleets.All() {
		if _, used := f.HasLocation(cmd.Name); used {
			return domain.Refuse(domain.Invalid, "location %s is in use by fleet %s", cmd.Name, f.ID)
		}
	}
	t.Emit(&LocationRemoved{cmd.Name})
	return nil
}

// CreateFleet creates a fleet. An ANYWHERE fleet is ACTIVE at once, because there is no host to start. A fleet of a build is NEW until it
// gets a host.
type CreateFleet struct {
	Fleet     fleet.Fleet // ID, Region, Account, Name and the caller's optional fields; not Status, Created, Locations
	Locations []string    // in addition to the home location, which a fleet of a build always has

	// Result: Fleet, as stored.
}

// Hold implements quota.Taker.
func (cmd *CreateFleet) Hold(h quota.Holder) { cmd.Fleet.Holder = h }

func (cmd *CreateFleet) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	c := t.State
	switch n := c.Fleets.Fleets.Len(); {
	case n >= c.Config.FleetsMax:
		return domain.Refuse(domain.LimitExceeded, "%d fleets exist; the limit is %d", n, c.Config.FleetsMax)
	case len(cmd.Locations) == 0 && cmd.Fleet.Managed == nil:
		return domain.Refuse(domain.Invalid, "Locations: an ANYWHERE fleet needs at least one custom location")
	}
	f := &cmd.Fleet
	if err := t.Take(quota.Fleets, &c.Fleets.Held().Fleets, &f.Holder, c.Config.FleetsMax); err != nil {
		return err
	}
	f.Status, f.Created, f.Locations = fleet.Active, t.Now, nil
	if f.Managed != nil {
		if err := t.checkManaged(f); err != nil {
			return err
		}
		f.Status = fleet.Unstarted
		f.Locations = addedLocations(f, []string{f.Home()})
	}
	more := slices.DeleteFunc(slices.Clone(cmd.Locations), func(name string) bool { return name == f.Home() }) // the caller may name the home location, too
	if err := t.newLocations(f.Locations, more); err != nil {
		return err
	}
	if err := t.checkRuntime(f, f.Runtime); err != nil {
		return err
	}
	tags, err := t.Tagged(ownFleetTags, nil, f.Tags)
	if err != nil {
		return err
	}
	f.Tags, f.Locations = tags, addedLocations(f, more)
	t.Emit(&FleetChanged{*f})
	t.fleetEvent(f.ID, "FLEET_CREATED", "Fleet "+f.ID+" was created")
	for _, l := range f.Locations {
		t.locationAdded(f, l.Name)
	}
	if f.Status == fleet.Active {
		t.fleetEvent(f.ID, "FLEET_STATE_ACTIVE", "Fleet "+f.ID+" changed state to ACTIVE")
	} else {
		t.fleetEvent(f.ID, "GENERIC_EVENT", "Fleet "+f.ID+" has no host: it stays NEW until a host is free in one of its locations")
	}
	return nil
}

// addedLocations returns the locations of a fleet with more names added.
func addedLocations(f *fleet.Fleet, names []string) []fleet.FleetLocation {
	all := slices.Clone(f.Locations)
	for _, name := range names {
		l := fleet.FleetLocation{Name: name, Status: f.Status}
		if f.Managed != nil {
			l.Capacity = fleet.Capacity{Desired: 1, Max: 1} // B085
		}
		all = append(all, l)
	}
	return all
}

func (t *Tx) locationAdded(f *fleet.Fleet, name string) {
	code, state := "LOCATION_STATE_ACTIVE", "ACTIVE"
	if f.Status != fleet.Active {
		code, state = "LOCATION_STATE_CREATED", "CREATED"
	}
	t.fleetEvent(f.ID, code, "Location "+name+" of fleet "+f.ID+" changed state to "+state)
}

// newLocations checks the names of locations to be added to a fleet.
func (t *Tx) newLocations(have []fleet.FleetLocation, names []string) error {
	if n := len(have) + len(names); n > t.Config.LocationsInFleetMax {
		return domain.Refuse(domain.LimitExceeded, "Locations: %d locations in the fleet; the limit is %d", n, t.Config.LocationsInFleetMax)
	}
	for i, name := range names {
		if _, ok := t.Fleets.Location(name); !ok {
			return domain.Refuse(domain.NotFound, "Locations[%d].Location: location %s not found", i, name)
		}
		if slices.Contains(names[:i], name) {
			return domain.Refuse(domain.Invalid, "Locations[%d].Location: %s is named twice", i, name)
		}
		if slices.ContainsFunc(have, func(l fleet.FleetLocation) bool { return l.Name == name }) {
			return domain.Refuse(domain.Conflict, "Locations[%d].Location: the fleet has location %s already", i, name)
		}
	}
	return nil
}

func (t *Tx) fleetByID(id string) (fleet.Ref, *fleet.Fleet, error) {
	r, ok := t.Fleets.Fleet(id)
	if !ok {
		return 0, nil, domain.Refuse(domain.NotFound, "fleet %s not found", id)
	}
	return r, t.fleet(r), nil
}

// lastingFleet finds a fleet and refuses one that is being deleted.
func (t *Tx) lastingFleet(id string) (*fleet.Fleet, error) {
	_, f, err := t.fleetByID(id)
	if err == nil && f.Status == fleet.Deleting {
		err = domain.Refuse(domain.WrongFleetStatus, "%s", notActive(f))
	}
	return f, err
}

// notActive explains why a fleet accepts no game sessions and computes; "" if it does.
func notActive(f *fleet.Fleet) string {
	switch f.Status {
	case fleet.Unstarted:
		return "fleet " + f.ID + " is NEW: it has no host yet"
	case fleet.Downloading, fleet.Activating:
		return "fleet " + f.ID + " is " + f.Status.String() + ": no server process of it is ready yet"
	}
	return "fleet " + f.ID + " is being deleted"
}

// UpdateFleetAttributes changes the given fields and keeps the others.
type UpdateFleetAttributes struct {
	ID             string
	Name           *string
	Description    *string
	FullProtection *bool // new game sessions only
	CreationPolicy *fleet.CreationPolicy
	MetricGroups   []string
	Cost           *string

	// Result
	Fleet fleet.Fleet
}

func (cmd *UpdateFleetAttributes) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	old, err := t.lastingFleet(cmd.ID)
	if err != nil {
		return err
	}
	if cmd.Cost != nil && old.Managed != nil {
		return domain.Refuse(domain.Invalid, "AnywhereConfiguration: fleet %s is not an ANYWHERE fleet", old.ID)
	}
	f := *old
	kernel.Patch(&f.Name, cmd.Name)
	kernel.Patch(&f.Description, cmd.Description)
	kernel.Patch(&f.FullProtection, cmd.FullProtection)
	if cmd.CreationPolicy != nil {
		f.CreationPolicy = cmd.CreationPolicy
	}
	if cmd.MetricGroups != nil {
		f.MetricGroups = cmd.MetricGroups
	}
	if cmd.Cost != nil {
		f.Cost = cmd.Cost
	}
	protectionChanged, was := f.FullProtection != old.FullProtection, protection(old.FullProtection)
	t.Emit(&FleetChanged{f})
	if cmd.Cost != nil {
		t.replanAll(t.Now)
	}
	if protectionChanged {
		t.fleetEvent(f.ID, "FLEET_NEW_GAME_SESSION_PROTECTION_POLICY_UPDATED",
			"New game session protection policy changed from "+was+" to "+protection(f.FullProtection))
	}
	cmd.Fleet = f
	return nil
}

func protection(full bool) string {
	if full {
		return "FullProtection"
	}
	return "NoProtection"
}

// DeleteFleet begins to remove a fleet, which from then on accepts nothing new and wants no hosts (B216). Its computes, processes and game sessions end
// afterwards in small steps, so that a large fleet does not delay other commands.
type DeleteFleet struct{ ID string }

func (cmd *DeleteFleet) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	old, err := t.lastingFleet(cmd.ID)
	if err != nil {
		return err
	}
	if err := t.fleetNotMoving(old.ID); err != nil {
		return err
	}
	f := *old
	f.Status, f.Locations = fleet.Deleting, slices.Clone(f.Locations)
	for i := range f.Locations {
		c := &f.Locations[i].Capacity
		c.Desired, c.Min = 0, 0
	}
	t.Emit(&FleetChanged{f})
	t.replanAll(t.Now)
	t.fleetEvent(f.ID, "FLEET_DELETED", "Request to delete fleet "+f.ID)
	return nil
}

// AddFleetLocations adds custom locations to a fleet.
type AddFleetLocations struct {
	ID        string
	Locations []string

	// Result
	Fleet fleet.Fleet
}

func (cmd *AddFleetLocations) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	old, err := t.lastingFleet(cmd.ID)
	if err != nil {
		return err
	}
	if err := t.newLocations(old.Locations, cmd.Locations); err != nil {
		return err
	}
	f := *old
	f.Locations = addedLocations(&f, cmd.Locations)
	t.Emit(&FleetChanged{f})
	t.replanAll(t.Now)
	for _, name := range cmd.Locations {
		t.locationAdded(&f, name)
	}
	cmd.Fleet = f
	return nil
}

// RemoveFleetLocations begins to remove locations from a fleet; their computes, processes and game sessions end in small steps
// afterwards.
type RemoveFleetLocations struct {
	ID        string
	Locations []string

	// Result: the fleet, with the locations DELETING
	Fleet fleet.Fleet
}

func (cmd *RemoveFleetLocations) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	old, err := t.lastingFleet(cmd.ID)
	if err != nil {
		return err
	}
	f := *old
	f.Locations = slices.Clone(f.Locations)
	for i, name := range cmd.Locations {
		at := slices.IndexFunc(f.Locations, func(l fleet.FleetLocation) bool { return l.Name == name })
		switch {
		case at < 0:
			return domain.Refuse(domain.Invalid, "Locations[%d]: fleet %s has no location %s", i, f.ID, name)
		case slices.Contains(cmd.Locations[:i], name):
			return domain.Refuse(domain.Invalid, "Locations[%d]: %s is named twice", i, name)
		case name == f.Home():
			return domain.Refuse(domain.Invalid, "Locations[%d]: %s is the home location of fleet %s; delete the fleet instead", i, name, f.ID)
		}
		f.Locations[at].Status = fleet.Deleting
	}
	if !slices.ContainsFunc(f.Locations, func(l fleet.FleetLocation) bool { return l.Status != fleet.Deleting }) {
		return domain.Refuse(domain.Invalid, "Locations: fleet %s would have no location left; delete the fleet instead", f.ID)
	}
	t.Emit(&FleetChanged{f})
	t.replanAll(t.Now)
	for _, name := range cmd.Locations {
		t.fleetEvent(f.ID, "LOCATION_STATE_DELETING", "Location "+name+" of fleet "+f.ID+" changed state to DELETING")
	}
	cmd.Fleet = f
	return nil
}

// A server process that crashes in a loop, or a problem on many hosts, would fill the log of its fleet with an event every few seconds. Within the
// period, only this many events of one code are written one by one; each further event replaces the newest one, which counts them.
const (
	repeatsShown = 10
	repeatsTime  = 10 * time.Minute
)

// countsFrom is the level from which one event may stand for several.
const countsFrom = 2

func (t *Tx) fleetEvent(fleetID, code, message string) {
	t.lossEvent(fleetID, code, message, loss{})
}

// lossEvent writes an event about something that may have cost players their game.
func (t *Tx) lossEvent(fleetID, code, message string, by loss) {
	message += by.inWords()
	if frequent(code) && t.Level() >= countsFrom {
		if last, ok := t.Fleets.Frequent(fleetID, code, t.Now.Add(-repeatsTime), repeatsShown); ok {
			t.writeFleetEvent(fleetID, code, message, by.players, &last)
			return
		}
	}
	t.writeFleetEvent(fleetID, code, message, by.players, nil)
}

// loss is a game session that ended unexpectedly, and the number of players who had a seat in it.
type loss struct {
	game    session.ID
	players int64
}

func (l loss) inWords() string {
	switch l.players {
	case 0:
		return ""
	case 1:
		return "; 1 player lost game session " + string(l.game)
	}
	return fmt.Sprintf("; %d players lost game session %s", l.players, l.game)
}

// frequent reports whether hosts and server processes can cause events of a code repeatedly.
func frequent(code string) bool {
	return strings.HasPrefix(code, "SERVER_PROCESS_") || strings.HasPrefix(code, "FLEET_VALIDATION_") || code == "FLEET_BINARY_DOWNLOAD_FAILED"
}

// writeFleetEvent writes an event. If before is not nil, it replaces that event and continues its count.
func (t *Tx) writeFleetEvent(fleetID, code, message string, players int64, before *fleet.Event) {
	e := &FleetEventWritten{Event: fleet.Event{
		FleetID: fleetID, ID: t.NewID(), Code: code, Message: message, At: t.Now, No: t.eventNo + 1,
	}}
	if t.Level() >= countsFrom {
		e.Event.Players = players
	}
	if before != nil {
		e.Replaces, e.Event.Count = before.No, before.Times()+1
		e.Event.Players += before.Players
	}
	t.Emit(e)
}
