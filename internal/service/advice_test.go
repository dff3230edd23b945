package service

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/musterhq/muster/internal/embeddb"
)

// An error that prevents the service from starting names the next step.
func TestAdvice(t *testing.T) {
	bind := func(err error) error {
		return fmt.Errorf("listen on %q: %w", ":443", &net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", err)})
	}
	file := func(err error) error { return &fs.PathError{Op: "mkdir", Path: "/data", Err: err} }
	holder := embeddb.Holder{PID: 4711, Program: "muster serve"}
	for _, c := range []struct {
		err  error
		says string // empty: nothing is added
	}{
		{portError(bind(syscall.EADDRINUSE), "--listen"), "choose a free one with --listen"},
		{portError(bind(syscall.EADDRNOTAVAIL), "--listen"), "this machine does not have the address"},
		{portError(bind(syscall.EACCES), "--listen"), "CAP_NET_BIND_SERVICE"},
		{portError(file(syscall.EACCES), "--listen"), ""},
		{dataError(fmt.Errorf("open journal: %w", &embeddb.InUse{Dir: "/data/journal", Holder: holder}), "/data"), "end that process first"},
		{dataError(file(syscall.EACCES), "/data"), "chown -R"},
		{dataError(bind(syscall.EACCES), "/data"), ""},
		{dataError(file(syscall.ENOSPC), "/data"), "make room"},
		{dataError(file(syscall.EIO), "/data"), ""},
	} {
		if runtime.GOOS == "windows" && c.says == "chown -R" {
			continue
		}
		if text := c.err.Error(); !strings.Contains(text, c.says) || c.says == "" && strings.ContainsAny(text, ";") {
			t.Errorf("got %q, want %q", text, c.says)
		}
	}
	if err := dataError(file(syscall.EACCES), "/data"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v is no longer what it was", err)
	}
}
