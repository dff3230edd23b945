package main

import (
	"context"
	"io"
	"os"
	"syscall"
	"testing"
)

// A service that is stopped while it starts ends like one that is stopped later: it has not failed.
func TestStopDuringTheStart(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := run(ctx, []string{"serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0"}, []string{"HOME=" + t.TempDir()}, io.Discard); err != nil {
		t.Error(err)
	}
}

// A SIGHUP that comes together with SIGTERM must not make a stopping service take over new settings.
func TestNoReloadWhileStopping(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for range 50 { // a select with two ready cases takes either
		x := &serving{hangups: make(chan os.Signal, 1)}
		x.hangups <- syscall.SIGHUP
		x.reloadOnHangup(ctx, nil)
	}
}
