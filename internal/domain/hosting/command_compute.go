package hosting

import (
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/quota"
)

// RegisterCompute adds a host to a fleet. A repeat with the same name and location updates the address, because agents and the game
// server wrapper register at every start.
type RegisterCompute struct {
	Compute fleet.Compute // FleetID, Name, Location, IPAddress, DNSName, CertificatePath; Registration, random, for a new one

	// Result: Compute, as stored.
}

// Hold implements quota.Taker.
func (cmd *RegisterCompute) Hold(h quota.Holder) { cmd.Compute.Holder = h }

func (cmd *RegisterCompute) Decide(k *kernel.Tx) error { return cmd.register(kernel.Of[*Tx](k)) }

func (cmd *RegisterCompute) register(t *Tx) error {
	x := &cmd.Compute
	_, f, err := t.fleetByID(x.FleetID)
	if err != nil {
		return err
	}
	switch f.Status {
	case fleet.Deleting:
		return domain.Refuse(domain.Invalid, "%s", notActive(f))
	case fleet.Unstarted, fleet.Downloading, fleet.Activating:
		return domain.Refuse(domain.NotReady, "%s", notActive(f))
	}
	if status, ok := f.HasLocation(x.Location); !ok || status != fleet.Active {
		return domain.Refuse(domain.Invalid, "Location: fleet %s has no location %q; it has %s", f.ID, x.Location, locationNames(f))
	}
	if x.IPAddress == "" && x.DNSName == "" {
		return domain.Refuse(domain.Invalid, "IpAddress: an ANYWHERE fleet needs the compute's IpAddress or DnsName")
	}
	var tags []fleet.Tag
	registration := x.Registration
	if r, ok := t.Fleets.Compute(x.FleetID, x.Name); ok {
		old := t.compute(r)
		if old.Location != x.Location {
			return domain.Refuse(domain.Conflict, "compute %s is registered in location %s already", x.Name, old.Location)
		}
		tags, registration = old.Tags, old.Registration
	} else if n := t.Fleets.ComputeCount(x.FleetID); n >= t.Config.ComputesInFleetMax {
		return domain.Refuse(domain.LimitExceeded, "fleet %s has %d computes; the limit is %d", x.FleetID, n, t.Config.ComputesInFleetMax)
	} else if err := t.Take(quota.Computes, &t.Fleets.Held().Computes, &x.Holder, 0); err != nil {
		return err
	}
	t.Emit(&ComputeRegistered{fleet.Compute{
		FleetID: x.FleetID, Name: x.Name, Location: x.Location, IPAddress: x.IPAddress, DNSName: x.DNSName,
		CertificatePath: x.CertificatePath, Created: t.Now, Tags: tags, Registration: registration, Holder: x.Holder,
	}})
	r, _ := t.Fleets.Compute(x.FleetID, x.Name)
	*x = *t.compute(r)
	return nil
}

func locationNames(f *fleet.Fleet) string {
	names := ""
	for _, l := range f.Locations {
		if l.Status == fleet.Active {
			if names != "" {
				names += ", "
			}
			names += l.Name
		}
	}
	return names
}

func (t *Tx) computeByName(fleetID, name string) (fleet.ComputeRef, *fleet.Compute, error) {
	if _, _, err := t.fleetByID(fleetID); err != nil {
		return 0, nil, err
	}
	r, ok := t.Fleets.Compute(fleetID, name)
	if !ok {
		return 0, nil, domain.Refuse(domain.NotFound, "compute %s not found in fleet %s", name, fleetID)
	}
	return r, t.compute(r), nil
}

// DeregisterCompute removes a host. It voids the host's tokens and ends its server processes and game sessions in the state; the
// processes themselves may keep running.
type DeregisterCompute struct{ Fleet, Name string }

func (cmd *DeregisterCompute) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	r, _, err := t.computeByName(cmd.Fleet, cmd.Name)
	if err != nil {
		return err
	}
	t.removeCompute(r)
	return nil
}

// removeCompute ends everything on a compute and removes it.
func (t *Tx) removeCompute(r fleet.ComputeRef) {
	var running []fleet.ProcessRef
	t.Fleets.ProcessesOn(r, func(p fleet.ProcessRef, x *fleet.Process) bool {
		if x.State != fleet.Ended {
			running = append(running, p)
		}
		return true
	})
	for _, p := range running {
		t.endProcess(p, fleet.EndedWithCompute, 0)
	}
	x := t.compute(r)
	t.Emit(&ComputeRemoved{x.FleetID, x.Name})
}

// IssueToken returns the current auth token of a compute while enough of its life is left, and otherwise makes a new one.
type IssueToken struct {
	Fleet, Compute string

	// Result
	Generation uint32
	Expires    domain.Time
	Registered fleet.Compute
}

func (cmd *IssueToken) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	_, x, err := t.computeByName(cmd.Fleet, cmd.Compute)
	if err != nil {
		return err
	}
	cmd.Generation, cmd.Expires, cmd.Registered = x.TokenGeneration, x.TokenExpires, *x
	if x.TokenGeneration != 0 && x.TokenExpires.Sub(t.Now) > t.Config.TokenReplaced() {
		return nil
	}
	cmd.Generation++
	cmd.Expires = t.Now.Add(t.Config.TokenLife)
	t.Emit(&TokenIssued{
		Fleet: cmd.Fleet, Compute: cmd.Compute, Generation: cmd.Generation, Expires: cmd.Expires, PreviousExpires: x.TokenExpires,
		Void: x.TokensVoid,
	})
	return nil
}

// RotateToken replaces the auth token of a compute at once: all earlier tokens are void for new connections and for
// Server.Exchange. Connections that were authenticated with one of them end.
type RotateToken struct {
	Fleet, Compute string
	KeepLinks      bool // such connections stay open, and their processes get the new token

	// Result
	Generation uint32
	Expires    domain.Time
}

func (cmd *RotateToken) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	_, x, err := t.computeByName(cmd.Fleet, cmd.Compute)
	if err != nil {
		return err
	}
	cmd.Generation, cmd.Expires = x.TokenGeneration+1, t.Now.Add(t.Config.TokenLife)
	t.Emit(&TokenIssued{
		Fleet: cmd.Fleet, Compute: cmd.Compute, Generation: cmd.Generation, Expires: cmd.Expires,
		Void: x.TokenGeneration, KeepLinks: cmd.KeepLinks,
	})
	t.fleetEvent(cmd.Fleet, "GENERIC_EVENT", "The auth token of compute "+cmd.Compute+" was replaced; the tokens before are void")
	return nil
}
