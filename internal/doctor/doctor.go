// Package doctor examines a machine, the settings of a service and the service itself, and says of each finding what to do. It changes nothing: the
// files that it writes to measure the disk are gone when it returns, and the server process with which it tries InitSDK ends in good order.
package doctor

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/operator"
	"github.com/musterhq/muster/internal/settings"
)

// Level says how bad a Finding is.
type Level string

// The levels, from the best to the worst; Skipped is neither.
const (
	OK      Level = "ok"
	Skipped Level = "skipped" // the check was not possible
	Warning Level = "warning" // works, and may not much longer, or not for all
	Failure Level = "failure" // does not work
)

// Finding is the outcome of one check.
type Finding struct {
	Check string `json:"check"` // what was examined
	Level Level  `json:"level"`
	Found string `json:"found"`
	Do    string `json:"do,omitempty"` // the next step; empty: none is needed
}

// Service is a running service as the doctor can ask it.
type Service interface {
	// Overview answers with what an operator sees first. Its error says what keeps it from answering.
	Overview(ctx context.Context) (*operator.Overview, error)
	// Hosts lists the hosts with agents.
	Hosts(ctx context.Context) (*operator.HostList, error)
}

// Config is what an examination needs.
type Config struct {
	Settings settings.Settings
	Endpoint string // URL of the service for clients
	Version  string // of this program
	// Service is asked. nil: it is not, since no access key is known; NoService says why, if looking for one failed.
	Service   Service
	NoService error
	Running   bool  // a service runs on the data directory; perhaps not with these settings
	Hangs     error // the service of the data directory is there and does not answer; nil: it does, or none is there
	// InitSDK connects a server process as a server SDK does, and ends it; an Untried says why it could not. nil: it is not tried, for the reason NoSDK.
	InitSDK func(ctx context.Context, trust *tls.Config) error
	NoSDK   string
	Seek    func(ctx context.Context) // sets Service, NoService, Running and Hangs, behind the checks of the machine; nil: they are set
	Tell    func(Finding)             // is called with each finding as soon as it is there; nil: no one waits for them
}

// Untried is the error of a check that was not possible.
type Untried string

func (u Untried) Error() string { return string(u) }

// patience bounds each check that waits for a network.
const patience = 10 * time.Second

// restart is the next step where a service hangs.
const restart = "restart the service; before that, muster support-bundle collects what may show the cause"

// Examine makes all checks, in an order in which the first failure explains most of the later ones.
func Examine(ctx context.Context, c *Config) []Finding {
	x := &examination{Config: c}
	for _, check := range []func(context.Context){
		x.settings, x.dataDirectory, x.disk, x.descriptors, x.memory, x.clock, x.hangs, x.ports, x.certificateFiles, x.publicURL, x.service, x.backups, x.secret, x.cluster, x.agents, x.sdk,
	} {
		if ctx.Err() != nil {
			x.add("time", Failure, "see which of the findings above is about something slow", "the remaining checks were not made: %v", ctx.Err())
			break
		}
		check(ctx)
	}
	return x.found
}

type examination struct {
	*Config
	found    []Finding
	overview *operator.Overview // of the service; nil: it did not answer
	silent   bool               // what is at Endpoint does not answer, so no other check asks it
}

func (x *examination) add(check string, level Level, do, found string, args ...any) {
	f := Finding{check, level, fmt.Sprintf(found, args...), do}
	x.found = append(x.found, f)
	if x.Tell != nil {
		x.Tell(f)
	}
}

// skip is the finding of a check that would ask a service which does not answer.
func (x *examination) skip(check string) { x.add(check, Skipped, "", "the service does not answer") }

// Worst returns the worst level of some findings.
func Worst(found []Finding) Level {
	worst := OK
	for _, f := range found {
		if f.Level == Failure || f.Level == Warning && worst != Failure {
			worst = f.Level
		}
	}
	return worst
}

// settings are those in force.
func (x *examination) settings(context.Context) {
	if err := x.Settings.Check(); err != nil {
		x.add("settings", Failure, "fix them; muster config shows where each value comes from", "%v", err)
		return
	}
	x.add("settings", OK, "", "every setting has a valid value")
	if x.Settings.Dev {
		x.add("settings", Warning, "leave out --dev in production, and create access keys with muster keys create", "development mode is on: the service accepts any credentials from this machine")
	}
}
