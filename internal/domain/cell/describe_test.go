package cell

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/domain/session"
)

// namedID makes an identifier that describe knows the name of.
func (s *script) namedID(name string) domain.UUID {
	h := fnv.New128a()
	h.Write([]byte(name))
	id := domain.UUID(h.Sum(nil))
	s.names[id] = name
	return id
}

// since formats an instant as in scripts: the time since the script began.
func since(t int64) string { return (time.Duration(t-int64(scriptBegan)) * time.Millisecond).String() }

// until formats a contact deadline as in scripts, on the contact clock.
func until(t domain.ContactTime) string {
	if t == 0 {
		return ""
	}
	return " until=" + since(int64(t))
}

func gameName(id session.ID) string { return string(id)[strings.LastIndex(string(id), "/")+1:] }

// describe returns an event in the words of the scripts.
func (s *script) describe(e kernel.Event) string {
	name := typeName(e)
	return name + " " + strings.TrimSpace(s.details(e))
}

func (s *script) details(e kernel.Event) string {
	switch e := e.(type) {
	case *hosting.Resumed:
		return fmt.Sprintf("down=%s links%s seats%s", time.Duration(e.Downtime)*time.Millisecond, until(e.LostBy), until(e.SeatsBy))
	case *hosting.LocationChanged:
		return e.Location.Name + tagList(e.Location.Tags)
	case *hosting.LocationRemoved:
		return e.Name
	case *hosting.FleetChanged:
		return e.Fleet.ID + fleetDetails(&e.Fleet)
	case *hosting.FleetRemoved:
		return e.ID
	case *hosting.ComputeRegistered:
		text := e.Compute.Name + " at " + e.Compute.IPAddress
		if id := e.Compute.Registration; !id.IsZero() {
			text += fmt.Sprintf(" registration=%d", id[0])
		}
		return text
	case *hosting.ComputeRemoved:
		return e.Name
	case *hosting.TokenIssued:
		text := fmt.Sprintf("%s generation=%d expires=%s", e.Compute, e.Generation, since(int64(e.Expires)))
		if e.Void != 0 {
			text += fmt.Sprintf(" void=%d", e.Void)
		}
		if e.KeepLinks {
			text += " keep-links"
		}
		return text
	case *hosting.FleetEventWritten:
		return e.Event.Code
	case *hosting.CreationCounted:
		return fmt.Sprintf("%s until=%s", e.Creation.Creator, since(int64(e.Creation.Until)))
	case *hosting.GameSessionCreated:
		return gameName(e.ID) + " on " + e.Process.Process + until(e.ActivateBy)
	case *hosting.GameSessionPrompted:
		return gameName(e.ID)
	case *hosting.GameSessionActivated:
		return gameName(e.ID)
	case *hosting.GameSessionChanged:
		return fmt.Sprintf("%s name=%s players-max=%d deny=%t protected=%t properties=%v", gameName(e.ID), e.Name, e.PlayersMax, e.DenyPlayers, e.FullProtection, e.Properties)
	case *hosting.GameSessionTerminating:
		return gameName(e.ID)
	case *hosting.GameSessionEnded:
		return gameName(e.ID) + [...]string{"", " TRIGGERED_ON_PROCESS_TERMINATE", " FORCE_TERMINATED", " INTERRUPTED"}[e.Reason]
	case *hosting.PlayerReserved:
		return s.names[domain.UUID(e.PlayerSession)] + " " + e.Player + until(e.ReserveBy)
	case *hosting.PlayerAccepted:
		return s.names[domain.UUID(e.PlayerSession)]
	case *hosting.PlayerEnded:
		return s.names[domain.UUID(e.PlayerSession)] + " " + e.Status.String()
	case *kernel.Forgotten:
		return fmt.Sprint(e.Count)
	}
	if details := accessDetails(e); details != "" {
		return details
	}
	return processDetails(e)
}

func processDetails(e kernel.Event) string {
	switch e := e.(type) {
	case *hosting.ProcessConnected:
		return fmt.Sprintf("%s link=%d", e.Process.Process, e.Link) + when(e.New, " new") + until(e.ReadyBy)
	case *hosting.ProcessLinkLost:
		return e.Process.Process + until(e.LostBy)
	case *hosting.ProcessActivated:
		return fmt.Sprintf("%s port=%d", e.Process.Process, e.Port) + when(e.New, " new") + until(e.UnhealthyBy)
	case *hosting.ProcessHealthChanged:
		return e.Process.Process + [...]string{" unheard", " healthy", " unhealthy"}[e.Health] + until(e.UnhealthyBy)
	case *hosting.ProcessSettled:
		return e.Process.Process
	case *hosting.ProcessRefreshing:
		return e.Process.Process + when(e.Begun, " begun")
	case *hosting.ProcessTerminationAsked:
		return fmt.Sprintf("%s for %s told=%s", e.Process.Process, endReasons[e.Why], since(int64(e.Time))) + until(e.By)
	case *hosting.ProcessEnded:
		return fmt.Sprintf("%s %s remembered=%s", e.Process.Process, endReasons[e.Reason], since(int64(e.ForgetAt)))
	case *hosting.ProcessForgotten:
		return e.Process.Process
	}
	return placementDetails(e)
}

var endReasons = [...]string{
	fleet.EndedNormally: "normally", fleet.EndedCrashed: "crashed", fleet.EndedReplaced: "replaced", fleet.EndedUnhealthy: "unhealthy",
	fleet.EndedForced: "forced", fleet.EndedNeverReady: "never-ready", fleet.EndedWithCompute: "with-compute", fleet.EndedActivationLate: "activation-late",
}

func fleetDetails(f *fleet.Fleet) string {
	text := " " + f.Status.String() + when(f.FullProtection, " protected")
	for _, l := range f.Locations {
		text += " " + l.Name + when(l.Status == fleet.Deleting, "(DELETING)") + capacityDetails(l)
	}
	return text + managedDetails(f) + tagList(f.Tags)
}

func tagList(tags []fleet.Tag) string {
	text := ""
	for _, tag := range tags {
		text += " " + tag.Key + ":" + tag.Value
	}
	return text
}

func when(yes bool, text string) string {
	if yes {
		return text
	}
	return ""
}

// typeName returns the name of a value's type without its package.
func typeName(x any) string {
	name := fmt.Sprintf("%T", x)
	return name[strings.LastIndexByte(name, '.')+1:]
}
