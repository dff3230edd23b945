package errors_test

import (
	stderrors "errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/cockroachdb/errors/join"
	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/redact"
)

var corrupt = errors.New("pebble: corruption")

func TestMessages(t *testing.T) {
	cause := stderrors.New("cause")
	for want, err := range map[string]error{
		"plain":                         errors.New("plain"),
		"table 7 is x":                  errors.Newf("table %d is %s", errors.Safe(7), redact.RedactableString("‹x›")),
		"read: cause":                   errors.Errorf("read: %w", cause),
		"open f: cause":                 errors.Wrapf(cause, "open %s", "f"),
		"load: cause":                   errors.Wrap(cause, "load"),
		"cause":                         errors.Wrap(cause, ""),
		"2 > 1":                         errors.AssertionFailedf("%d > %d", 2, errors.Safe(1)),
		"bad block":                     errors.Mark(errors.Newf("bad %s", "block"), corrupt),
		"first":                         errors.CombineErrors(errors.New("first"), cause),
		"only":                          errors.CombineErrors(nil, errors.New("only")),
		"detailed":                      errors.WithDetailf(errors.WithStack(errors.New("detailed")), "of %s", "it"),
		"pebble: corruption\ncause":     join.Join(corrupt, nil, cause),
		"cause\nplain":                  errors.Join(cause, errors.New("plain")),
		"table 000007 at 0.50 is \"f\"": errors.Errorf("table %06d at %.2f is %q", 7, 0.5, "f"),
	} {
		if got := err.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := fmt.Sprintf("%v", err); got != want {
			t.Errorf("formatted: %q, want %q", got, want)
		}
	}
}

func TestCauses(t *testing.T) {
	full := &fs.PathError{Op: "write", Path: "f", Err: syscall.ENOSPC}
	err := errors.Mark(errors.Wrapf(errors.WithStack(errors.Errorf("write: %w", full)), "flush"), corrupt)
	for _, reference := range []error{corrupt, full, syscall.ENOSPC} {
		if !errors.Is(err, reference) {
			t.Errorf("%v is not %v", err, reference)
		}
	}
	if errors.Is(err, os.ErrNotExist) || errors.Is(errors.Newf("x"), errors.New("x")) {
		t.Error("an error is another one")
	}
	var path *fs.PathError
	if !errors.As(err, &path) || path.Path != "f" {
		t.Error("the cause is not found")
	}
	if got := errors.UnwrapAll(err); got != syscall.ENOSPC {
		t.Errorf("the first cause is %v", got)
	}
	if missing := errors.Mark(errors.New("object"), os.ErrNotExist); !oserror.IsNotExist(missing) || oserror.IsExist(missing) {
		t.Error("a marked error does not count as missing")
	}
	if _, err := os.Open(t.TempDir() + "/none"); !oserror.IsNotExist(errors.Wrap(err, "open")) || oserror.IsPermission(err) {
		t.Error("a missing file does not count as missing")
	}
	if !errors.IsAssertionFailure(errors.AssertionFailedf("x")) || errors.IsAssertionFailure(corrupt) {
		t.Error("assertions are not told apart")
	}
}

func TestNil(t *testing.T) {
	for what, err := range map[string]error{
		"Wrap": errors.Wrap(nil, "x"), "Wrapf": errors.Wrapf(nil, "x"), "Mark": errors.Mark(nil, corrupt), "CombineErrors": errors.CombineErrors(nil, nil),
		"WithStack": errors.WithStack(nil), "Join": errors.Join(nil, nil), "WithDetailf": errors.WithDetailf(nil, "x"),
	} {
		if err != nil {
			t.Errorf("%s of nil: %v", what, err)
		}
	}
}
