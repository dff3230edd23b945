package main

import (
	"context"

	"golang.org/x/sys/windows/svc"
)

// runAsService runs f. If Windows' service manager started this program, it also answers the manager's requests.
func runAsService(ctx context.Context, f func(context.Context) error) error {
	if service, err := svc.IsWindowsService(); err != nil || !service {
		return f(ctx)
	}
	s := &windowsService{ctx: ctx, run: f}
	if err := svc.Run("muster-agent", s); err != nil {
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
