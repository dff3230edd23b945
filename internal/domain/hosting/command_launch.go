package hosting

import (
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/kernel"
)

// LaunchTrouble is the reason why an entry of a runtime configuration does not run on a host.
type LaunchTrouble uint8

// The reasons.
const (
	BuildNotFetched LaunchTrouble = iota + 1
	PathNotFound                  // no program exists at the launch path
	CrashesTooOften               // its processes crash so often that the agent starts them only from time to time
	NotStarted                    // for another reason, such as a lack of ports
)

// ReportLaunch records in a fleet's event log why an entry of its runtime configuration does not run on a compute, according to the agent there. A
// repeat replaces the event with a newer one that counts it.
type ReportLaunch struct {
	Fleet, Compute string
	Path           string // of the entry
	Trouble        LaunchTrouble
	Why            string
}

// whyMax bounds a reason in an event, in bytes.
const whyMax = 500

// Decide emits FleetEventWritten.
func (cmd *ReportLaunch) Decide(k *kernel.Tx) error {
	t := kernel.Of[*Tx](k)
	_, x, err := t.computeByName(cmd.Fleet, cmd.Compute)
	if err != nil {
		return err
	}
	r, _ := t.Fleets.Fleet(cmd.Fleet)
	validating := t.fleet(r).Status != fleet.Active // no server process of the fleet has been ready yet
	on := " on compute " + x.Name + " in " + x.Location + ": "
	code, head := "GENERIC_EVENT", ""
	switch cmd.Trouble {
	case BuildNotFetched:
		code, head = "FLEET_BINARY_DOWNLOAD_FAILED", "The build cannot be fetched"+on
	case PathNotFound:
		if !validating {
			return nil // SERVER_PROCESS_INVALID_PATH reports it
		}
		code, head = "FLEET_VALIDATION_LAUNCH_PATH_NOT_FOUND", "Launch path "+cmd.Path+" cannot be run"+on
	case CrashesTooOften:
		head = "Server processes of " + cmd.Path + " crash too often, one starts every few minutes" + on
		if validating {
			code = "FLEET_VALIDATION_EXECUTABLE_RUNTIME_FAILURE"
		}
	default:
		head = "Server processes of " + cmd.Path + " cannot be started" + on
	}
	t.troubleEvent(cmd.Fleet, code, head, excerpt.Begin(cmd.Why, whyMax))
	return nil
}

// troubleTime is how long after its last event a problem counts as the same one.
const troubleTime = time.Hour

// troubleEvent writes an event about a problem that may persist: it replaces the previous event about the same problem, recognized by its beginning,
// and continues its count.
func (t *Tx) troubleEvent(fleetID, code, head, why string) {
	for _, r := range t.Fleets.EventsOf(fleetID) {
		e := t.Fleets.Events.Get(r)
		if e.Code != code || !strings.HasPrefix(e.Message, head) || t.Now.Sub(e.At) >= troubleTime {
			continue
		}
		if t.Level() >= countsFrom {
			t.writeFleetEvent(fleetID, code, head+why, 0, e)
		}
		return
	}
	t.fleetEvent(fleetID, code, head+why)
}
