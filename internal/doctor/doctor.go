// Package doctor examines a machine, the settings of a service and the service itself, and advises what to do about each finding. It changes nothing: it
// removes the files with which it measures the disk, and the server process with which it tries InitSDK ends normally.
package doctor

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/operator"
	"github.com/musterhq/muster/internal/settings"
)

// Level is the severity of a Finding.
type Level string

// The levels, from the best to the worst; Skipped is neither.
const (
	OK      Level = "ok"
	Skipped Level = "skipped" // the check was not possible
	Warning Level = "warning" // works, but perhaps not much longer or not for everyone
	Failure Level = "failure" // does not work
)

// Finding is the outcome of one check.
type Finding struct {
	Check string `json:"check"` // what was examined
	Level Level  `json:"level"`
	Found string `json:"found"`
	Do    string `json:"do,omitempty"` // the next step; empty: none
}

// Service answers the doctor's questions to a running service.
type Service interface {
	// Overview returns the overview for operators. Its error explains why the service does not answer.
	Overview(ctx context.Context) (*operator.Overview, error)
	// Hosts lists the hosts with agents.
	Hosts(ctx context.Context) (*operator.HostList, error)
}

// Config is what an examination needs.
type Config struct {
	Settings settings.Settings
	Endpoint string // URL of the service for clients
	Version  string // of this program
	// Service is nil if no access key is known. NoService is the error if the search for one failed.
	Service   Service
	NoService error
	Running   bool  // a service runs on the data directory, perhaps with other settings
	Hangs     error // the error if the service of the data directory exists but does not answer; nil: it answers, or there is none
	// InitSDK connects a server process as a server SDK does, and ends it. An Untried explains why that was not possible. nil: it is not tried, because of NoSDK.
	InitSDK func(ctx context.Context, trust *tls.Config) error
	NoSDK   string
	Seek    func(ctx context.Context, c *Config) // sets Service, NoService, Running, Hangs and InitSDK after the checks of the machine; nil: they are already set
	Tell    func(Finding)                        // receives each finding immediately; may be nil
}

// Untried is the error of a check that was not possible.
type Untried string

func (u Untried) Error() string { return string(u) }

// patience limits each check that waits for the network.
const patience = 10 * time.Second

// restart is the next step if a service hangs.
const restart = "restart the service; before that, muster support-bundle collects what may show the cause"

// step is a check with its name and the time that it may take.
type step struct {
	check string
	most  time.Duration
	run   func(*examination, context.Context)
}

// Limits of the checks that read or write files, whose disk may never answer. The other checks wait for the network, and with --dev read the
// file of the authority; the examination limits them.
const (
	diskPatience = 10 * time.Second
	seekPatience = 20 * time.Second // also asks the service on this machine
)

var steps = []step{
	{"settings", diskPatience, (*examination).settings},
	{"data directory", diskPatience, (*examination).dataDirectory},
	{"disk", diskPatience, (*examination).disk},
	{"file descriptors", diskPatience, (*examination).descriptors},
	{"memory", diskPatience, (*examination).memory},
	{"clock", diskPatience, (*examination).clock},
	{"service", seekPatience, (*examination).hangs},
	{"ports", 0, (*examination).ports},
	{"certificate", diskPatience, (*examination).certificateFiles},
	{"public URL", 0, (*examination).publicURL},
	{"service", 0, (*examination).service},
	{"backups", 0, (*examination).backups},
	{"secret", 0, (*examination).secret},
	{"cluster", 0, (*examination).cluster},
	{"agents", 0, (*examination).agents},
	{"InitSDK", 0, (*examination).sdk},
}

// Examine runs all checks. In their order, the first failure explains most of the later ones.
func Examine(ctx context.Context, c *Config) []Finding {
	x := &examination{Config: c}
	for _, s := range steps {
		if ctx.Err() != nil {
			x.add("time", Failure, "see which of the findings above is about something slow", "the remaining checks were not made: %v", ctx.Err())
			break
		}
		x.take(ctx, s)
	}
	return x.found
}

type examination struct {
	*Config
	overview *operator.Overview // of the service; nil: it did not answer
	silent   bool               // the program at Endpoint does not answer, so further checks do not ask it

	mu     sync.Mutex
	found  []Finding
	closed bool // it takes no more findings
}

// untilGivenUp is the time between the end of a check's context and the end of the wait for the check.
const untilGivenUp = time.Second

// take runs a check, but does not wait forever for one that hangs: no context ends a system call to a disk that does not answer. Such a check works
// on copies, and what it finds later is dropped.
func (x *examination) take(ctx context.Context, s step) {
	if s.most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.most)
		defer cancel()
	}
	config := *x.Config
	part := &examination{Config: &config, overview: x.overview, silent: x.silent}
	began, done := time.Now(), make(chan struct{})
	go func() {
		defer close(done)
		s.run(part, ctx)
	}()
	finished := true
	select {
	case <-done:
	case <-ctx.Done():
		select {
		case <-done:
		case <-time.After(untilGivenUp):
			finished = false
		}
	}
	part.mu.Lock()
	defer part.mu.Unlock()
	part.closed = true
	x.found = append(x.found, part.found...)
	if !finished {
		x.add(s.check, Failure, "see whether the kernel's log (dmesg) reports the disk, whether the server of a network file system is up, and whether the settings name a pipe instead of a file",
			"did not finish within %v: a file or its disk does not answer", time.Since(began).Round(time.Second))
		return
	}
	x.Config, x.overview, x.silent = part.Config, part.overview, part.silent
}

func (x *examination) add(check string, level Level, do, found string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return
	}
	f := Finding{check, level, fmt.Sprintf(found, args...), do}
	x.found = append(x.found, f)
	if x.Tell != nil {
		x.Tell(f)
	}
}

// skip adds the finding of a check that would ask a service that does not answer.
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

// settings checks the current settings.
func (x *examination) settings(context.Context) {
	if err := x.Settings.Check(); err != nil {
		x.add("settings", Failure, "fix them; muster config shows where each value comes from", "%v", err)
		return
	}
	x.add("settings", OK, "", "every setting has a valid value")
	if x.Settings.UnnamedProxy() {
		x.add("settings", Warning, "name the addresses from which the proxy connects in --trusted-proxies: 127.0.0.1 if it runs on this machine",
			"a proxy terminates TLS for %s, and no setting names it: limits by address count all clients together", x.Settings.PublicURL)
	}
	if x.Settings.Dev {
		x.add("settings", Warning, "leave out --dev in production, and create access keys with muster keys create", "development mode is on: the service accepts any credentials from this machine")
	}
}
