package main

import (
	"context"
	"log/slog"
	"os"
	"slices"

	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/eventlog"
)

// serviceName is the name of the service and of the source of its events. An agent has its own, since it may run beside the service.
func serviceName() string {
	if slices.Contains(os.Args[1:], "agent") {
		return "muster-agent"
	}
	return "muster"
}

// eventLog returns a function that adds an event to the Windows Event Log, if Windows' service manager started this program; otherwise nil.
func eventLog() func(level slog.Level, text string) error {
	if service, err := svc.IsWindowsService(); err != nil || !service {
		return nil
	}
	// This fails from the second start on, and for a user who may not register sources. Events of an unregistered source are kept as well; the viewer
	// only precedes them with a note.
	_ = eventlog.InstallAsEventCreate(serviceName(), eventlog.Error|eventlog.Warning|eventlog.Info)
	log, err := eventlog.Open(serviceName())
	if err != nil {
		return nil
	}
	return func(level slog.Level, text string) error {
		const id = 1 // the message file of eventcreate.exe, which shows the text of any event, has the ids from 1 to 1000
		switch {
		case level >= slog.LevelError:
			return log.Error(id, text)
		case level >= slog.LevelWarn:
			return log.Warning(id, text)
		}
		return log.Info(id, text)
	}
}

// runAsService runs f. If Windows' service manager started this program, it also answers the manager's requests.
func runAsService(ctx context.Context, f func(context.Context) error) error {
	if service, err := svc.IsWindowsService(); err != nil || !service {
		return f(ctx)
	}
	s := &windowsService{ctx: ctx, run: f}
	if err := svc.Run(serviceName(), s); err != nil {
		return err
	}
	return s.err
}

type windowsService struct {
	ctx context.Context
	run func(context.Context) error
	err error
}

// Execute runs the program until it ends or the manager stops it.
func (s *windowsService) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.run(ctx) }()
	running := svc.Status{State: svc.Running, Accepts: svc.AcceptStop | svc.AcceptShutdown}
	status <- running
	for {
		select {
		case s.err = <-done:
			if s.err != nil {
				return true, 1
			}
			return false, 0
		case r := <-requests:
			switch r.Cmd {
			case svc.Interrogate:
				status <- running
			case svc.Stop, svc.Shutdown:
				running = svc.Status{State: svc.StopPending}
				status <- running
				cancel()
			}
		}
	}
}
