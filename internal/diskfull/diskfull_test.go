package diskfull

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
)

func TestIs(t *testing.T) {
	all := map[syscall.Errno]bool{syscall.EACCES: false, syscall.EMFILE: false}
	if runtime.GOOS == "windows" {
		all[39], all[112] = true, true
	} else {
		all[syscall.ENOSPC], all[syscall.EDQUOT] = true, true
	}
	for number, want := range all {
		err := fmt.Errorf("store: %w", &os.PathError{Op: "write", Path: "x", Err: number})
		if got := Is(err); got != want {
			t.Errorf("%v: %t", err, got)
		}
	}
	if Is(nil) {
		t.Error("no error")
	}
}
